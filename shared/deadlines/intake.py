"""Prepare a run with a deadline: the clusters, the cost, and whether Trainyard can promise the deadline.

The work is measured in seconds on all the run's nodes: as stated (`takes`), else as the newest similar runs took.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from shared.deadlines.kinds import holding
from shared.deadlines.model import Date, DeadlineTerms, Pace, span
from shared.deadlines.outlook import Outlook, outlook, terms_of
from shared.deadlines.requested_date import RequestedDate, date_of_request, date_of_route, date_of_tags
from shared.deadlines.tiers import Tiers, tiers_of
from shared.jobs.limits import LOW_PRIORITY_JOB_DAYS, lifetime_seconds
from shared.kernel.errors import Impossible
from shared.money.admission import seconds_before
from shared.money.ports import MoneyPorts
from shared.runs.features import Origin
from shared.runs.model import Moves, Placed, Run
from shared.runs.ports import RunPorts


def with_date(ports: MoneyPorts, run: Run, origin: Origin) -> Run:
    """Add a deadline, the usable clusters and the first cluster to the run. Without a deadline, the run is unchanged.

    Raises Impossible if the deadline can't be promised, and reports the earliest possible deadline.
    """
    requested = _requested_date(run, origin)
    done_by = requested.moment(run.created_at)
    if done_by is None:
        return run
    how = holding(run)
    work = _work(ports, run, requested)
    _check_limits(run, work)  # first, since the plan of a long run takes seconds
    left = (done_by - run.created_at).total_seconds()
    tiers = tiers_of(ports, run.asked.cluster, run.asked.nodes, origin.limits.clusters)
    terms = terms_of(
        tiers.low.price * run.asked.nodes,
        tiers.dedicated.price * run.asked.nodes,
        tiers.change,
        left,
        overlaps=how.overlaps,
    )
    expected = outlook(terms, tiers.pool, left, work)
    _check_promise(run, work, expected, done_by)
    why = f"It starts on low-priority nodes: {span(left - work)} more than it needs."
    pace = Pace(holds_why=why, sightings=tiers.sightings)
    run = run.having(Date(_deadline_terms(done_by, work, tiers, expected), pace))
    return replace(
        run,
        money=replace(
            run.money,
            price=tiers.low.price,
            price_from=f"of {tiers.low.cluster}; {tiers.dedicated.cluster} costs ${tiers.dedicated.price:.4g}",
            estimated=expected.expected,
            greatest=expected.worst,
        ),
        moves=Moves((Placed(run.created_at, tiers.low.cluster),)),
    )


def _deadline_terms(done_by: datetime, work: float, tiers: Tiers, expected: Outlook) -> DeadlineTerms:
    return DeadlineTerms(
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
        pools=tuple(tiers.pools.values()),
    )


def _requested_date(run: Run, origin: Origin) -> RequestedDate:
    """The requested date in the request, completed from the job's tags, then from the route."""
    requested = date_of_tags(run.asked.request.tags, run.created_at)
    if origin.request:
        requested = date_of_request(origin.request, run.created_at).over(requested)
    return requested.over(date_of_route(origin.route)) if origin.route else requested


def _work(ports: RunPorts, run: Run, requested: RequestedDate) -> float:
    before = () if requested.takes_seconds else seconds_before(ports, run)
    work = requested.takes_seconds or (median(before) if before else 0.0)
    if not work:
        words = (
            "How long it takes on all its nodes is unknown, because no run of its kind has ended. State the duration:"
        )
        raise Impossible(f"{words} takes_seconds in a request (--takes 5h), the tag takes in a job.", "unknown_work")
    return work


def _check_promise(run: Run, work: float, expected: Outlook, done_by: datetime) -> None:
    if (done_by - run.created_at).total_seconds() < expected.seconds:
        raise Impossible(_too_soon(run, work, expected, done_by), "too_soon")


def _check_limits(run: Run, work: float) -> None:
    if work > lifetime_seconds(LOW_PRIORITY_JOB_DAYS):
        words = (
            f"It takes {span(work)}, and Azure ML ends a job on low-priority nodes after {LOW_PRIORITY_JOB_DAYS} days. "
            "Use more nodes, or submit it without a date to a cluster with dedicated nodes."
        )
        raise Impossible(words, "over_time_limit")
    if run.asked.timeout_seconds and run.asked.timeout_seconds < work:
        words = f"It takes {span(work)}, and its time limit is {span(run.asked.timeout_seconds)}."
        raise Impossible(words, "over_time_limit")


def date_of(run: Run) -> dict[str, Any] | None:
    """The fields about the run's deadline before the start; None for a run without a deadline."""
    date = run.feature(Date)
    if date is None:
        return None
    due = date.due
    return {
        "done_by": due.done_by.isoformat(),
        "takes_seconds": due.takes_seconds,
        "clusters": [*due.low_clusters, due.dedicated_cluster],
        "best": due.cost_at_best,
        "expected": due.cost_expected,
        "worst": due.cost_at_worst,
        "why": _words(due, run.money.allowed),
    }


def _words(due: DeadlineTerms, allowed: float | None) -> str:
    """The cost of meeting the deadline, in one sentence."""
    ends = f" Its budget ends it at ${allowed:,.2f}, even before its date." if allowed else ""
    return (
        f"Done by {due.done_by:%Y-%m-%d %H:%M} UTC: about ${due.cost_expected:,.2f}, ${due.cost_at_best:,.2f} at best, "
        f"${due.cost_at_worst:,.2f} at worst.{ends}"
    )


def _too_soon(run: Run, work: float, expected: Outlook, done_by: datetime) -> str:
    earliest = run.created_at + timedelta(seconds=expected.seconds)
    return (
        f"It can't be finished by {done_by:%Y-%m-%d %H:%M} UTC: it takes {span(work)} on {run.asked.nodes} nodes, and "
        f"new nodes up to {span(expected.seconds - work)}. The earliest date is {earliest:%Y-%m-%d %H:%M} UTC."
    )
