"""Money: the expected and the actual cost of a run, the reserve of a budget, and the rows of the ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec


@dataclass(frozen=True)
class Quote:
    """A run's estimated cost, and the greatest cost within the run's limits, in dollars. `why` explains a None.

    `price` is dollars per node hour.
    """

    estimated: float | None = None
    greatest: float | None = None
    price: float | None = None
    why: str = ""


class Reserved(msgspec.Struct, frozen=True, array_like=True):
    """The amount reserved in a budget for a run: `most` dollars, of which `spent` are already spent, in any month.

    `warned_at` and `reached_at` say when the run's cost reached `warn` percent and all of the limit per run.
    """

    most: float
    at: datetime
    spent: float = 0.0
    ended: datetime | None = None
    warned_at: datetime | None = None
    reached_at: datetime | None = None


@dataclass(frozen=True)
class Account:
    """The state of a project's budget: the ledger's spending in `month`, and the reserve for the project's runs.

    `warned_at` and `reached_at` say when `warn` percent and all of the month's amount were spent.
    """

    project: str
    month: str  # 202601
    spent: float = 0.0
    reserved: dict[str, Reserved] = field(default_factory=dict)
    warned_at: datetime | None = None
    reached_at: datetime | None = None

    @property
    def committed(self) -> float:
        """Return the spent dollars plus the possible further dollars of the reserved runs."""
        return self.spent + sum(max(0.0, kept.most - kept.spent) for kept in self.reserved.values())


class Row(msgspec.Struct, frozen=True, array_like=True):
    """A day's charge for one kind of use of one cluster: to a run, a lease, or ('') to no one.

    `dollars` is None if the price is unknown. `owner` and `project` are '' if unknown. `owner_id` is the owner's object
    id in Entra ID; days closed before ids were recorded have none.
    """

    kind: str
    who: str
    owner: str
    project: str
    node_seconds: float
    dollars: float | None
    owner_id: str = ""


@dataclass(frozen=True)
class Day:
    """One cluster on one day in UTC (20260131): the charges, and the costs of the alternatives.

    `peak` is the largest number of nodes; `price` is dollars per node hour, 0 if unknown. `default_seconds` are the
    node seconds if only Azure ML had released nodes, after its default of 120 s. `began` is when the day's first node
    existed; days closed before it was recorded have none. `unknown_seconds` are the node seconds that the cluster may
    have had, at most, while nobody counted its nodes: no charge covers them. `problem` says why the record of a closed
    day is unreadable: its charges are then unknown, and `rows` is empty.
    """

    cluster: str
    day: str
    rows: tuple[Row, ...] = ()
    peak: int = 0
    price: float = 0.0
    default_seconds: float = 0.0
    problem: str = ""
    began: datetime | None = None
    unknown_seconds: float = 0.0


def month_of(at: datetime) -> str:
    """Return the month of a moment in UTC, for example 202601."""
    return f"{at.astimezone(UTC):%Y%m}"
