"""Injected faults: quotas and allocations by cluster, and which requests a fault affects."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from emulators.azureml.kernel.errors import BadRequest
from emulators.azureml.kernel.models import Cluster, Node, NodeState
from emulators.azureml.workspace.faults import SPOT_CORES, Faults, family_of


def cluster(name: str, size: str, nodes: int = 0, tier: str = "Dedicated") -> Cluster:
    inner = {"vmSize": size, "vmPriority": tier, "scaleSettings": {"maxNodeCount": 9}}
    made = Cluster(name, "local", {}, {"properties": inner}, "", "")
    made.nodes = [Node(f"{name}{n}", n, NodeState.IDLE, 0.0) for n in range(nodes)]
    return made


@pytest.mark.parametrize(
    ("size", "family", "cores"),
    [
        ("Standard_D2s_v5", "standardDSv5Family", 2),
        ("Standard_NC6s_v3", "standardNCSv3Family", 6),
        ("Standard_DS3_v2", "standardDSv2Family", 3),
        ("Standard_NC24ads_A100_v4", "standardNCADSv4Family", 24),
        ("odd", "standardOtherFamily", 1),
    ],
)
def test_a_size_has_its_family_and_cores(size: str, family: str, cores: int) -> None:
    """A size's quota belongs to its letters and its version. An unreadable size is a family of its own."""
    assert family_of(cluster("c", size)) == (family, cores)
    assert family_of(cluster("c", size, tier="LowPriority")) == (SPOT_CORES, cores)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"requests": "all"}, "must be a list"),
        ({"requests": [5]}, "is an object with method, path"),
        ({"requests": [{"method": "GET", "path": "*", "patj": "x"}]}, "is an object with method, path"),
        ({"requests": [{"method": "GET"}]}, "need a 'path'"),
        ({"requests": [{"method": "GET", "path": 5}]}, "need a 'path'"),
        ({"requests": [{"method": "GET", "path": "*", "status": 99}]}, "400 to 599"),
        ({"requests": [{"method": "GET", "path": "*", "status": 1e308}]}, "whole number"),
        ({"requests": [{"method": "GET", "path": "*", "seconds": "5"}]}, "number up to 600"),
        ({"requests": [{"method": "GET", "path": "*", "seconds": float("inf")}]}, "number up to 600"),
        ({"requests": [{"method": "GET", "path": "*", "times": {}}]}, "whole number"),
        ({"allocations": {"cpu-cluster": 5}}, "must be an object"),
        ({"allocations": {"cpu-cluster": {"code": "x"}}}, "need a 'message'"),
        ({"quotas": {"a": "x"}}, "whole number"),
        ({"quotas": {"a": float("inf")}}, "whole number"),
        ({"mounts": ["own"]}, "choose shared or own"),
        ({"request": []}, "no request"),
    ],
)
def test_a_fault_that_can_not_be_is_refused_whole(document: dict[str, Any], why: str) -> None:
    """The refusal has the reason, and the earlier faults stay active."""
    faults = Faults()
    before = {"requests": [{"method": "GET", "path": "*"}], "quotas": {"lowPriorityCores": 2}, "mounts": "own"}
    faults.replace(before)
    was = dataclasses.replace(faults)
    with pytest.raises(BadRequest, match=why):
        faults.replace({**{key: value for key, value in before.items() if key != "mounts"}, **document})
    assert faults == was


def test_a_quota_is_shared_by_all_clusters_of_its_family() -> None:
    """Nodes are allocated as long as the quota has cores. The error for the others has the limit, the usage and the
    requested cores."""
    faults = Faults(quotas={"standardDSv5Family": 10})
    first, second = cluster("a", "Standard_D2s_v5", 2), cluster("b", "Standard_D4s_v5", 1)
    given, error = faults.allotted(first, [first, second], 2)
    assert given == 1
    assert error is not None
    assert error["code"] == "QuotaExceeded"
    assert "Current Limit: 10, Current Usage: 8, Additional Required: 2," in error["message"]
    assert faults.allotted(first, [first, second], 1) == (1, None)
    assert faults.allotted(cluster("c", "Standard_NC6s_v3"), [first, second], 4) == (4, None)


def test_an_allocation_that_fails_gives_nothing() -> None:
    """The named cluster gets no node and reports the given message. Other clusters are unaffected."""
    faults = Faults()
    faults.replace({"allocations": {"GPU": {"code": "AllocationFailed", "message": "No capacity."}}})
    assert faults.allotted(cluster("gpu", "Standard_NC6s_v3"), [], 2) == (
        0,
        {"code": "AllocationFailed", "message": "No capacity."},
    )
    assert faults.allotted(cluster("cpu", "Standard_NC6s_v3"), [], 2) == (2, None)


@pytest.mark.parametrize("document", [{"requests": {"path": "x"}}, {"requests": [{"path": "x"}]}, {"quotas": []}])
def test_what_is_no_fault_is_refused(document: dict[str, Any]) -> None:
    """Faults are a list of objects with the known fields, and mappings of quotas and allocations. Anything else is
    an error."""
    with pytest.raises(BadRequest):
        Faults().replace(document)
