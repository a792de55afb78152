"""Models: a name, versions, and aliases of versions.

    run --promote--> version 4 of churn <--alias-- production

A version is one run's model, forever; its number is never reused. An alias moves, and the history records every move in
order. A model's row has one etag for all changes, so two concurrent moves are applied one after the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

import msgspec

from shared.kernel.errors import Impossible

NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
ALIAS = re.compile(r"[a-z][a-z0-9-]{0,30}")
NUMBER = re.compile(r"[1-9][0-9]{0,8}")
TAKEN = ("latest", "best")  # reserved words that select a run, as in mnist@latest


class ChangeKind(StrEnum):
    """The kind of a line of the history."""

    VERSION = "version"  # a version was made
    ALIAS = "alias"  # an alias was moved
    UNDO = "undo"  # an alias was moved back
    LET_GO = "let go"  # a version was released
    LOST = "lost"  # a run was judged, and the alias stayed
    SIGNED = "signed"  # a version was signed again, with another key


class Alias(msgspec.Struct, frozen=True, array_like=True):
    """The target of an alias, the time, the person and the reason; `earlier` are the earlier versions, the latest
    one last.
    """

    number: int
    at: datetime
    by: str = ""
    by_id: str = ""
    why: str = ""
    earlier: tuple[int, ...] = ()


@dataclass(frozen=True)
class Model:
    """A name with aliases. `latest` counts all versions ever made, `changes` the lines of the history.

    `goals` are the directions of the metrics by which versions were compared, the latest first. They apply to all
    versions of the model.
    """

    name: str
    latest: int = 0
    changes: int = 0
    aliases: dict[str, Alias] = field(default_factory=dict)
    goals: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Version:
    """A run's model under a number. `proof` is the folder of its proof in the output container.

    `digest` is the SHA-256 over all signed files, `weights` that of the model's files only. `reads` are the places in
    the drops container that the run trained on. After `let_go_at` the version no longer protects its run and data.
    """

    model: str
    number: int
    run: str
    at: datetime
    proof: str
    digest: str
    signer: str  # the SHA-256 of the public key
    by: str = ""
    by_id: str = ""
    why: str = ""
    bytes: int = 0
    metrics: dict[str, float] = field(default_factory=dict)  # of the saved weights
    said_by_trainer: tuple[str, ...] = ()  # the metrics that the trainer said; the others are last values
    drop: str = ""
    generation: int = 0
    from_run: str = ""
    reads: tuple[str, ...] = ()
    asset: str = ""  # its id in Azure ML's model registry, '' until it is registered
    let_go_at: datetime | None = None

    def __str__(self) -> str:
        return f"{self.model}/{self.number}"


@dataclass(frozen=True)
class Change:
    """A line of a model's history. `before` and `after` are versions, 0 for none.

    `run` is the run that was judged, or whose version the alias moved to. Lines of earlier versions of Trainyard have
    it only for lost challenges.
    """

    model: str
    order: int
    what: ChangeKind
    at: datetime
    alias: str = ""
    before: int = 0
    after: int = 0
    by: str = ""
    by_id: str = ""
    why: str = ""
    run: str = ""


def check_name(name: str) -> str:
    """Return a valid model name unchanged. Raises Impossible."""
    if not NAME.fullmatch(name):
        raise Impossible(
            f"{name[:80]!r} can't name a model: use a small letter, then up to 62 small letters, digits and dashes, "
            "such as churn-eu.",
            "bad_name",
        )
    return name


def check_alias(alias: str) -> str:
    """Return a valid alias unchanged. Raises Impossible."""
    if not ALIAS.fullmatch(alias) or alias in TAKEN:
        taken = f"; {' and '.join(TAKEN)} are reserved for runs" if alias in TAKEN else ""
        raise Impossible(
            f"{alias[:80]!r} can't be an alias: use a small letter, then up to 30 small letters, digits and dashes, "
            f"such as production{taken}.",
            "bad_name",
        )
    return alias
