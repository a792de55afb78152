"""The contract of shared.clusters.ports.Samples, tested on the fake and on Azure Table Storage."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shared.adapters.storage.account import StorageClients
from shared.adapters.tables.sample_table import TableSamples
from shared.clusters.ports import Samples
from shared.clusters.samples import Sample
from tests.fakes.ports import FakeSamples

NOW = datetime(2026, 1, 31, 23, 50, 5, 678901, tzinfo=UTC)


@pytest.fixture(params=["fake", "tables", "own_tables"])
def samples(request: pytest.FixtureRequest) -> Samples:
    if request.param == "fake":
        return FakeSamples()
    tables: StorageClients = request.getfixturevalue(request.param)
    return TableSamples(tables.table)


def sample(minutes: float, cluster: str = "cpu-cluster", running: int = 1) -> Sample:
    at = NOW + timedelta(minutes=minutes)
    return Sample(cluster, at, "Standard_D2s_v5", "low_priority", 2, running, 1, 0, 0, 0, "Steady")


def test_a_period_is_read_across_midnight(samples: Samples) -> None:
    """`between` returns the cluster's samples in `since <= time < until`, oldest first, across days and months."""
    kept = [sample(minutes) for minutes in (0, 5, 15, 20, 1500)]
    for one in [*reversed(kept), sample(10, "cpu-cluster-2")]:
        samples.record(one)
    assert list(samples.between("cpu-cluster", NOW, NOW + timedelta(days=2))) == kept
    assert list(samples.between("cpu-cluster", kept[1].at, kept[3].at)) == kept[1:3]
    assert list(samples.between("nowhere", NOW, NOW + timedelta(days=1))) == []


def test_the_first_day_is_that_of_the_oldest_sample(samples: Samples) -> None:
    """`first_day` returns the UTC midnight before a cluster's oldest sample, whatever other clusters have."""
    for one in (sample(0), sample(1500), sample(-3000, "cpu-cluster-2"), sample(-3000, "cpu")):
        samples.record(one)
    assert samples.first_day("cpu-cluster") == datetime(2026, 1, 31, tzinfo=UTC)
    assert samples.first_day("nowhere") is None


def test_a_second_sample_of_the_same_moment_replaces_the_first(samples: Samples) -> None:
    """Of two samples of the same moment, the last one is kept."""
    samples.record(sample(0, running=1))
    samples.record(sample(0, running=4))
    (found,) = samples.between("cpu-cluster", NOW, NOW + timedelta(seconds=1))
    assert (found.running, found.nodes) == (4, 5)


def test_clusters_that_have_samples_are_known(samples: Samples) -> None:
    """`clusters` lists each cluster that has ever been sampled, whatever its name, and none before."""
    assert samples.clusters() == []
    for name in ("b", "a", "a", "clusters", "Ä/?"):
        samples.record(sample(0, name))
    assert sorted(samples.clusters()) == ["a", "b", "clusters", "Ä/?"]
