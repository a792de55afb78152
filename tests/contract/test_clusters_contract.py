"""The contract of shared.clusters.ports.Clusters, tested on the fake and on a real local Azure ML."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from emulators.process import wait_for
from shared.adapters.azureml.jobs import AzureMLClusters
from shared.adapters.azureml.workspace import connect
from shared.clusters.model import INSTANCE, AllocationCode, Cluster, NodeCounts
from shared.clusters.ports import Clusters
from shared.kernel.errors import Changed, NotFound
from tests.contract.wire import LocalAzureML
from tests.fakes.ports import FakeClusters

COLD = Cluster("cpu-cluster", 0, 4, 90.0, tier="low_priority", vm_size="Standard_D2s_v5")
WARM = Cluster("warm", 1, 3, 150.0, nodes=1, tier="dedicated", vm_size="Standard_D2s_v5", target_nodes=1, idle_nodes=1)


@pytest.fixture(params=["fake", "real"])
def clusters(request: pytest.FixtureRequest) -> Clusters:
    if request.param == "fake":
        return FakeClusters([WARM, COLD])
    azureml: LocalAzureML = request.getfixturevalue("azureml")
    real = AzureMLClusters(azureml.workspace)
    set_minimum(azureml, "warm", 1)
    wait_for(lambda: known_now(real) == [COLD, WARM], 60, "the warm cluster's node")
    return real


def set_minimum(azureml: LocalAzureML, name: str, count: int) -> None:
    arm = connect(azureml.workspace).arm
    settings = {**arm.get(f"computes/{name}")["properties"]["properties"]["scaleSettings"], "minNodeCount": count}
    arm.patch(f"computes/{name}", {"properties": {"properties": {"scaleSettings": settings}}})


def test_clusters_are_listed_as_they_are(clusters: Clusters) -> None:
    """Every cluster is listed with its limits, idle time, tier and nodes."""
    assert known_now(clusters) == [COLD, WARM]


def test_the_workspace_counts_nodes_itself(clusters: Clusters) -> None:
    """The warm cluster has an idle node in the counts of the last minutes; an unknown cluster has no counts."""
    now = datetime.now(UTC)
    if isinstance(clusters, FakeClusters):
        clusters.counts["warm"] = [NodeCounts(now, idle=1)]

    def counts() -> tuple[NodeCounts, ...]:
        return clusters.node_counts("warm", now - timedelta(minutes=30), now + timedelta(minutes=1))

    found = wait_for(lambda: [each for each in counts() if each.idle == 1], 30, "a count", every=0.3)
    assert (found[-1].running, found[-1].unusable) == (0, 0)
    assert clusters.node_counts("nowhere", now - timedelta(minutes=30), now) == ()


def known_now(clusters: Clusters) -> list[Cluster]:
    """The clusters by name, without Azure ML's allocation state and its time."""
    computes = [cluster for cluster in clusters.list() if cluster.kind != INSTANCE]
    found = [replace(cluster, allocation="", allocation_since=None) for cluster in computes]
    return sorted(found, key=lambda cluster: cluster.name)


def test_scale_changes_the_minimum_alone(clusters: Clusters) -> None:
    """`scale` sets min_nodes and leaves everything else; it does nothing if the minimum is already set."""
    clusters.scale("warm", min_nodes=0)
    clusters.scale("warm", min_nodes=0)
    clusters.scale("cpu-cluster", min_nodes=0)
    gone: Any = dict.fromkeys(("nodes", "target_nodes", "idle_nodes", "leaving_nodes"), 0)  # zero at once or later
    found = {c.name: replace(c, **gone) for c in known_now(clusters)}
    assert found == {"cpu-cluster": COLD, "warm": replace(WARM, min_nodes=0, **gone)}


def test_a_cluster_that_is_not_there_is_named(clusters: Clusters) -> None:
    """`scale` of an unknown cluster raises NotFound with its name."""
    with pytest.raises(NotFound, match="nowhere"):
        clusters.scale("nowhere", min_nodes=0)


def test_scale_keeps_what_this_code_does_not_know(azureml: LocalAzureML) -> None:
    """`scale` preserves properties of the compute that the app never reads."""
    arm = connect(azureml.workspace).arm
    body: dict[str, Any] = {
        "location": "local",
        "tags": {"cost": "research"},
        "properties": {
            "computeType": "AmlCompute",
            "description": "kept",
            "properties": {
                "vmSize": "Standard_NC4",
                "vmPriority": "LowPriority",
                "remoteLoginPortPublicAccess": "Disabled",
                "scaleSettings": {"minNodeCount": 1, "maxNodeCount": 2, "nodeIdleTimeBeforeScaleDown": "PT1H30M"},
            },
        },
    }
    arm.put("computes/special", body)
    before = known(arm.get("computes/special"))
    AzureMLClusters(azureml.workspace).scale("special", min_nodes=0)
    after = known(arm.get("computes/special"))
    assert before["properties"]["properties"]["scaleSettings"].pop("minNodeCount") == 1
    assert after["properties"]["properties"]["scaleSettings"].pop("minNodeCount") == 0
    assert before == after
    assert {c.name: c.idle_seconds for c in AzureMLClusters(azureml.workspace).list()}["special"] == 5400.0


def test_another_change_is_never_written_over(azureml: LocalAzureML, monkeypatch: pytest.MonkeyPatch) -> None:
    """If someone changes the cluster between the app's read and write, their change stays and `scale` raises
    Changed."""
    set_minimum(azureml, "warm", 1)
    clusters = AzureMLClusters(azureml.workspace)
    arm = connect(azureml.workspace).arm
    get = arm.get_with_etag

    def overtaken(path: str) -> tuple[Any, str]:
        found = get(path)
        monkeypatch.setattr(arm, "get_with_etag", get)
        set_minimum(azureml, "warm", 2)
        return found

    monkeypatch.setattr(arm, "get_with_etag", overtaken)
    with pytest.raises(Changed, match="warm"):
        clusters.scale("warm", min_nodes=0)
    assert {c.name: c.min_nodes for c in clusters.list()}["warm"] == 2
    set_minimum(azureml, "warm", 1)


def test_azure_mls_words_for_a_quota_come_through(azureml: LocalAzureML) -> None:
    """A cluster that can't get its nodes reports the quota in `errors`, wants more nodes than it has, and recovers
    with the quota."""
    real, path = AzureMLClusters(azureml.workspace), "/control/faults"
    (warm,) = [c for c in real.list() if c.name == "warm"]
    there = warm.nodes - warm.leaving_nodes  # 1, or 2 while a node of another test is idle
    try:
        azureml.put(path, {"quotas": {"standardDSv5Family": 2 * there}})
        set_minimum(azureml, "warm", 3)
        refused: Cluster = wait_for(lambda: next((c for c in real.list() if c.errors), None), 60, "the refusal")
        assert (refused.errors[0].code, refused.errors[0].limit) == (AllocationCode.QUOTA, 2 * there)
        assert (refused.target_nodes, refused.nodes - refused.leaving_nodes) == (3, there)
    finally:
        azureml.put(path, {})
        set_minimum(azureml, "warm", 1)
    wait_for(lambda: not any(c.errors for c in real.list()), 60, "the refusal to be over")


def test_a_compute_instance_is_a_cluster_of_one_node_until_it_is_stopped(azureml: LocalAzureML) -> None:
    """Instances are listed with the clusters. `stop` stops an instance, and does nothing to a stopped instance."""
    arm, real = connect(azureml.workspace).arm, AzureMLClusters(azureml.workspace)
    inner = {"computeType": "ComputeInstance", "properties": {"vmSize": "Standard_DS3_v2"}}
    arm.put("computes/desk", {"location": "local", "tags": {"trainyard.pin": "booth"}, "properties": inner})
    (found,) = [c for c in real.list() if c.kind == INSTANCE]
    assert (found.name, found.nodes, found.vm_size, found.pin) == ("desk", 1, "Standard_DS3_v2", "booth")
    real.stop("desk")
    real.stop("desk")
    assert [c.nodes for c in real.list() if c.kind == INSTANCE] == [0]


def known(compute: dict[str, Any]) -> dict[str, Any]:
    """The compute without the fields that the service itself keeps changing."""
    inner = compute["properties"]["properties"]
    for key in (
        "nodeStateCounts",
        "currentNodeCount",
        "targetNodeCount",
        "allocationState",
        "allocationStateTransitionTime",
    ):
        inner.pop(key, None)
    for key in ("modifiedOn", "provisioningState"):
        compute["properties"].pop(key, None)
    compute.pop("systemData", None)
    return compute


def test_a_registry_says_what_it_has(azureml: LocalAzureML) -> None:
    """The app finds a registry through the service that MLClient asks, and then the registry's assets."""
    arm = connect(azureml.workspace).arm
    assert arm.find_in_registry("azureml", "environments/sklearn-1.5") is not None
    assert arm.find_in_registry("azureml", "components/no-such-component/versions/1") is None
    assert arm.find_in_registry("no-such-registry", "components/fit") is None
