"""What commands print with --json: which answers of the API, and the types of what is none of them.

schemas/cli.json is made from what each command declares with `prints`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Printed:
    """What a command prints with --json: one of these answers, or with `each_line` one on each line."""

    answers: tuple[Any, ...]
    each_line: bool


def prints(*answers: Any, each_line: bool = False) -> Callable[[F], F]:
    """Declare what a command prints with --json.

    Each is a type of this program's own, or an operation of the API whose answer the command passes on, such as "GET
    runs/{run}"; "GET runs > runs" is a part of that answer.
    """

    def declare(function: F) -> F:
        function.printed = Printed(answers, each_line)  # type: ignore[attr-defined]
        return function

    return declare


class DropPlan(TypedDict):
    """`drop --dry-run`: what an upload would change, as names in the drop."""

    drop: str
    added: list[str]
    changed: list[str]
    gone: list[str]
    same: int


class Dropped(DropPlan):
    """`drop`. `run` is empty while there is none; `trained_before`: the run is an older one of the same content."""

    files: int
    bytes: int
    kept: int
    deleted: int
    closed: bool
    run: str
    generation: int
    trained_before: bool


class LogPiece(TypedDict):
    """A line that `logs` prints. The next piece begins at `next_offset`."""

    offset: int
    next_offset: int
    complete: bool
    text: str


class Picture(TypedDict):
    """`metrics --png`."""

    run: str
    png: str


class Fetched(TypedDict):
    """`fetch`. `files` are those of the archive that were chosen; `new` is how many were not there before."""

    run: str
    folder: str
    manifest: str
    files: list[str]
    bytes: int
    new: int


class Checked(TypedDict):
    """A file that is not what was signed; `model.sig` for the signature itself."""

    file: str
    what: str


class Verification(TypedDict):
    """`verify`. `model` is what the signature names; `signer` the SHA-256 of the key that it names."""

    model: str
    folder: str
    files: int
    bytes: int
    seconds: float
    signer: str
    ok: bool
    problems: list[Checked]


class Guess(TypedDict):
    label: str
    score: float | None
    box: NotRequired[list[float]]


class Prediction(TypedDict):
    """`predict`: what the model makes of a file, or of a [MASK] in it."""

    file: str
    guesses: list[Guess]


class EvictedNode(TypedDict):
    """A line that `evict` prints."""

    run: str
    job: str
    node: int


class ClusterStep(TypedDict):
    cluster: str
    action: str
    changes: dict[str, dict[str, Any]]
    why: str


class ClusterSteps(TypedDict):
    """`clusters plan` and `clusters apply`."""

    steps: list[ClusterStep]
    not_in_the_file: list[str]


class LoggedIn(TypedDict):
    """`login`. `secret` says which kind is stored: key, token, or none."""

    profile: str
    url: str
    secret: str


class LoggedOut(TypedDict):
    profile: str


class Address(TypedDict):
    """`open`."""

    url: str


class Completion(TypedDict):
    shell: str
    script: str


class SmokeCheck(TypedDict):
    """A line of `admin smoke`."""

    check: str
    result: str
    detail: str
