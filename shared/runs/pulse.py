"""The current facts about a running run: its logs, its pace and its nodes; and its possible problems. Pure.

A feature that measures nodes, or that has causes of its own, declares that in its `feature.py`
(shared/runs/features.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

STEPPED = timedelta(seconds=100)  # slightly more than the time between two checks


@dataclass(frozen=True)
class NodePulse:
    """The newest measurements of one node. None: not measured.

    `job` is the job that used the node last. `at` is the start of the newest sample's minute. `cores` are processors in
    use and `gpu` is percent, both for the last minutes, oldest first. `moved` is megabytes a second through disks and
    network; memory and disk are in megabytes.
    """

    node: str
    at: datetime
    cores: tuple[float, ...] = ()
    cores_in_all: float | None = None
    gpu: tuple[float, ...] = ()
    moved: float | None = None
    memory: float | None = None
    memory_in_all: float | None = None
    disk_free: float | None = None
    disk_in_all: float | None = None
    job: str = ""


@dataclass(frozen=True)
class Pulse:
    """The known facts about a running run.

    - `began`: when it got its nodes, or when nodes of an elastic run last joined or left
    - `grew`: when the log of each rank last grew
    - `pause`: the longest time without a line of the log from which the run recovered
    - `paces`: steps a minute that the log reported, of the last checks, oldest first
    - `text`: the end of the log
    - `nodes`: the use of its nodes; empty without measurements
    - `stepped_at`: when the log last reported a step of the training; None: not known
    - `steady_since`: when steps last resumed after a long pause; None: not known
    """

    now: datetime
    began: datetime
    grew: Mapping[int, datetime] = field(default_factory=dict)
    pause: timedelta = timedelta(0)
    paces: tuple[float, ...] = ()
    text: str = ""
    nodes: tuple[NodePulse, ...] = ()
    stepped_at: datetime | None = None
    steady_since: datetime | None = None

    @property
    def last_line_at(self) -> datetime:
        """When any rank's log last grew, but not before the run began: a team that lost a node forms again first."""
        return max([self.began, *self.grew.values()])

    @property
    def silence(self) -> timedelta:
        """The time since any rank's log grew."""
        return self.now - self.last_line_at

    @property
    def makes_steps(self) -> bool:
        """Whether the training makes steps now, if its log reports steps. While the first node evaluates or saves,
        the others wait for it.
        """
        gap = timedelta(minutes=1.5 / self.paces[-1]) if self.paces else timedelta(0)
        return self.stepped_at is None or self.now - self.stepped_at <= STEPPED + gap

    def is_steady(self, since: datetime) -> bool:
        """Return whether the training has made steps without a long pause since this time."""
        return self.steady_since is None or self.steady_since <= since


@dataclass(frozen=True)
class Ailment:
    """A problem of a running run: a cause of shared/diagnosis/causes.py, the evidence, and what to do.

    `name` tells ailments with the same cause apart, such as those of a trainer's own list.
    """

    cause: str
    summary: str
    evidence: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    name: str = ""
    since: datetime | None = None
