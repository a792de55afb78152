"""A run with a date, before it starts: what it may choose from, its cost, and whether the date can be promised.

The work is the seconds that it takes on all its nodes: as said (`takes`), else as the newest runs of its kind took.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Protocol

from shared.deadlines.outlook import Outlook, outlook, terms_of
from shared.jobs.limits import Limits
from shared.kernel.errors import Impossible
from shared.kernel.has import HasClock
from shared.runs.date import Placed, span
from shared.runs.intake.wish import Wish
from shared.runs.model import Run
from shared.runs.ports import HasMarkets
from shared.runs.progress.capabilities import Steerable
from shared.runs.progress.workloads import workload


class Ports(HasClock, HasMarkets, Protocol):
    """What is needed here from outside."""


def with_date(ports: Ports, run: Run, wish: Wish, limits: Limits) -> Run:
    """The run with its date, the clusters that it may use, and where it begins; as it is if nobody wished for a date.

    Raises Impossible if the date can't be promised, with the earliest one that can.
    """
    done_by = wish.moment(run.created_at)
    if done_by is None:
        return run
    how = workload(run)
    if not isinstance(how, Steerable):
        raise Impossible(f"A {how.kind} can't have a date: give one to a job of its own.", "bad_date")
    work = _work(ports, run, wish)
    left = (done_by - run.created_at).total_seconds()
    tiers = ports.markets.of(run.asked.cluster, run.asked.nodes, limits.clusters)
    terms = terms_of(
        tiers.low.price * run.asked.nodes,
        tiers.dedicated.price * run.asked.nodes,
        tiers.change,
        left,
        overlaps=how.overlaps,
    )
    expected = outlook(terms, tiers.pool, left, work)
    _check_promise(run, work, expected, done_by)
    return run.changed(
        done_by=done_by,
        takes_seconds=work,
        low_cluster=tiers.low.cluster,
        further_low_clusters=tiers.further,
        dedicated_cluster=tiers.dedicated.cluster,
        low_price=tiers.low.price,
        dedicated_price=tiers.dedicated.price,
        change_seconds=tiers.change,
        cost_at_best=expected.best,
        cost_at_worst=expected.worst,
        cost_expected=expected.expected,
        pool=tiers.pool,
        price=tiers.low.price,
        price_from=f"of {tiers.low.cluster}; {tiers.dedicated.cluster} costs ${tiers.dedicated.price:.4g}",
        estimated_cost=expected.expected,
        greatest_cost=expected.worst,
        holds_why=f"It begins on low-priority nodes: {span(left - work)} more than it needs.",
        places=(Placed(run.created_at, tiers.low.cluster),),
    )


def _work(ports: Ports, run: Run, wish: Wish) -> float:
    work = wish.takes_seconds or ports.markets.usual_seconds(run)
    if not work:
        words = "How long it takes on all its nodes is not known, as no run of its kind has ended. Say it:"
        raise Impossible(f"{words} takes_seconds in a request (--takes 5h), the tag takes in a job.", "unknown_work")
    return work


def _check_promise(run: Run, work: float, expected: Outlook, done_by: datetime) -> None:
    if (done_by - run.created_at).total_seconds() < expected.seconds:
        raise Impossible(_too_soon(run, work, expected, done_by), "too_soon")
    if run.asked.timeout_seconds and run.asked.timeout_seconds < work:
        words = f"It takes {span(work)}, and its time limit is {span(run.asked.timeout_seconds)}."
        raise Impossible(words, "over_time_limit")


def date_of(run: Run) -> dict[str, Any] | None:
    """What is known of a run's date before it starts; None for one without."""
    due = run.due
    if due.done_by is None:
        return None
    return {
        "done_by": due.done_by.isoformat(),
        "takes_seconds": due.takes_seconds,
        "clusters": [*due.low_clusters, due.dedicated_cluster],
        "best": due.cost_at_best,
        "expected": due.cost_expected,
        "worst": due.cost_at_worst,
        "why": _words(run),
    }


def _words(run: Run) -> str:
    """What the date costs, in one sentence."""
    due = run.due
    assert due.done_by is not None
    ends = f" Its budget ends it at ${due.cost_allowed:,.2f}, even before its date." if due.cost_allowed else ""
    return (
        f"Done by {due.done_by:%Y-%m-%d %H:%M} UTC: about ${due.cost_expected:,.2f}, ${due.cost_at_best:,.2f} at best, "
        f"${due.cost_at_worst:,.2f} on dedicated nodes alone.{ends}"
    )


def _too_soon(run: Run, work: float, expected: Outlook, done_by: datetime) -> str:
    earliest = run.created_at + timedelta(seconds=expected.seconds)
    return (
        f"It can't be promised by {done_by:%Y-%m-%d %H:%M} UTC: it takes {span(work)} on {run.asked.nodes} nodes, and "
        f"new nodes up to {span(expected.seconds - work)}. The earliest date is {earliest:%Y-%m-%d %H:%M} UTC."
    )
