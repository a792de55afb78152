"""The checker finds faults in answers, and events have the published shape."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from emulator_tests.azureml.clouds import Cloud, cluster_body
from emulator_tests.azureml.conftest import Receiver
from emulator_tests.azureml.openapi import SPECS, OpenApi, azureml
from emulators.process import wait_for

pytestmark = pytest.mark.skipif(
    not SPECS.exists(), reason="Microsoft's OpenAPI documents are not beside the repository"
)

Body = dict[str, Any]
EVENTS = SPECS / "eventgrid/data-plane/Microsoft.MachineLearningServices/stable/2018-01-01/MachineLearningServices.json"


def put(path: str, value: Any) -> Callable[[Body], None]:
    """Return a fault that sets the member at `path` (a.b.c) to a value. The value `...` removes the member."""

    def seed(body: Body) -> None:
        *parents, last = path.split(".")
        for key in parents:
            body = body[key]
        if value is ...:
            del body[last]
        else:
            body[last] = value

    return seed


FAULTS: list[tuple[str, Callable[[Body], None]]] = [
    ("jobs/sample", put("properties.status", "Done")),
    ("jobs/sample", put("properties.jobType", "Order")),
    ("jobs/sample", put("properties.jobType", ...)),
    ("jobs/sample", put("properties.command", 5)),
    ("jobs/sample", put("properties.tags", {"n": 1})),
    ("jobs/sample", put("properties.isArchived", "no")),
    ("jobs/sample", put("properties.experimentName", None)),
    ("jobs/sample", put("properties.node_count", 2)),
    ("jobs/sample", put("properties.limits", {"jobLimitsType": "Command", "timeout": "300"})),
    ("jobs/sample", put("properties.resources", {"instanceCount": "2"})),
    ("jobs/sample", put("properties.services", {"Studio": {"url": "https://x"}})),
    ("jobs/sample", put("systemData.createdAt", "today")),
    ("jobs/sample", put("properties", ...)),
    ("computes/sample", put("properties.computeType", "Cluster")),
    ("computes/sample", put("properties.properties.vmPriority", "Spot")),
    ("computes/sample", put("properties.properties.scaleSettings", {"minNodeCount": 0})),
    ("computes/sample", put("properties.properties.nodeStateCounts.idleNodeCount", 0.5)),
    ("computes/sample", put("properties.provisioningState", "Ready")),
    ("computes/sample", put("properties.createdOn", None)),
    ("datastores/drops", put("properties.credentials.credentialsType", "Key")),
    ("datastores/drops", put("properties.credentials", ...)),
    ("datastores/drops", put("properties.isDefault", None)),
    ("environments/sample/versions/1", put("properties.osType", "BeOS")),
    ("environments/sample/versions/1", put("properties.environmentType", 1)),
]


@pytest.fixture(scope="module")
def api() -> OpenApi:
    return azureml()


@pytest.fixture(scope="module")
def answers(cloud: Cloud) -> dict[str, Body]:
    """A recorded answer of each kind. None has findings."""
    cloud.arm("PUT", "computes/sample", cluster_body(maximum=0))
    cloud.arm("PUT", "environments/sample/versions/1", {"properties": {"image": "python:3.11", "osType": "Linux"}})
    cloud.submit("sample", "sample", "true")
    for path in {path for path, _ in FAULTS}:
        cloud.arm("GET", path)
    entries = cloud.call("GET", "/control/requests").json()
    return {e["path"].removeprefix(f"{cloud.workspace}/"): e for e in entries if e["method"] == "GET"}


@pytest.mark.parametrize(("path", "fault"), FAULTS)
def test_a_seeded_fault_is_found(
    api: OpenApi, answers: dict[str, Body], path: str, fault: Callable[[Body], None]
) -> None:
    """A conforming answer passes, and the same answer with one fault fails."""
    entry = copy.deepcopy(answers[path])
    assert api.check(entry) == []
    fault(entry["response"])
    assert api.check(entry) != []


def test_statuses_paths_and_headers_are_checked(api: OpenApi, answers: dict[str, Body]) -> None:
    """A status or a path outside of the contract, and a missing header, are found."""
    entry = answers["jobs/sample"]
    assert api.check({**entry, "path": entry["path"] + "/logs"}) != []
    assert api.check({**entry, "status": 404}) != []  # its body is not an error
    created = {**answers["computes/sample"], "method": "PUT", "status": 201, "headers": {}}
    assert api.check(created) == ["Compute_CreateOrUpdate: header azure-asyncoperation is missing"]


def test_events_have_the_published_data(cloud: Cloud, receiver: Receiver) -> None:
    """The data of both event types validates against Microsoft's schema, with every member present. Ids are GUIDs."""
    cloud.submit("published", "cpu-cluster", "true", tags={"drop": "a/b"})
    wait_for(lambda: len(receiver.of("published")) == 7, 60, "all events")
    api = OpenApi()
    for event in receiver.of("published"):
        kind = event["eventType"].removeprefix("Microsoft.MachineLearningServices.")
        schema = api.definition(EVENTS, f"MachineLearningServices{kind}EventData")
        assert api.validate(event["data"], schema, kind) == []
        assert set(event["data"]) == set(schema.body["properties"])
        assert event["subject"] == f"experiments/{event['data']['experimentId']}/runs/published"
        assert {"id", "eventType", "subject", "eventTime", "data", "dataVersion"} == set(event)
        assert len(json.dumps(event)) < 64 * 1024
