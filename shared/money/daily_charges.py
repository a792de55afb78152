"""The books: every cluster's charges per day, from node counts, runs and leases. Closed days are kept forever."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from shared.clusters.lease_model import LONGEST_POSSIBLE, Lease
from shared.clusters.samples import HOLDS, Sample, day_of
from shared.kernel.errors import BadInput, NotFound
from shared.kernel.memory import Memory, Topic
from shared.kernel.person import NOBODY, Person
from shared.money.admission import clusters, prices
from shared.money.ledger import IDLE_TAIL, LeasedNodes, Share, Users, default_seconds, split
from shared.money.model import Day, Row
from shared.money.paid import Paid, paid
from shared.money.ports import MoneyPorts
from shared.money.prices import Prices
from shared.money.sampled import DAY, Sampled, start_of_day
from shared.runs.decide import is_over
from shared.runs.features import price_on
from shared.runs.model import Run
from shared.runs.node_use import ClusterUse, NodeSpan
from shared.runs.ports import RunFields, RunFilter, RunPorts
from shared.runs.progress.workloads import workload
from shared.runs.views.run_list import matching

CLOSED_AFTER = timedelta(hours=6)  # after the end of a day; the ends of its runs are known by then
KEPT = timedelta(days=35)  # a month, plus runs that began before it; older days are closed or were never counted
QUEUED = timedelta(days=2)  # the longest time that a run may wait before its time limit starts
_HOUR = 3600

MOST_DAYS = 800  # closed days that a process caches: two years of reports


@dataclass
class Seen:
    """This process's memory: each cluster's first day, and old runs in a waiting or running state."""

    first: dict[str, datetime] = field(default_factory=dict)
    old: set[str] = field(default_factory=set)


def _is_whole(charges: list[Day] | None) -> bool:
    """Return whether the day is closed and each part of the day's record was readable."""
    return charges is not None and not any(day.problem for day in charges)


SEEN = Topic[Seen]("clusters and runs seen")
CLOSED_DAYS = Topic[list[Day] | None]("closed days", most=MOST_DAYS, keeps=_is_whole)


@dataclass(frozen=True)
class ChargeInputs:
    """The input for the charges of some days: runs, leases, prices, and each cluster's project."""

    runs: dict[str, Run]
    uses: dict[str, list[ClusterUse]]
    leases: dict[str, tuple[LeasedNodes, Person, str]]  # with owner and project
    prices: Prices
    projects: dict[str, str]
    region: str


@dataclass(frozen=True)
class Charged:
    """The charges of some days, and the runs with possible nodes on the open days."""

    days: list[Day]
    runs: dict[str, Run]


def charged(ports: MoneyPorts, since: datetime, until: datetime, samples: Sampled | None = None) -> Charged:
    """Return the charges of all clusters from `since` to `until`: the whole first day, and the last day so far.

    Days before KEPT that were never closed predate the books and have no charges.
    """
    now, samples = ports.clock(), samples or Sampled(ports.samples)
    charges: list[Day] = []
    opened: dict[datetime, Counts] = {}
    first = _first_days(ports.memory, samples)
    for begin in _days(max(since, min(first.values(), default=now) - HOLDS), min(until, now)):
        closed_day = _kept_day(ports, day_of(begin)) if begin + DAY + CLOSED_AFTER <= now else None
        charges += closed_day or []
        if closed_day is None and begin >= start_of_day(now - KEPT):
            opened[begin] = _counts(samples, first, begin, now)
    counted_days = [begin for begin, counts in opened.items() if any(counts.values())] or [start_of_day(now)]
    facts = _known(ports, counted_days[0], now)
    for begin, counts in opened.items():
        charges += _day_of_all(facts, counts, begin, min(begin + DAY, now))
    return Charged(sorted(charges, key=lambda day: (day.day, day.cluster)), facts.runs)


def close_days(ports: MoneyPorts, samples: Sampled | None = None) -> list[str]:
    """Close each day with an end at least CLOSED_AFTER ago. Return the newly closed days."""
    now, samples = ports.clock(), samples or Sampled(ports.samples)
    facts, closed, first = None, [], _first_days(ports.memory, samples)
    for begin in _days(max(now - KEPT, min(first.values(), default=now) - HOLDS), now - DAY - CLOSED_AFTER):
        if _kept_day(ports, day_of(begin)) is not None:
            continue
        counts = _counts(samples, first, begin, now)
        facts = facts or (_known(ports, begin, now) if any(counts.values()) else None)
        ports.books.close_day(day_of(begin), _day_of_all(facts, counts, begin, begin + DAY) if facts else [])
        closed.append(day_of(begin))
    return closed


def _first_days(memory: Memory, samples: Sampled) -> dict[str, datetime]:
    """Return the day of each cluster's oldest sample. A process reads each cluster's first day once."""
    first = memory.one(SEEN, Seen).first
    for name in samples.clusters:
        if name not in first and (day := samples.first_day(name)):
            first[name] = day
    return {name: first[name] for name in samples.clusters if name in first}


def _days(since: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the start of each day from the day of `since` to before `until`."""
    begin = start_of_day(since)
    while begin < until:
        yield begin
        begin += DAY


def _kept_day(ports: MoneyPorts, day: str) -> list[Day] | None:
    """Return a closed day. The process caches the day, unless a part is unreadable."""
    return ports.memory.answer(CLOSED_DAYS, ports.clock(), lambda: ports.books.day(day), day)


def _known(ports: MoneyPorts, since: datetime, now: datetime) -> ChargeInputs:
    runs = {run.name: run for run in _runs(ports, since)}
    uses: dict[str, list[ClusterUse]] = defaultdict(list)
    for run in runs.values():
        for use in workload(run).uses(run, now):
            uses[use.cluster].append(use)
    made = ports.leases.made_between(since - LONGEST_POSSIBLE, now)
    leases = {lease.id: (_hold(lease), Person(lease.owner, lease.owner_id), lease.project) for lease in made}
    projects = {name: cluster.project for name, cluster in clusters(ports).items()}
    return ChargeInputs(runs, uses, leases, prices(ports), projects, ports.money.region)


def _hold(lease: Lease) -> LeasedNodes:
    return LeasedNodes(lease.id, lease.cluster, NodeSpan(lease.made_at, lease.ended_at, lease.nodes))


def _runs(ports: RunPorts, since: datetime) -> Iterator[Run]:
    """Yield the runs with possible nodes after `since`.

    These are the runs created at most a time limit plus QUEUED before `since`, and older runs that this process has
    seen waiting or running. A run that waited longer and ended just when the process was replaced is missed: its cost
    on that day stays unexplained.
    """
    limits = [ports.limits, *(route.limits for route in ports.routes.values() if route.trains)]
    longest = timedelta(seconds=max(limit.timeout_seconds for limit in limits))
    recent_names = set()
    for run in matching(ports.runs, RunFilter(since=since - longest - QUEUED), RunFields.NODES):
        recent_names.add(run.name)
        yield run
    old = ports.memory.one(SEEN, Seen).old
    old |= {name for name, _, _ in ports.runs.live()} - recent_names
    for name in sorted(old):
        try:
            run = ports.runs.get(name).value
        except (NotFound, BadInput):
            continue
        yield run
        if is_over(run) and run.progress.history[-1].at < since:
            old.discard(name)


Counts = dict[str, list[Sample]]  # by cluster


def _counts(samples: Sampled, first: dict[str, datetime], since: datetime, now: datetime) -> Counts:
    """Return the samples of each cluster that show its number of nodes on this day, until now."""
    until = min(since + DAY, now)
    return {name: samples.around(name, since, until, day, now) for name, day in first.items()}


def _day_of_all(facts: ChargeInputs, counts: Counts, since: datetime, until: datetime) -> list[Day]:
    """Return the charges of each cluster with a node, or with possible nodes during a gap in the counts."""
    paid_by_cluster = {name: paid(its, facts.uses.get(name, ()), since, until) for name, its in counts.items()}
    return [_day(facts, cluster, had, until) for cluster, had in paid_by_cluster.items() if had]


def _day(facts: ChargeInputs, cluster: str, had: list[Paid], until: datetime) -> Day:
    holds = [hold for hold, _, _ in facts.leases.values() if hold.cluster == cluster]
    shares: list[Share] = []
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    dollars: dict[tuple[str, str], float | None] = {}
    begin, counted = had[0].spell.begin, [stretch for stretch in had if stretch.spell.nodes]
    users = Users(use for use in facts.uses.get(cluster, ()) if use.ended is None or use.ended + IDLE_TAIL > begin)
    for stretch in counted:
        hourly = facts.prices.find(stretch.vm_size, stretch.tier, facts.region)
        for share in split(stretch.spell, users, holds):
            shares.append(share)
            key = (share.kind, share.who)
            seconds[key] += share.node_seconds
            price = _price(facts, cluster, share, hourly.dollars if hourly else None)
            so_far = dollars.get(key, 0.0)
            dollars[key] = None if price is None or so_far is None else so_far + share.node_seconds * price / _HOUR
    rows = tuple(
        _row(facts, cluster, share, node_seconds, dollars[share]) for share, node_seconds in sorted(seconds.items())
    )
    last = facts.prices.find(had[-1].vm_size, had[-1].tier, facts.region)
    return Day(
        cluster,
        day_of(begin),
        rows,
        max(stretch.spell.nodes for stretch in had),
        last.dollars if last else 0.0,
        default_seconds(shares, until),
        began=counted[0].spell.begin if counted else None,
        unknown_seconds=sum(stretch.unknown_seconds for stretch in had),
    )


def _row(facts: ChargeInputs, cluster: str, share: tuple[str, str], node_seconds: float, dollars: float | None) -> Row:
    kind, who = share
    owner, project = _payer(facts, cluster, who)
    return Row(kind, who, owner.name, project, node_seconds, dollars, owner.id)


def _price(facts: ChargeInputs, cluster: str, share: Share, hourly: float | None) -> float | None:
    """Return the price of a node hour; for a run, the price at its submission."""
    run = facts.runs.get(share.who)
    if run and (price := price_on(run, cluster)) is not None:
        return price
    return run.money.price if run and run.money.price else hourly


def _payer(facts: ChargeInputs, cluster: str, who: str) -> tuple[Person, str]:
    """Return the owner and the project of a run, of a lease, or of unexplained time."""
    if run := facts.runs.get(who):
        return Person(run.people.owner, run.people.owner_id), run.money.project or facts.projects.get(cluster, "")
    if lease := facts.leases.get(who):
        return lease[1], lease[2] or facts.projects.get(cluster, "")
    return NOBODY, facts.projects.get(cluster, "")


def of_runs(days: Iterable[Day]) -> dict[str, dict[str, Row]]:
    """Return the rows of each run by kind, summed over these days."""
    rows: dict[str, dict[str, Row]] = defaultdict(dict)
    for day in days:
        for row in day.rows:
            if row.who and row.kind in ("training", "allocation", "idle"):
                rows[row.who][row.kind] = together(rows[row.who].get(row.kind), row)
    return rows


def together(one: Row | None, other: Row) -> Row:
    """Add two rows. The dollars are unknown if either row's dollars are."""
    if one is None:
        return other
    unknown = one.dollars is None or other.dollars is None
    dollars = None if unknown else (one.dollars or 0.0) + (other.dollars or 0.0)
    return msgspec.structs.replace(other, node_seconds=one.node_seconds + other.node_seconds, dollars=dollars)
