"""The workspace's Azure Monitor metrics are measured on running jobs, and requested as in Azure."""

from __future__ import annotations

import datetime as dt
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from emulator_tests.azureml.clouds import Cloud, cluster_body
from emulators.azureml.metrics.measuring import Measurer, remote_sockets, talks
from emulators.azureml.running.context import Work
from emulators.process import wait_for

VERSION = "api-version=2024-02-01"
# Computes for a while with 200 MB of memory, in a process that a shell starts, and writes 20 MB to the disk.
BUSY = """
import os, pathlib, sys, time
held = bytearray(os.urandom(1 << 20) * 200)
with open("big.bin", "wb") as file:
    file.write(held[: 20 << 20]); file.flush(); os.fsync(file.fileno())
end = time.monotonic() + 60
while time.monotonic() < end and not pathlib.Path(sys.argv[1]).exists():
    sum(n * n for n in range(10_000))
"""


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("gate")


@pytest.fixture(scope="module")
def busy(cloud: Cloud, gate: Any) -> Iterator[Cloud]:
    """A cloud with a computing job `busy` on a node with two simulated GPUs, and a waiting job `idle` on another
    node."""
    program = gate / "busy.py"
    program.write_text(BUSY)
    gpus = {"EMULATORS_GPU": "count=2 utilization=40 memory=1500 capacity=16000 watts=100"}
    cloud.arm("PUT", "computes/measured", cluster_body(maximum=4))  # a separate cluster, without nodes of other tests
    cloud.submit("busy", "measured", f"python {program} {gate}/end", environmentVariables=gpus)
    (gate / "disk").mkdir()
    (gate / "disk" / "full").write_bytes(bytes(60_000_000))
    sizes = {"EMULATORS_NODE": f"memory=2000 disk=100 folder={gate}/disk"}
    cloud.submit("idle", "measured", f"until [ -e {gate}/end ]; do sleep 0.2; done", environmentVariables=sizes)
    for job in ("busy", "idle"):
        cloud.wait(job, "Running")
    wait_for(lambda: total(cloud, "idle", "CpuUtilizationMillicores", "count") >= 3, 60, "some measurements")
    yield cloud
    (gate / "end").touch()


def ask(cloud: Cloud, names: str, **more: str) -> Any:
    now = dt.datetime.now(dt.UTC)
    span = f"{now - dt.timedelta(minutes=30):%Y-%m-%dT%H:%M:%SZ}/{now + dt.timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"
    query = {"metricnames": names, "timespan": span, "interval": "PT1M", **more}
    text = "&".join(f"{key}={value}" for key, value in query.items())
    return cloud.call("GET", f"{cloud.workspace}/providers/Microsoft.Insights/metrics?{VERSION}&{text}")


def points(cloud: Cloud, job: str, name: str, aggregation: str) -> list[float]:
    asked = {"aggregation": aggregation, "$filter": f"RunId eq '{job}' and InstanceId eq '*'"}
    (metric,) = ask(cloud, name, **asked).json()["value"]
    return [each[aggregation] for series in metric["timeseries"] for each in series["data"] if aggregation in each]


def total(cloud: Cloud, job: str, name: str, aggregation: str = "total") -> float:
    return sum(points(cloud, job, name, aggregation))


def test_processors_are_measured_by_job(busy: Cloud) -> None:
    """A job that computes uses more of the processors than a job that sleeps, and not more than there are."""

    def busiest() -> float:
        return max(points(busy, "busy", "CpuUtilizationMillicores", "maximum"))

    wait_for(lambda: busiest() > max(points(busy, "idle", "CpuUtilizationMillicores", "average")), 60, "a difference")
    (capacity,) = set(points(busy, "busy", "CpuCapacityMillicores", "maximum"))
    assert busiest() <= capacity


def test_what_a_process_below_the_jobs_shell_uses_counts(tmp_path: Path) -> None:
    """The measured use is the processor time that the program itself counts, however busy the machine is."""
    program = "import time\nwhile time.process_time() < 0.5: pass\nprint(time.process_time(), flush=True)\ninput()"
    command = ["sh", "-c", f"{shlex.quote(sys.executable)} -c {shlex.quote(program)}; :"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout
        counted = float(job.stdout.readline())
        work = Work(job="j", node="n", cluster="c", processes=(job.pid,), disk=tmp_path, variables={})
        measured = {metric: value for metric, _, value in Measurer().measure([work], elapsed=1000.0)}
        job.communicate("\n", timeout=60)
    assert measured["CpuUtilizationMillicores"] == pytest.approx(counted, abs=0.05), "thousandths of a core, in 1000 s"


def test_memory_and_disk_are_measured_by_job(busy: Cloud) -> None:
    """A job with 200 MB in memory and 20 MB on disk shows both, and the sleeping job shows neither."""
    assert 200 < max(points(busy, "busy", "CpuMemoryUtilizationMegabytes", "maximum")) < 600
    assert max(points(busy, "idle", "CpuMemoryUtilizationMegabytes", "maximum")) < 60
    assert total(busy, "idle", "DiskWriteMegabytes") < 10


def test_a_node_pretends_to_have_gpus(busy: Cloud) -> None:
    """Nodes show simulated GPUs by device, as in EMULATORS_GPU. Other nodes have none."""
    asked = {"aggregation": "average", "$filter": "RunId eq 'busy' and InstanceId eq '*' and DeviceId eq '*'"}
    (metric,) = ask(busy, "GpuUtilizationPercentage", **asked).json()["value"]
    devices = [{each["name"]["value"]: each["value"] for each in its["metadatavalues"]} for its in metric["timeseries"]]
    assert [device["deviceid"] for device in devices] == ["0", "1"]
    assert set(points(busy, "busy", "GpuUtilizationPercentage", "average")) == {40}
    assert set(points(busy, "busy", "GpuMemoryUtilizationMegabytes", "average")) == {1500}
    assert total(busy, "busy", "GpuEnergyJoules") > 0
    assert points(busy, "idle", "GpuUtilizationPercentage", "average") == []


def test_a_node_pretends_to_have_less_memory_and_disk(busy: Cloud) -> None:
    """A node has the memory and disk of EMULATORS_NODE: the files in a folder use the disk, and the job's processes
    use the memory."""
    assert set(points(busy, "idle", "CpuMemoryCapacityMegabytes", "average")) == {2000}
    assert set(points(busy, "idle", "DiskUsedMegabytes", "average")) == {60}
    assert set(points(busy, "idle", "DiskAvailMegabytes", "average")) == {40}
    assert max(points(busy, "busy", "CpuMemoryCapacityMegabytes", "average")) > 2000


def test_nodes_are_counted_by_cluster(busy: Cloud) -> None:
    """While both jobs run, two nodes of the cluster are active."""
    asked = {"aggregation": "maximum", "$filter": "ClusterName eq 'measured'"}
    active, everything = ask(busy, "Active Nodes,Total Nodes", **asked).json()["value"]
    assert max(each.get("maximum", 0) for each in active["timeseries"][0]["data"]) == 2
    assert max(each.get("maximum", 0) for each in everything["timeseries"][0]["data"]) >= 2


def test_an_answer_has_the_form_of_the_specification(busy: Cloud) -> None:
    """An answer has exactly the members in Microsoft.Insights/stable/2024-02-01/metrics_API.json."""
    asked = {"aggregation": "average,maximum", "$filter": "RunId eq 'busy' and InstanceId eq '*'"}
    answer = ask(busy, "CpuUtilizationPercentage", **asked).json()
    assert answer.keys() == {"cost", "timespan", "interval", "namespace", "resourceregion", "value"}
    (metric,) = answer["value"]
    assert metric.keys() == {"id", "type", "name", "displayDescription", "unit", "timeseries", "errorCode"}
    (series,) = metric["timeseries"]
    assert [each["name"]["value"] for each in series["metadatavalues"]] == ["runid", "instanceid"]
    assert len(series["data"]) == 31 or len(series["data"]) == 32
    assert {frozenset(each) for each in series["data"]} == {
        frozenset({"timeStamp"}),
        frozenset({"timeStamp", "average", "maximum"}),
    }


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"names": "CpuTime"}, "Failed to find metric configuration for provider"),
        ({"names": ",".join(["CpuUtilization"] * 21)}, "at most 20"),
        ({"$filter": "DeviceId eq '*'"}, "does not support requested dimension combination: deviceid, supported ones"),
        ({"$filter": "RunId eq 'a' or InstanceId eq 'b'"}, "can't separate two different metadata names"),
        ({"$filter": "RunId is 'a'"}, "Invalid filter"),
        ({"interval": "PT2M"}, "Invalid time grain duration: PT2M"),
        ({"aggregation": "median"}, "Invalid aggregation type: median"),
        ({"timespan": "yesterday"}, "Invalid timespan"),
        ({"timespan": "PTsoon"}, "Invalid timespan"),
        ({"timespan": "2026-01-02T00:00:00Z/2026-01-01T00:00:00Z"}, "must be before"),
        ({"top": "0"}, "must be a positive number"),
    ],
)
def test_a_request_that_azure_refuses_is_refused(cloud: Cloud, query: dict[str, str], words: str) -> None:
    """The answer is a 400 whose body has code and message at the top, without an `error` around them."""
    answer = ask(cloud, **{"names": "CpuUtilizationPercentage", **query})
    assert answer.status_code == 400
    assert answer.json().keys() == {"code", "message"}
    assert words in answer.json()["message"]


def test_a_duration_ends_now(busy: Cloud) -> None:
    """azure-monitor-query sends PT1800.0S for a time span of half an hour."""
    (metric,) = ask(busy, "Idle Nodes", timespan="PT1800.0S").json()["value"]
    assert len(metric["timeseries"][0]["data"]) in (30, 31)


def test_several_jobs_are_asked_for_at_once(busy: Cloud) -> None:
    """`or` joins several values of one dimension. At most `top` series are returned, ten by default."""
    asked = {"aggregation": "average", "$filter": "RunId eq 'busy' or RunId eq 'idle' and InstanceId eq '*'"}
    (metric,) = ask(busy, "CpuUtilizationPercentage", **asked).json()["value"]
    assert sorted(each["metadatavalues"][0]["value"] for each in metric["timeseries"]) == ["busy", "idle"]
    (metric,) = ask(busy, "CpuUtilizationPercentage", top="1", **asked).json()["value"]
    assert len(metric["timeseries"]) == 1


def test_what_was_measured_survives_a_restart(own_cloud: Callable[..., Cloud]) -> None:
    """The metrics of nodes are stored in a file with the state."""
    own = own_cloud(measured_every_seconds=0.2)
    asked = {"aggregation": "count", "$filter": "ClusterName eq 'cpu-cluster'"}

    def counted() -> float:
        (metric,) = ask(own, "Idle Nodes", **asked).json()["value"]
        return sum(float(each.get("count", 0)) for series in metric["timeseries"] for each in series["data"])

    wait_for(lambda: counted() >= 5, 30, "measurements")
    before = counted()
    own.restart()
    assert counted() >= before


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's tables of connections")
def test_the_machines_traffic_counts_only_for_a_node_that_is_connected_to_another_machine(tmp_path: Path) -> None:
    """Connections of the machine with itself, by loopback or by its own address, are none to another machine."""
    head, rest = "  sl  local_address rem_address   st\n", "00000000:00000000 00:00000000 00000000 0 0"
    table, table6 = tmp_path / "tcp", tmp_path / "tcp6"
    table.write_text(
        f"{head}   0: 0100007F:1F90 0100007F:C350 01 {rest} 11 1\n"
        f"   1: 020011AC:1F90 020011AC:C350 01 {rest} 12 1\n"
        f"   2: 020011AC:1F90 08080808:01BB 01 {rest} 13 1\n"
        f"   3: 020011AC:1F91 08080808:01BB 06 {rest} 14 1\n"
        f"   4: 00000000:1F91 00000000:0000 0A {rest} 15 1\n"
    )
    table6.write_text(f"{head}   0: {'0' * 16}FFFF0000020011AC:1 {'0' * 16}FFFF00000100007F:2 01 {rest} 16 1\n")
    assert remote_sockets((table, table6)) == {"13"}
    assert remote_sockets((tmp_path / "missing",)) is None
    with socket.socket() as ours:
        own = str(Path(f"/proc/self/fd/{ours.fileno()}").readlink()).removeprefix("socket:[").removesuffix("]")
        here = [psutil.Process()]
        assert [talks(here, remote) for remote in ({own}, {"1"}, set[str](), None)] == [True, False, False, True]


def test_traffic_of_the_machine_with_itself_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs send and receive through the loopback interface, too."""
    traffic = {"lo": SimpleNamespace(bytes_recv=0, bytes_sent=0), "eth0": SimpleNamespace(bytes_recv=0, bytes_sent=0)}
    monkeypatch.setattr(psutil, "net_io_counters", lambda pernic: traffic)
    measurer = Measurer()
    assert measurer.traffic() == {}
    traffic = {"lo": SimpleNamespace(bytes_recv=9, bytes_sent=9), "eth0": SimpleNamespace(bytes_recv=2, bytes_sent=1)}
    assert measurer.traffic() == {"eth0": (2, 1)}
