"""The contract of shared.usage.ports.NodeMetrics, tested on the fake and on Azure Monitor of a real local
workspace."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from emulators.process import wait_for
from shared.adapters.azureml.workspace import connect
from shared.adapters.usage.azure_monitor import AzureMonitor
from shared.usage.model import OF_GPUS, Measurement, Metric, NodeSeries, NodeUsage
from shared.usage.ports import NodeMetrics
from tests.contract.wire import LocalAzureML
from tests.fakes.usage import FakeNodeMetrics

BEGIN = timedelta(minutes=10)


@dataclass
class Measured:
    """A job with two GPUs and a job without, both measured just now."""

    metrics: NodeMetrics
    now: datetime

    def nodes(self, *jobs: str) -> dict[str, NodeUsage]:
        return self.metrics.nodes(jobs, self.now - BEGIN, self.now + BEGIN)

    def gpus(self, *jobs: str) -> dict[str, NodeUsage]:
        return self.metrics.gpus(jobs, self.now - BEGIN, self.now + BEGIN)


def of_fake() -> Measured:
    now = datetime(2026, 11, 28, 12, tzinfo=UTC)
    node = [
        NodeSeries(metric, "n", "", (Measurement(now, value, value),))
        for metric, value in ((Metric.CPU, 50.0), (Metric.CORES, 1.0), (Metric.CORES_IN_ALL, 2.0), (Metric.MEMORY, 9.0))
    ]
    gpus = [
        NodeSeries(metric, "n", device, (Measurement(now, value, value),))
        for metric, value in ((Metric.GPU, 40.0), (Metric.GPU_MEMORY, 1500.0), (Metric.GPU_ENERGY, 7.0))
        for device in "01"
    ]
    return Measured(FakeNodeMetrics({"usage-a": NodeUsage((*node, *gpus)), "usage-b": NodeUsage(tuple(node))}), now)


@pytest.fixture(scope="module")
def real(azureml: LocalAzureML) -> Measured:
    for name, gpu in (("usage-a", "count=2 utilization=40 memory=1500"), ("usage-b", "")):
        body = {
            "jobType": "Command",
            "command": "sleep 60",
            "computeId": f"{azureml.part.info['workspace_id']}/computes/cpu-cluster",
            "environmentId": f"{azureml.part.info['workspace_id']}/environments/AzureML-local/versions/1",
            "environmentVariables": {"EMULATORS_GPU": gpu} if gpu else {},
        }
        connect(azureml.workspace).arm.put(f"jobs/{name}", {"properties": body})
    found = Measured(AzureMonitor(azureml.workspace), datetime.now(UTC))
    wait_for(lambda: found.nodes("usage-a", "usage-b").keys() == {"usage-a", "usage-b"}, 60, "measurements", every=0.3)
    return found


@pytest.fixture(params=["fake", "real"])
def measured(request: pytest.FixtureRequest) -> Measured:
    if request.param == "fake":
        return of_fake()
    found: Measured = request.getfixturevalue("real")
    return found


def test_nodes_are_measured_by_job(measured: Measured) -> None:
    """Each job has its own node; values have their units; GPUs are queried separately."""
    found = measured.nodes("usage-a", "usage-b", "usage-c")
    assert found.keys() == {"usage-a", "usage-b"}
    usage = found["usage-a"]
    assert len(usage.nodes()) == 1
    assert not usage.of(Metric.GPU)
    cores, in_all = usage.peak(Metric.CORES), usage.peak(Metric.CORES_IN_ALL)
    assert cores is not None
    assert in_all is not None
    assert 0 <= cores <= in_all < 1000
    assert 0 < (usage.peak(Metric.MEMORY) or 0) < 10_000


def test_gpus_are_measured_by_device(measured: Measured) -> None:
    """Levels are returned unchanged and energy as an amount; a job without GPUs is missing."""
    found = measured.gpus("usage-a", "usage-b")
    assert found.keys() == {"usage-a"}
    usage = found["usage-a"]
    assert {each.metric for each in usage.series} <= OF_GPUS
    assert sorted(each.device for each in usage.of(Metric.GPU)) == ["0", "1"]
    assert usage.average(Metric.GPU) == 40
    assert usage.peak(Metric.GPU_MEMORY) == 1500
    assert (usage.total(Metric.GPU_ENERGY) or 0) > 0


def test_no_job_and_no_time_is_no_request(measured: Measured) -> None:
    assert measured.nodes() == {}
    assert measured.metrics.nodes(["usage-a"], measured.now, measured.now) == {}


def test_before_a_job_nothing_was_measured(measured: Measured) -> None:
    old = measured.now - timedelta(days=1)
    assert measured.metrics.nodes(["usage-a"], old - timedelta(hours=1), old) == {}
