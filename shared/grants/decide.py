"""Decide whether a grant admits a run, how much its runs have cost, and which runs must end. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from shared.grants.model import Grant, May, Reservation, Then, listed
from shared.jobs.kinds import kind_of
from shared.money.decide import ALLOWANCE_SECONDS, UNSEEN
from shared.money.ledger import IDLE_TAIL
from shared.runs.decide import is_over
from shared.runs.model import Run
from shared.runs.ports import Refusal

MARKS = (100, 80, 50)  # percent of the budget that a notice announces
MOST_RESERVED = 250  # reservations of a grant at the same time: a row of a table has room for 1 MiB
# The part of a run's allowance that is left when the run is canceled for its cost. It covers the period of the timer,
# the cancellation, and the idle time of the nodes.
ENDING_SECONDS = ALLOWANCE_SECONDS - 300
_CENT = 0.005
_HOUR = 3600


@dataclass(frozen=True)
class Asked:
    """The claim of a run on its grant. `most` is the greatest cost in dollars, None (with the reason `why`) if the
    price is unknown.

    `part_of` is the sweep whose reservation pays for the run, '' for a run without a sweep.
    """

    run: str
    route: str
    clusters: tuple[str, ...]
    most: float | None
    why: str = ""
    slots: int = 1
    runs: int = 1
    keeps_warm: bool = False
    has_limit: bool = True
    part_of: str = ""


def reserve(grant: Grant, asked: Asked, now: datetime) -> Grant | Refusal:
    """Reserve the greatest cost of the run, or refuse the run. A repeat changes nothing."""
    if asked.run in grant.reserved or asked.part_of in grant.reserved:
        return grant
    if why := grant.over(now):
        return Refusal("grant_over", f"{why} No run starts any more. Ask {grant.by or 'its creator'} for another.")
    if refusal := _out_of_scope(grant, asked) or _too_many(grant, asked):
        return refusal
    if asked.most is None:
        return Refusal("no_price", f"Grant {grant.id} has a budget, so its runs need a price. {asked.why}")
    if asked.most > grant.left + _CENT:
        return Refusal("over_grant", _too_dear(grant, asked.most))
    reservation = Reservation(asked.most, now, slots=asked.slots, runs=asked.runs)
    return replace(grant, reserved={**grant.reserved, asked.run: reservation})


def _out_of_scope(grant: Grant, asked: Asked) -> Refusal | None:
    terms, words = grant.terms, f"Grant {grant.id}"
    if not grant.may(May.SUBMIT) and not asked.route:
        return Refusal("not_granted", f"{words} may not submit runs. It may: {listed(terms.may)}.")
    if asked.route and asked.route not in terms.routes:
        return Refusal("not_granted", f"{words} may not use route {asked.route!r}. It has: {listed(terms.routes)}.")
    if beyond := [name for name in asked.clusters if name not in terms.clusters]:
        names, own = listed(beyond), listed(terms.clusters)
        return Refusal("not_granted", f"{words} may not use the cluster {names}. It has: {own}.")
    if asked.keeps_warm and not grant.may(May.LEASE):
        return Refusal("not_granted", f"{words} may not keep nodes warm. It may: {listed(terms.may)}.")
    if not asked.has_limit:
        return Refusal("no_time_limit", "A run under a grant needs a time limit. Give timeout_seconds.")
    return None


def _too_many(grant: Grant, asked: Asked) -> Refusal | None:
    terms = grant.terms
    if grant.at_once + asked.slots > terms.at_once:
        return Refusal(
            "too_many_at_once",
            f"Grant {grant.id} allows {terms.at_once} runs at once. {grant.at_once} are in progress, and this asks for "
            f"{asked.slots}. Wait for a run to end, or cancel one.",
        )
    if grant.runs + asked.runs > terms.runs:
        return Refusal(
            "too_many_runs",
            f"Grant {grant.id} allows {terms.runs} runs in all. {grant.runs} are used, and this asks for {asked.runs}.",
        )
    if len(grant.reserved) >= MOST_RESERVED:
        return Refusal("too_many_at_once", f"Grant {grant.id} has {MOST_RESERVED} runs that just ended. Try later.")
    return None


def _too_dear(grant: Grant, most: float) -> str:
    return (
        f"The run may cost ${most:.2f}. Grant {grant.id} has ${grant.left:.2f} left (${grant.terms.budget:.2f} budget, "
        f"${grant.spent:.2f} spent, ${grant.in_progress:.2f} reserved by runs in progress). Lower timeout_seconds or "
        "the nodes, or wait for runs to end."
    )


def release(grant: Grant, run: str) -> Grant:
    """Return the grant without the reservation of a run that will not start."""
    return replace(grant, reserved={name: kept for name, kept in grant.reserved.items() if name != run})


@dataclass(frozen=True)
class RunCost:
    """A run of a grant, and its cost so far in dollars: by the books or by its own record, whichever is greater."""

    run: Run
    dollars: float

    @property
    def hourly(self) -> float:
        return most_nodes(self.run) * self.run.money.price


def with_costs(grant: Grant, costs: Mapping[str, list[RunCost]], now: datetime) -> Grant:
    """Return the grant with the costs of its runs until now.

    `costs` has the runs of each reservation: one run, or the sweep and then its trials. A reservation whose nodes are
    gone is settled. A reservation whose run was never recorded, because of a crash, is released.
    """
    kept, settled, ended = dict[str, Reservation](), grant.settled, grant.ended
    for name, reservation in grant.reserved.items():
        runs = costs.get(name, [])
        after = _costed(reservation, runs)
        if not runs and now - reservation.at >= UNSEEN:
            continue
        if after.until and after.until <= now:
            settled, ended = settled + after.spent, ended + (len(runs) - 1 if reservation.runs > 1 else 1)
        else:
            kept[name] = after
    return replace(grant, reserved=kept, settled=settled, ended=ended)


def _costed(reservation: Reservation, runs: list[RunCost]) -> Reservation:
    spent = sum(each.dollars for each in runs)
    reservation = msgspec.structs.replace(reservation, spent=max(spent, reservation.spent))
    if not runs or not all(is_over(each.run) for each in runs):
        return reservation
    until = max(gone_by(each.run) for each in runs)
    tail = sum(idle_dollars(each.run) for each in runs)
    return msgspec.structs.replace(reservation, until=until, most=min(reservation.most, reservation.spent + tail))


def gone_by(run: Run) -> datetime:
    """Return the latest time at which the nodes of an ended run may still be charged to the run."""
    end = run.progress.history[-1].at if run.progress.history else run.created_at
    return end + IDLE_TAIL + timedelta(seconds=_warm_seconds(run))


def idle_dollars(run: Run) -> float:
    """Return the most that the nodes of an ended run may cost after its end, until they are released. A lease may
    keep the nodes longer.
    """
    seconds = IDLE_TAIL.total_seconds() + _warm_seconds(run)
    return most_nodes(run) * run.money.price * seconds / _HOUR


def has_steps(run: Run) -> bool:
    """Return whether the run's job has steps. Trainyard does not see when nodes start and idle between steps."""
    return bool(kind_of(run.asked.request).parts(run.asked.request))


def most_nodes(run: Run) -> int:
    """Return the most nodes that the run may have at the same time. For a run with steps, this is the sum over all
    steps.
    """
    parts = [part for part in kind_of(run.asked.request).parts(run.asked.request) if not part.is_pipeline]
    return sum(part.trials * part.job.node_count for part in parts) or run.asked.nodes


def ceiling(run: Run, now: datetime) -> float:
    """Return the most that the run can have cost until now: all its nodes since its creation, and idle nodes after
    its end.
    """
    end = run.progress.history[-1].at if is_over(run) and run.progress.history else now
    dollars = most_nodes(run) * run.money.price * (end - run.created_at).total_seconds() / _HOUR
    return dollars + (idle_dollars(run) if is_over(run) else 0.0)


def warm_dollars(run: Run) -> float:
    """Return the most that it costs to keep the run's nodes warm as requested, and until they are released."""
    return idle_dollars(run) if run.asked.keep_warm_seconds else 0.0


def _warm_seconds(run: Run) -> float:
    return run.asked.keep_warm_seconds + IDLE_TAIL.total_seconds() if run.asked.keep_warm_seconds else 0.0


def ended_early(grant: Grant, run: Run) -> Grant:
    """Return the grant after the end of a run with its own nodes: the reservation shrinks to the most that the run
    can have cost.
    """
    before = grant.reserved.get(run.name)
    if before is None or before.until or not is_over(run):
        return grant
    most = max(before.spent, min(before.most, ceiling(run, gone_by(run))))
    after = msgspec.structs.replace(before, most=most, until=gone_by(run))
    return replace(grant, reserved={**grant.reserved, run.name: after})


def to_cancel(grant: Grant, costs: Iterable[RunCost], now: datetime) -> dict[str, str]:
    """Return the names of the runs that must end now, each with the reason.

    These are all runs if the grant is over and demands their cancellation; otherwise the runs that have nearly cost
    their reservations.
    """
    live = [each for each in costs if not is_over(each.run) and each.run.cancel.asked_at is None]
    if grant.terms.then is Then.CANCEL and (why := grant.over(now)):
        return {each.run.name: why for each in live}
    return {
        each.run.name: f"It has cost ${each.dollars:.2f}, nearly all of the ${each.run.money.greatest:.2f} reserved "
        f"for it in grant {grant.id}."
        for each in live
        if each.run.money.greatest and each.dollars > each.run.money.greatest - each.hourly * ENDING_SECONDS / _HOUR
    }


def mark(grant: Grant) -> int:
    """Return the percentage of the budget to announce as spent; 0 if there is nothing new to announce."""
    share = 100 * grant.spent / grant.terms.budget if grant.terms.budget else 100.0
    return next((percent for percent in MARKS if share >= percent > grant.told), 0)
