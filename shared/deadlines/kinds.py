"""The kinds of runs that may have a deadline, and how each kind holds nodes."""

from __future__ import annotations

from shared.deadlines.holding import Holding
from shared.deadlines.members import OfMembers
from shared.deadlines.one_job import HoldingOfOneJob
from shared.kernel.errors import Impossible
from shared.runs.model import ELASTIC, Run
from shared.runs.progress.workloads import workload

_HOLDING: dict[str, Holding] = {"": HoldingOfOneJob(), ELASTIC: OfMembers()}


def holding(run: Run) -> Holding:
    """How a run of this kind holds nodes. Raises Impossible for a kind that can't have a deadline."""
    kind = workload(run).kind
    if kind not in _HOLDING:
        raise Impossible(f"A {kind} can't have a date: give one to a job of its own.", "bad_date")
    return _HOLDING[kind]
