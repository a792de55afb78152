"""The kinds of runs that may have a deadline, and how each kind holds nodes."""

from __future__ import annotations

from functools import cache

from shared.deadlines.holding import Holding
from shared.deadlines.one_job import HoldingOfOneJob
from shared.features import modules
from shared.kernel.errors import Impossible
from shared.runs.model import Run
from shared.runs.progress.workloads import workload


@cache
def _holding_by_kind() -> dict[str, Holding]:
    """A kind of another feature is declared in a module `deadlines.py` of its folder."""
    return {"": HoldingOfOneJob()} | {
        kind: how for module in modules("deadlines") for kind, how in module.HOLDING.items()
    }


def holding(run: Run) -> Holding:
    """How a run of this kind holds nodes. Raises Impossible for a kind that can't have a deadline."""
    kind = workload(run).kind
    if kind not in _holding_by_kind():
        raise Impossible(f"A {kind} can't have a date: submit the part as a job of its own.", "bad_date")
    return _holding_by_kind()[kind]
