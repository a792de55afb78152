"""What lies around a job that someone wrote, and what reading it gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from shared.jobs.limits import Limits
from shared.jobs.model import Problem
from shared.jobs.ports import HasBatchAIAccount, Stores
from shared.jobs.spec import JobSpec, Layer
from shared.kernel.storage import Place


class Ports(Stores, HasBatchAIAccount, Protocol):
    """What readers look at outside: where files lie, and which account documents of Batch AI mean."""


@dataclass(frozen=True)
class Around:
    """`limits` are those of the route or the request. `folder` is the drop's, None where there is none."""

    stores: Ports
    limits: Limits
    folder: Place | None = None


@dataclass(frozen=True)
class Written:
    """A job that someone wrote.

    `template` is what lies below it, None where that is the route's. `problems` keep it from being sent, by the keys of
    its own document; `absent` has a sentence for each of its data that is nowhere. `summary` is for the run's history,
    `findings` say what became of each field; None for a document that needed no translation.
    """

    layer: Layer
    template: JobSpec | None = None
    problems: tuple[Problem, ...] = ()
    absent: tuple[str, ...] = ()
    summary: str = ""
    findings: list[dict[str, Any]] | None = None
