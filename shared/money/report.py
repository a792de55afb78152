"""Report the spending by person and purpose, and the costs of the alternatives. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from shared.kernel.person import PROGRAM
from shared.money.ledger import KINDS
from shared.money.model import Day, Row

BY = ("run", "cluster", "project", "owner", "grant")
MOST_LINES = 1000
OTHERS = "(others)"
_HOUR = 3600


@dataclass(frozen=True)
class Line:
    """One line of a report, in dollars by kind. `node_hours` counts every hour, `unpriced_hours` the hours without a
    price. `unknown_hours` are the possible further node hours during gaps in the counts.

    For an owner, `key` is the object id in Entra ID and `name` the owner's latest name; without an id, `key` is the
    name that the owner gave. For a grant, `key` is the id and `name` the purpose. Only whole clusters have unknown
    hours, and savings against always-on and Azure ML's default; for other lines, these are 0 and None.
    """

    key: str
    kinds: Mapping[str, float]
    node_hours: float = 0.0
    unpriced_hours: float = 0.0
    saved_always_on: float | None = None
    saved_default: float | None = None
    name: str = ""
    unknown_hours: float = 0.0

    @property
    def spent(self) -> float:
        return sum(self.kinds.values())

    @property
    def idle_share(self) -> float:
        """Return the share of the money spent neither on training nor on starting nodes."""
        idle = self.spent - self.kinds.get("training", 0.0) - self.kinds.get("allocation", 0.0)
        return idle / self.spent if self.spent else 0.0


@dataclass(frozen=True)
class GroupedCosts:
    """Cost lines grouped as requested, most expensive first; their total; and each day by kind."""

    lines: list[Line]
    total: Line
    days: dict[str, dict[str, float]] = field(default_factory=dict)


Key = tuple[
    str, bool
]  # the key, and whether it is an object id, so that a name that equals an id is not mistaken for it

_KEY: dict[str, Callable[[Day, Row], Key]] = {
    "run": lambda _, row: (row.who, False),
    "cluster": lambda day, _: (day.cluster, False),
    "project": lambda _, row: (row.project, False),
    "owner": lambda _, row: (row.owner_id or row.owner, bool(row.owner_id)),
    "grant": lambda _, row: (grant, True) if (grant := _grant(row.owner_id)) else ("", False),
}


def _grant(owner_id: str) -> str:
    """Return the id of the grant whose program has this owner id; '' for a person."""
    return owner_id.removeprefix(PROGRAM) if owner_id.startswith(PROGRAM) else ""


def report(days: Iterable[Day], by: str, until: datetime) -> GroupedCosts:
    """Group the rows of these days by run, cluster, project, owner or grant. The last day ends at `until`.

    Each row of the books is in exactly one line. Rows without a run, project, owner or grant have the key ''. An owner
    is an object id, whatever the name: two people with one name are two owners, and a renamed person is one owner.
    """
    days_in_order = sorted(days, key=lambda day: day.day)
    rows: dict[Key, list[Row]] = defaultdict(list)
    by_day: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(KINDS, 0.0))
    for day in days_in_order:
        for row in day.rows:
            rows[_KEY[by](day, row)].append(row)
            by_day[day.day][row.kind] += row.dollars or 0.0
    lines = [_line(key, its, its[-1].owner if is_id else "") for (key, is_id), its in rows.items()]
    if by == "cluster":
        lines = [_with_others(line, [d for d in days_in_order if d.cluster == line.key], until) for line in lines]
    lines.sort(key=lambda line: (-line.spent, -line.node_hours, line.key))
    total = _with_others(_line("", [row for its in rows.values() for row in its]), days_in_order, until)
    return GroupedCosts(_at_most(lines), total, dict(sorted(by_day.items())))


def _line(key: str, rows: Iterable[Row], name: str = "") -> Line:
    kinds = dict.fromkeys(KINDS, 0.0)
    seconds = unpriced = 0.0
    for row in rows:
        kinds[row.kind] += row.dollars or 0.0
        seconds += row.node_seconds
        unpriced += row.node_seconds if row.dollars is None else 0.0
    return Line(key, kinds, seconds / _HOUR, unpriced / _HOUR, name=name)


def _with_others(line: Line, days: list[Day], until: datetime) -> Line:
    """Return the line with the savings against the maximum number of nodes, and against Azure ML's default, and the
    unknown hours.
    """
    line = replace(line, unknown_hours=sum(day.unknown_seconds for day in days) / _HOUR)
    if not all(day.price for day in days):
        return line
    default = sum(day.default_seconds / _HOUR * day.price for day in days)
    saved = _always_on(days, until) - line.spent, default - line.spent
    return replace(line, saved_always_on=saved[0], saved_default=saved[1])


def _always_on(days: list[Day], until: datetime) -> float:
    """Return the cost of each cluster's peak number of nodes from the cluster's first node on.

    Each day counts at its own price; a day without nodes counts at the price of the day before.
    """
    total = 0.0
    for cluster in {day.cluster for day in days}:
        its = sorted((day for day in days if day.cluster == cluster), key=lambda day: day.day)
        begins = [_began(its[0], until), *(_midnight(day) for day in its[1:])]
        hours = [(end - begin).total_seconds() / _HOUR for begin, end in pairwise([*begins, until])]
        total += max(day.peak for day in its) * sum(day.price * h for day, h in zip(its, hours, strict=True))
    return total


def _began(day: Day, until: datetime) -> datetime:
    """Return when the day's first node existed; if unrecorded, the latest moment that the day's node seconds allow."""
    if day.began:
        return day.began
    seconds = sum(row.node_seconds for row in day.rows) / max(day.peak, 1)
    return min(_midnight(day) + timedelta(days=1), until) - timedelta(seconds=seconds)


def _midnight(day: Day) -> datetime:
    return datetime.strptime(day.day, "%Y%m%d").replace(tzinfo=UTC)


def _at_most(lines: list[Line]) -> list[Line]:
    """Return the first lines and a line for the rest, to keep the sum complete."""
    if len(lines) <= MOST_LINES:
        return lines
    kept, others = lines[: MOST_LINES - 1], lines[MOST_LINES - 1 :]
    kinds = {kind: sum(line.kinds[kind] for line in others) for kind in KINDS}
    hours = sum(line.node_hours for line in others), sum(line.unpriced_hours for line in others)
    return [*kept, Line(OTHERS, kinds, *hours)]
