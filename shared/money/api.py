"""Costs as the JSON of the HTTP API."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from shared.clusters.samples import day_of
from shared.kernel.errors import Impossible
from shared.kernel.memory import Topic
from shared.kernel.parsing import read_time
from shared.money.daily_charges import KEPT, charged
from shared.money.decide import of_month
from shared.money.model import Day
from shared.money.policy import Policy
from shared.money.ports import MoneyPorts
from shared.money.report import Line, report
from shared.money.sampled import start_of_day

Json = dict[str, Any]
LONGEST = timedelta(days=366)
_MONTH_DAYS = 365.25 / 12
# The time of the computation, and the charges. The report states until when it counts. Each report reads the budgets.
CHARGES = Topic[tuple[datetime, list[Day]]](
    "charges", timedelta(seconds=10), most=4, keeps=lambda charges: not any(day.problem for day in charges[1])
)


class CostsQuery(Struct):
    by: Annotated[
        Literal["run", "cluster", "project", "owner", "grant"],
        Meta(description="What each line of the report stands for."),
    ] = "project"
    since: (
        Annotated[
            str,
            Meta(
                min_length=1,
                description="Start of the report, rounded down to a whole day in UTC. Default: this month.",
            ),
        ]
        | UnsetType
    ) = UNSET


class CostLine(Struct):
    """Dollars by payer. Costs without a run, project, owner or grant have the key ''."""

    key: Annotated[
        str, Meta(description="For an owner, the object id in Entra ID, or else the name that the owner gave.")
    ]
    name: Annotated[str, Meta(description="The name of an owner with an object id, or a grant's; otherwise empty.")]
    spent: float
    training: float
    allocation: float
    idle: float
    lease: float
    unexplained: float
    idle_share: Annotated[float, Meta(description="The share that was neither training nor starting.")]
    node_hours: float
    unpriced_hours: Annotated[float, Meta(description="Node hours without a known price; not included in the dollars.")]
    unknown_hours: Annotated[
        float,
        Meta(
            description=(
                "Most node hours possible in times without node counts; not included in the dollars. Only by cluster."
            )
        ),
    ]
    saved_always_on: Annotated[
        float | None,
        Meta(
            description=(
                "Savings compared with keeping the maximum number of nodes up since the first one. Only by cluster."
            )
        ),
    ]
    saved_default: Annotated[
        float | None, Meta(description="Savings compared with Azure ML's default idle time. Only by cluster.")
    ]


class CostDay(Struct):
    day: str
    training: float
    allocation: float
    idle: float
    lease: float
    unexplained: float


class BudgetState(Struct):
    """A project's budget. `kept_back` is the possible further cost of the project's live runs."""

    project: str
    month: float | None
    run: float | None
    spent: float
    kept_back: float
    reached_at: datetime | None


class CostGap(Struct):
    """A closed day of a cluster with an unreadable record. Totals and budgets leave out the costs of this day."""

    day: str
    cluster: str
    why: str
    advice: Annotated[str, Meta(description="What brings it back.")]


class CostReport(Struct):
    since: datetime
    until: datetime
    by: str
    total: CostLine
    lines: list[CostLine]
    days: list[CostDay]
    standing: Annotated[dict[str, float], Meta(description="Costs without any node, for the same time.")]
    budgets: list[BudgetState]
    missing: Annotated[list[CostGap], Meta(description="Days whose record can't be read; not included in the costs.")]


def get_costs(ports: MoneyPorts, query: CostsQuery) -> Annotated[Json, CostReport]:
    """Return the cost of the nodes since a day, grouped as requested, and the state of each budget.

    Without `since` the report covers this month. Days are whole days in UTC. `until` is at most ten seconds ago. Raises
    Impossible for a time in the future or more than a year ago.
    """
    now = ports.clock()
    since = start_of_day(read_time(query.since)) if query.since else start_of_day(now).replace(day=1)
    if since > now or now - since > LONGEST:
        raise Impossible(f"since is {since.isoformat()}; it must be within the last {LONGEST.days} days.", "bad_time")
    until, days = ports.memory.answer(CHARGES, now, lambda: (now, charged(ports, since, now).days), since)
    cost_report = report(days, query.by, until)
    return {
        "since": since.isoformat(),
        "until": until.isoformat(),
        "by": query.by,
        "total": _line(cost_report.total),
        "lines": [_line(line) for line in cost_report.lines],
        "days": [{"day": _date(day), **kinds} for day, kinds in cost_report.days.items()],
        "standing": _standing(ports.money, (until - since) / timedelta(days=1)),
        "budgets": budgets(ports),
        "missing": [_gap(day, now) for day in days if day.problem],
    }


def _standing(money: Policy, days: float) -> dict[str, float]:
    return {name: month * days / _MONTH_DAYS for name, month in sorted(money.standing.items())}


def _gap(day: Day, now: datetime) -> Json:
    """Return an unreadable day with advice: recompute the day from node counts, or restore its row."""
    closing = f"the row '!closed' of the partition 'day!{day.day}' in the table 'money'"
    advice = "Restore its row from a backup of the table 'money'; the cloud's own bill has the day's sum."
    if day.day >= day_of(now - KEPT + timedelta(days=1)):
        advice = f"Delete {closing}: Trainyard then computes the day again from the node counts."
    return {"day": _date(day.day), "cluster": day.cluster, "why": day.problem, "advice": advice}


def _date(day: str) -> str:
    return f"{day[:4]}-{day[4:6]}-{day[6:]}"


def budgets(ports: MoneyPorts) -> list[Json]:
    """Return every project's budget, with this month's spending and the amount reserved for its runs."""
    return [_budget(ports, project) for project in sorted(ports.money.budgets)]


def _budget(ports: MoneyPorts, project: str) -> Json:
    budget, stored = ports.money.budgets[project], ports.books.account(project)
    account = of_month(stored.value, ports.clock()) if stored else None
    reached = account.reached_at if account else None
    return {
        "project": project,
        "month": budget.month,
        "run": budget.run,
        "spent": account.spent if account else 0.0,
        "kept_back": account.committed - account.spent if account else 0.0,
        "reached_at": reached.isoformat() if reached else None,
    }


def _line(line: Line) -> Json:
    return {
        "key": line.key,
        "name": line.name,
        "spent": line.spent,
        **line.kinds,
        "idle_share": line.idle_share,
        "node_hours": line.node_hours,
        "unpriced_hours": line.unpriced_hours,
        "unknown_hours": line.unknown_hours,
        "saved_always_on": line.saved_always_on,
        "saved_default": line.saved_default,
    }
