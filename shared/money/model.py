"""Money: what a run will and did cost, what is kept back of a budget, and the rows of the ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec


@dataclass(frozen=True)
class Quote:
    """What a run is estimated to cost, and the most that its limits allow. None where that is not known; `why` says it.

    `price` is dollars an hour for one node.
    """

    estimated: float | None = None
    greatest: float | None = None
    price: float | None = None
    why: str = ""


class Reserved(msgspec.Struct, frozen=True, array_like=True):
    """What is kept back of a budget for a run: `most` dollars, of which `spent` are spent already, in any month.

    `warned_at` and `reached_at` say when the run had cost `warn` percent and all of what one run may cost.
    """

    most: float
    at: datetime
    spent: float = 0.0
    ended: datetime | None = None
    warned_at: datetime | None = None
    reached_at: datetime | None = None


@dataclass(frozen=True)
class Account:
    """A project's budget in use: what the ledger says was spent in `month`, and what is kept back for its runs.

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
        """What is spent, and what the reserved runs may still spend."""
        return self.spent + sum(max(0.0, kept.most - kept.spent) for kept in self.reserved.values())


class Row(msgspec.Struct, frozen=True, array_like=True):
    """A day's charge for one kind of use of one cluster: to a run, a lease, or ('') to nobody.

    `dollars` is None where no price is known. `owner` and `project` are '' where nobody said so. `owner_id` is the
    owner's object id in Entra ID; days that were closed before it was kept have none.
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
    """One cluster on one day of UTC (20260131): its charges, and what other ways to run it would have cost.

    `peak` is the most nodes that it had, `price` that of one node for an hour, 0 if unknown. `default_seconds` are the
    node seconds that it would have had if Azure ML alone took nodes away, after its default of 120 s. `began` is when
    it had its first node of the day; days that were closed before it was kept have none. `problem` says
    why the record of a closed day can't be read: its charges are then unknown, and `rows` is empty.
    """

    cluster: str
    day: str
    rows: tuple[Row, ...] = ()
    peak: int = 0
    price: float = 0.0
    default_seconds: float = 0.0
    problem: str = ""
    began: datetime | None = None


def month_of(at: datetime) -> str:
    """The month of a moment in UTC, 202601."""
    return f"{at.astimezone(UTC):%Y%m}"
