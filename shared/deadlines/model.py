"""The deadline of a run, and the run's progress towards the deadline. One column of the run's row."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from shared.deadlines.plan import NodeChoice
from shared.deadlines.pool import Pool
from shared.deadlines.pools import Sighting
from shared.kernel.parts import column, part


@dataclass(frozen=True)
class DeadlineTerms:
    """The run's deadline, the clusters from which it may choose, and the expected costs in dollars.

    Written once, when the run is recorded. `pool` and `pools` describe how low-priority nodes came and went until then.
    Prices are dollars per node-hour; `change_seconds` is the usual time until new nodes work.
    """

    done_by: datetime
    takes_seconds: float = 0.0  # seconds of work on all the run's nodes
    low_cluster: str = ""
    # Low-priority clusters with the same machines, tried in turn while the first has no nodes
    further_low_clusters: tuple[str, ...] = ()
    dedicated_cluster: str = ""
    low_price: float = 0.0
    dedicated_price: float = 0.0
    change_seconds: float = 0.0
    cost_at_best: float = 0.0
    cost_at_worst: float = 0.0
    cost_expected: float = 0.0
    pool: Pool = field(default_factory=Pool)  # that a run meets which always asks the most promising cluster
    pools: tuple[Pool, ...] = ()  # of each low-priority cluster, in their order

    @property
    def low_clusters(self) -> tuple[str, ...]:
        return (self.low_cluster, *self.further_low_clusters)

    @property
    def models(self) -> dict[str, Pool]:
        """The model of each low-priority cluster, by name."""
        return dict(zip(self.low_clusters, self.pools or [self.pool] * len(self.low_clusters), strict=False))


@dataclass(frozen=True)
class Pace:
    """The run's progress towards the deadline. The checks of the run write this part."""

    done_share: float = 0.0  # completed share of the work, from 0 to 1
    line_share: float = 0.0  # share that must be completed by now, so that dedicated nodes alone can meet the deadline
    holds: NodeChoice | None = None
    holds_why: str = ""
    done_at: datetime | None = column("expected_done_at", None)  # expected end, with dedicated nodes from now on
    paced_at: datetime | None = None  # time of the last check
    next_look: str = ""  # token of the message for the next check
    late_since: datetime | None = None  # when the work turned out to be larger than stated
    change_measured: float = 0.0  # seconds per change of nodes, as measured in this run; 0 before the first change
    pause_measured: float = 0.0  # longest time after a change in which nodes worked without a further step
    lost_seconds: float = 0.0  # total of such times, in seconds
    sightings: dict[str, Sighting] = field(default_factory=dict)  # of the low-priority clusters, by name


@dataclass(frozen=True)
class Date:
    """A run's deadline, and the pace. A run without this part has no deadline."""

    due: DeadlineTerms = part(DeadlineTerms, required=True)
    pace: Pace = part(Pace)

    @property
    def change_seconds(self) -> float:
        """Seconds per change of nodes: as measured in this run or, before the first change, as usual."""
        return self.pace.change_measured or self.due.change_seconds


def span(seconds: float) -> str:
    """A duration in words: 30 s, 7 min, 2 h 05 min."""
    minutes = round(seconds / 60)
    if not minutes:
        return f"{seconds:.0f} s"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
