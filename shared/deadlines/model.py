"""What a run with a date has: when it must be done, and where it stands against that. One column of the run's row."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from shared.deadlines.plan import Hold
from shared.deadlines.pool import Pool
from shared.kernel.parts import column, part


@dataclass(frozen=True)
class Due:
    """When it must be done, what it may choose from until then, and what that was expected to cost, in dollars.

    Written when the run is recorded, and never again. `pool` is how low-priority nodes had come and gone until then.
    Prices are an hour of one node; `change_seconds` is what new nodes take.
    """

    done_by: datetime
    takes_seconds: float = 0.0  # of work on all its nodes
    low_cluster: str = ""
    further_low_clusters: tuple[str, ...] = ()  # of the same machines: tried in turn while the first has no nodes
    dedicated_cluster: str = ""
    low_price: float = 0.0
    dedicated_price: float = 0.0
    change_seconds: float = 0.0
    cost_at_best: float = 0.0
    cost_at_worst: float = 0.0
    cost_expected: float = 0.0
    pool: Pool = field(default_factory=Pool)

    @property
    def low_clusters(self) -> tuple[str, ...]:
        return (self.low_cluster, *self.further_low_clusters)

    def next_low(self, cluster: str) -> str:
        """The low-priority cluster to try after this one: the same one if there is no other."""
        each = self.low_clusters
        return each[(each.index(cluster) + 1) % len(each)]


@dataclass(frozen=True)
class Pace:
    """Where the run stands against its date. The looks at the run write this."""

    done_share: float = 0.0  # of the work, from 0 to 1
    line_share: float = 0.0  # the least that must be done by now, for dedicated nodes alone to keep the date
    holds: Hold | None = None
    holds_why: str = ""
    done_at: datetime | None = column("expected_done_at", None)  # with dedicated nodes from now on
    paced_at: datetime | None = None  # the last look
    next_look: str = ""  # the token of the message that brings the next one
    late_since: datetime | None = None  # when it was clear that the work is larger than was said
    change_measured: float = 0.0  # seconds that a change of nodes took in this run until now; 0 before the first
    pause_measured: float = 0.0  # of these those in which nodes worked and no further step was done, at most
    lost_seconds: float = 0.0  # all of those together


@dataclass(frozen=True)
class Date:
    """A run's date, and its pace. Without this part a run has no date."""

    due: Due = part(Due, required=True)
    pace: Pace = part(Pace)

    @property
    def change_seconds(self) -> float:
        """What a change of nodes takes: as measured in this run, before the first as others of the cluster had it."""
        return self.pace.change_measured or self.due.change_seconds


def span(seconds: float) -> str:
    """So long, in words: 30 s, 7 min, 2 h 05 min."""
    minutes = round(seconds / 60)
    if not minutes:
        return f"{seconds:.0f} s"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
