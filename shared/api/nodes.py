"""Recent node counts of the clusters and decisions about them, from the ledger's own samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Annotated

from msgspec import Meta, Struct

from shared.api import records
from shared.clusters.ports import ClusterPorts
from shared.clusters.samples import COUNTED_EVERY, HOLDS, STEADY, Sample
from shared.kernel.encode import Json

MOST_HOURS = 72
MOST_SAMPLES = 1000  # per cluster; beyond that, the states that lasted shortest are left out
MOST_DECISIONS = 20
UNCOUNTED = "nobody"  # marks a sample for a time without counts
KINDS = ("running", "idle", "preparing", "leaving", "unusable")


class NodesQuery(Struct):
    hours: Annotated[float, Meta(gt=0, le=MOST_HOURS, description="How far to look back.")] = 24.0


class NodeSample(Struct):
    """The nodes of the cluster from `at` until the next sample. If not `known`, the nodes were not counted."""

    at: datetime
    running: int
    idle: int
    preparing: int
    leaving: int
    unusable: int
    known: bool


class ClusterNodes(Struct):
    cluster: str
    samples: list[NodeSample]
    decisions: Annotated[
        list[records.DecisionAnswer], Meta(description="Decisions that changed something, newest first.")
    ]


class NodesReport(Struct):
    since: datetime
    until: datetime
    clusters: list[ClusterNodes]


def list_nodes(ports: ClusterPorts, query: NodesQuery) -> Annotated[Json, NodesReport]:
    """Return the changes of each cluster's nodes over the last hours, and the decisions about the cluster."""
    until = ports.clock()
    since = until - timedelta(hours=query.hours)
    return {
        "since": since.isoformat(timespec="minutes"),
        "until": (until + timedelta(minutes=1)).isoformat(
            timespec="minutes"
        ),  # rounded, so that the answer changes only once a minute
        "clusters": [
            {
                "cluster": name,
                "samples": [
                    {
                        "at": sample.at.isoformat(),
                        **{kind: getattr(sample, kind) for kind in KINDS},
                        "known": sample.seen_by != UNCOUNTED,
                    }
                    for sample in _at_most(list(changes(with_gaps(ports.samples.between(name, since, until)))))
                ],
                "decisions": [records.decision(d) for d in ports.decisions.history(name, MOST_DECISIONS)],
            }
            for name in ports.samples.clusters()
        ],
    }


def with_gaps(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Yield the samples, and one without nodes where a count has no successor in time and the size is unknown."""
    before: Sample | None = None
    for sample in samples:
        if before and sample.at - before.at > HOLDS and not _stayed(before, sample):
            yield Sample(sample.cluster, before.at + COUNTED_EVERY, sample.vm_size, sample.tier, seen_by=UNCOUNTED)
        yield sample
        before = sample


def _stayed(before: Sample, after: Sample) -> bool:
    since = after.allocation_since if after.allocation == STEADY else None
    return since is not None and since <= before.at and before.nodes == after.nodes


def changes(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Yield the samples whose node counts differ from the sample before."""
    before: tuple[object, ...] | None = None
    for sample in samples:
        now = (*(getattr(sample, kind) for kind in KINDS), sample.seen_by == UNCOUNTED)
        if now != before:
            yield sample
        before = now


def _at_most(samples: list[Sample]) -> list[Sample]:
    """Return at most MOST_SAMPLES samples, leaving out the samples of the shortest duration."""
    if len(samples) <= MOST_SAMPLES:
        return samples
    lasted = [(b.at - a.at, i) for i, (a, b) in enumerate(pairwise(samples))]
    dropped = {i for _, i in sorted(lasted)[: len(samples) - MOST_SAMPLES]}
    return [sample for i, sample in enumerate(samples) if i not in dropped]
