"""The output of commands with --json: answers of the API, and the types of other results.

schemas/cli.json is made from what each command declares with `prints`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Printed:
    """The type of a command's output with --json: one of these answers, or one answer on each line with `each_line`."""

    answers: tuple[Any, ...]
    each_line: bool


def prints(*answers: Any, each_line: bool = False) -> Callable[[F], F]:
    """Declare a command's output with --json.

    Each is a type of this program's own, or an operation of the API whose answer the command passes on, such as "GET
    runs/{run}"; "GET runs > runs" is a part of that answer.
    """

    def declare(function: F) -> F:
        function.printed = Printed(answers, each_line)  # type: ignore[attr-defined]
        return function

    return declare


class DropPlan(TypedDict):
    """The output of `drop --dry-run`: what an upload would change, as names in the drop."""

    drop: str
    added: list[str]
    changed: list[str]
    gone: list[str]
    same: int


class DataChecked(TypedDict):
    """The output of `drop --check`. `verdict` is refused, warned, fine, or off where the route checks nothing."""

    verdict: str
    refusals: list[str]
    warnings: list[str]
    notes: list[str]
    card: dict[str, Any]


class Dropped(DropPlan):
    """The output of `drop`. `run` is empty without a run. `trained_before`: an earlier run trained on equal content."""

    files: int
    bytes: int
    kept: int
    deleted: int
    closed: bool
    run: str
    generation: int
    trained_before: bool


class LogPiece(TypedDict):
    """One line of the output of `logs`. The next piece begins at `next_offset`."""

    offset: int
    next_offset: int
    complete: bool
    text: str


class Picture(TypedDict):
    """The output of `metrics --png`."""

    run: str
    png: str


class Fetched(TypedDict):
    """The output of `fetch`. `files` are the chosen files of the archive; `new` is the number of files that were
    downloaded."""

    run: str
    folder: str
    manifest: str
    files: list[str]
    bytes: int
    new: int


class Checked(TypedDict):
    """A file that does not match the signature, or `model.sig` if the signature itself is wrong."""

    file: str
    what: str


class Verification(TypedDict):
    """The output of `verify`. `model` is the name in the signature; `signer` is the SHA-256 of the key that the
    signature names."""

    model: str
    folder: str
    files: int
    bytes: int
    seconds: float
    signer: str
    ok: bool
    problems: list[Checked]


class TrustedKey(TypedDict):
    """A line of `keys`: a key of the deployment by its SHA-256, when it signed, and whether it is trusted here.
    `until` and `withdrawn_at` are empty for a key that still signs."""

    sha256: str
    since: str
    until: str
    withdrawn_at: str
    why: str
    trusted: bool


class Guess(TypedDict):
    label: str
    score: float | None
    box: NotRequired[list[float]]


class Prediction(TypedDict):
    """The output of `predict` for one file, or for one [MASK] in a file."""

    file: str
    guesses: list[Guess]


class EvictedNode(TypedDict):
    """One line of the output of `evict`."""

    run: str
    job: str
    node: int


class ClusterStep(TypedDict):
    cluster: str
    action: str
    changes: dict[str, dict[str, Any]]
    why: str


class ClusterSteps(TypedDict):
    """The output of `clusters plan` and `clusters apply`."""

    steps: list[ClusterStep]
    not_in_the_file: list[str]


class LoggedIn(TypedDict):
    """The output of `login`. `secret` is the kind of secret that is stored: key, token, or none."""

    profile: str
    url: str
    secret: str


class LoggedOut(TypedDict):
    profile: str


class Address(TypedDict):
    """The output of `open`."""

    url: str


class Completion(TypedDict):
    shell: str
    script: str


class SmokeCheck(TypedDict):
    """One check in the output of `admin smoke`."""

    check: str
    result: str
    detail: str
