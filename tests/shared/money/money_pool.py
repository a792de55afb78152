"""A cluster as Azure ML runs it, minute by minute: nodes start, work, are preempted, idle, stop, and cost money."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random

from shared.clusters.model import Cluster

MINUTE = timedelta(minutes=1)
CANCEL_GRACE = timedelta(minutes=2)  # until a canceled job has left its nodes
Event = tuple[str, str]  # a job and its new status


@dataclass
class Work:
    """A job: its nodes, its remaining work, and the time of its end once it is told to end."""

    nodes: int
    left: timedelta
    running: bool = False
    ends: datetime | None = None


@dataclass
class Pool:
    """A cluster. `declared` is the cluster that the app sees; its minimum and idle time may change at any time."""

    declared: Cluster
    price: float  # dollars an hour for one node
    starting: list[datetime] = field(default_factory=list)  # when each will be ready
    idle: list[datetime] = field(default_factory=list)  # since when each is idle
    jobs: dict[str, Work] = field(default_factory=dict)
    bill: float = 0.0
    resized_at: datetime = datetime(2026, 1, 1, tzinfo=UTC)  # before the month

    @property
    def busy(self) -> int:
        return sum(work.nodes for work in self.jobs.values() if work.running)

    @property
    def nodes(self) -> int:
        return len(self.starting) + len(self.idle) + self.busy

    def seen(self) -> Cluster:
        """Return the cluster as the workspace shows it now."""
        return replace(
            self.declared,
            nodes=self.nodes,
            busy_nodes=self.busy + len(self.starting),
            running_nodes=self.busy,
            idle_nodes=len(self.idle),
            preparing_nodes=len(self.starting),
            allocation="Steady",
            allocation_since=self.resized_at,
        )

    def pay(self) -> None:
        """Pay for a minute of the nodes that are up now."""
        self.bill += self.nodes * self.price / 60

    def step(self, now: datetime, dice: Random, evicts: bool = True) -> list[Event]:
        """Do what happens at the beginning of this minute."""
        before = self.nodes
        events = [event for name in list(self.jobs) for event in self._job(name, now, dice, evicts)]
        self.idle += [at for at in self.starting if at <= now]
        self.starting = [at for at in self.starting if at > now]
        events += self._place(now)
        self._scale(now, dice)
        if self.nodes != before:
            self.resized_at = now
        return events

    def cancel(self, name: str, now: datetime) -> None:
        work = self.jobs.get(name)
        if work and work.ends is None:
            work.ends = now + CANCEL_GRACE if work.running else now

    def _job(self, name: str, now: datetime, dice: Random, evicts: bool) -> list[Event]:
        work = self.jobs[name]
        if work.ends is not None:
            return self._over(name, "Canceled", now) if now >= work.ends else []
        if not work.running:
            return []
        work.left -= MINUTE
        if work.left <= timedelta():
            return self._over(name, "Completed" if dice.random() < 0.9 else "Failed", now)
        if evicts and self.declared.tier == "low_priority" and dice.random() < 0.004:
            work.running = False  # the preempted node is gone; the others are free
            self.idle += [now] * (work.nodes - 1)
            return [(name, "Queued")]
        return []

    def _over(self, name: str, raw: str, now: datetime) -> list[Event]:
        work = self.jobs.pop(name)
        self.idle += [now] * work.nodes if work.running else []
        return [(name, raw)]

    def _place(self, now: datetime) -> list[Event]:
        events = []
        for name, work in self.jobs.items():
            if not work.running and work.ends is None and len(self.idle) >= work.nodes:
                del self.idle[-work.nodes :]
                work.running = True
                events.append((name, "Running"))
        return events

    def _scale(self, now: datetime, dice: Random) -> None:
        wanted = sum(work.nodes for work in self.jobs.values() if work.ends is None or work.running)
        target = min(self.declared.max_nodes, max(self.declared.min_nodes, wanted))
        self.starting += [now + MINUTE * dice.randint(2, 8) for _ in range(target - self.nodes)]
        limit = timedelta(seconds=self.declared.idle_seconds)
        for since in sorted(self.idle)[: max(0, self.nodes - target)]:
            if now - since >= limit:
                self.idle.remove(since)
