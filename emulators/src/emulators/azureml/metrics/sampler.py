"""Measures all nodes every few seconds, and keeps the sums of each minute for 93 days, as Azure Monitor does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from emulators.azureml.kernel.database import opened
from emulators.azureml.kernel.models import Cluster, NodeState
from emulators.azureml.metrics.measuring import Measured, Measurer
from emulators.azureml.metrics.query import MINUTE, Query, Sample
from emulators.azureml.scheduling.scheduler import Scheduler
from emulators.azureml.workspace.workspace import Workspace

log = logging.getLogger(__name__)

KEPT_SECONDS = 93 * 86400
SCHEMA = """
CREATE TABLE IF NOT EXISTS samples (
    metric TEXT, about TEXT, minute INTEGER, dimensions TEXT,
    count INTEGER, total REAL, minimum REAL, maximum REAL,
    PRIMARY KEY (metric, about, minute, dimensions)) WITHOUT ROWID;
"""
ADD = """
INSERT INTO samples VALUES (?, ?, ?, ?, 1, ?, ?, ?) ON CONFLICT DO UPDATE SET
    count = count + 1, total = total + excluded.total,
    minimum = min(minimum, excluded.minimum), maximum = max(maximum, excluded.maximum)
"""
ABOUT = ("runid", "clustername")  # the dimensions by which samples are found
STATES = {
    "Active Nodes": {NodeState.RUNNING},
    "Idle Nodes": {NodeState.IDLE},
    "Leaving Nodes": {NodeState.LEAVING},
    "Preempted Nodes": {NodeState.PREEMPTED},
    "Unusable Nodes": set[NodeState](),
    "Total Nodes": set(NodeState),
}


class Samples:
    """The sums of each minute, in a separate file."""

    def __init__(self, path: Path) -> None:
        self._db = opened(path, SCHEMA)

    def close(self) -> None:
        self._db.close()

    def add(self, measured: Iterable[Measured], at: float) -> None:
        """Add values measured at this time, in Unix seconds."""
        minute = int(at) // MINUTE * MINUTE
        rows = [
            (metric, _about(dimensions), minute, json.dumps(dimensions, sort_keys=True), value, value, value)
            for metric, dimensions, value in measured
        ]
        with self._db:
            self._db.executemany(ADD, rows)

    def forget(self, before: float) -> None:
        with self._db:
            self._db.execute("DELETE FROM samples WHERE minute < ?", (before,))

    def of(self, query: Query) -> dict[str, list[Sample]]:
        """Return the samples for the query's metrics and time, by metric, oldest first."""
        begin = int(query.since.timestamp()) // MINUTE * MINUTE
        values = [query.wanted[name] for name in ABOUT if name in query.wanted]
        about = sorted(values[0]) if values and "*" not in values[0] else None
        return {
            metric.name: list(self._read(metric.name, (begin, query.until.timestamp()), about))
            for metric in query.metrics
        }

    def _read(self, metric: str, span: tuple[float, float], about: Sequence[str] | None) -> Iterator[Sample]:
        which = "" if about is None else f"AND about IN ({','.join('?' * len(about))})"
        found = self._db.execute(
            f"SELECT minute, dimensions, count, total, minimum, maximum FROM samples "  # noqa: S608, only question marks
            f"WHERE metric = ? AND minute >= ? AND minute < ? {which} ORDER BY minute",
            (metric, *span, *(about or ())),
        )
        for minute, dimensions, *numbers in found:
            yield Sample(minute, json.loads(dimensions), *numbers)


def _about(dimensions: Mapping[str, str]) -> str:
    named = {name.lower(): value for name, value in dimensions.items()}
    return next((named[name] for name in ABOUT if name in named), "")


class Sampler:
    """Measures until cancelled."""

    def __init__(self, workspace: Workspace, scheduler: Scheduler, samples: Samples) -> None:
        self.samples = samples
        self._workspace, self._scheduler = workspace, scheduler
        self._measurer = Measurer()

    async def run(self) -> None:
        pause, last = self._workspace.config.measured_every_seconds, time.monotonic()
        self.samples.forget(time.time() - KEPT_SECONDS)
        while True:
            await asyncio.sleep(pause)
            now = time.monotonic()
            work = self._scheduler.work()
            measured = list(counts(self._workspace.every_cluster()))
            if work:
                with contextlib.suppress(OSError):  # the folder may be removed with its job
                    measured += await asyncio.to_thread(self._measurer.measure, work, now - last)
            last = now
            self.samples.add(measured, time.time())


def counts(clusters: Iterable[Cluster]) -> Iterator[Measured]:
    """Return the nodes of each cluster by state."""
    for cluster in clusters:
        about = {"Scenario": "Training", "ClusterName": cluster.name}
        for metric, states in STATES.items():
            yield metric, about, float(sum(node.state in states for node in cluster.nodes))
