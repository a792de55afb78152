"""Every request gets an answer in ARM's format. An accepted object can be listed, and an unacceptable one is a 400."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator_tests.azureml.bodies.test_job_body import GOOD
from emulator_tests.azureml.clouds import ENVIRONMENT, Cloud, cluster_body, configuration, launch
from emulators.azureml.bodies import job_body
from emulators.azureml.kernel.errors import BadRequest
from emulators.azureml.service.preflight import MOST_PROCESSES
from emulators.storage.services import Services

INT32 = 2**31 - 1
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
NUMBERS = [
    ("resources", "instanceCount", 1),
    ("distribution", "processCountPerInstance", 1),
    ("services", "port", 0),
]


def job(cloud: Cloud) -> dict[str, Any]:
    return {
        "jobType": "Command",
        "command": "exit 0",
        "computeId": f"{cloud.workspace}/computes/nowhere-to-run",
        "environmentId": f"{cloud.workspace}/environments/{ENVIRONMENT}",
        "displayName": "d",
        "experimentName": "e",
        "tags": {"a": "b"},
        "properties": {"c": "d"},
        "environmentVariables": {"E": "f"},
        "inputs": {"i": {"jobInputType": "literal", "value": "1"}},
        "outputs": {"o": {"jobOutputType": "uri_folder"}},
        "resources": {"instanceCount": 1},
        "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 1},
        "limits": {"jobLimitsType": "Command", "timeout": "PT1H"},
        "services": {"s": {"port": 1}},
    }


def places(body: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key, value in body.items() if isinstance(body, dict) else ():
        yield from places(value, (*path, key))


def changed(body: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    other = copy.deepcopy(body)
    inner = other
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return other


@pytest.fixture(scope="module")
def no_room(account: Services, certs: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A cluster without nodes, which keeps accepted jobs in the queue. It has its own control plane, because
    MLClient need not read these lists."""
    config = configuration(tmp_path_factory.mktemp("odd"), account, certs=certs)
    running = Cloud(launch(config), config)
    running.arm("PUT", "computes/nowhere-to-run", cluster_body(0))
    yield running
    assert running.part.stop() == 0


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_job_is_taken_or_refused(no_room: Cloud, data: st.DataObject) -> None:
    """A good job with any part replaced by any JSON is a 201 or a 400, and the list of jobs stays readable."""
    body = job(no_room)
    path = data.draw(st.sampled_from(sorted(places(body))))
    sent = {"properties": changed(body, path, data.draw(JSON))}
    name = f"odd-{uuid.uuid4().hex}"
    answer = no_room.call("PUT", f"{no_room.workspace}/jobs/{name}", sent)
    assert answer.status_code in (201, 400), answer.text
    assert no_room.call("PATCH", f"/history/v1.0{no_room.workspace}/experiments/e/runs/{name}", sent).status_code < 500
    assert no_room.call("GET", f"{no_room.workspace}/jobs?tag=a=b").status_code == 200


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_cluster_is_taken_or_refused(no_room: Cloud, data: st.DataObject) -> None:
    """A good cluster with any part replaced by any JSON is accepted or refused, and the list of clusters stays
    readable."""
    body = {**cluster_body(0), "tags": {"a": "b"}}
    path = data.draw(st.sampled_from(sorted(places(body))))
    sent = changed(body, path, data.draw(JSON))
    for method in ("PUT", "PATCH"):
        answer = no_room.call(method, f"{no_room.workspace}/computes/nowhere-to-run", sent)
        assert answer.status_code in (200, 400), answer.text
    assert no_room.call("GET", f"{no_room.workspace}/computes").status_code == 200


@pytest.mark.parametrize(("section", "key", "least"), NUMBERS)
@pytest.mark.parametrize("value", [True, "2", 2.0, 2.5, 2**31, 2**63, -1, [1], {}])
def test_numbers_are_what_the_contract_says(section: str, key: str, least: int, value: Any) -> None:
    """`format: int32` accepts the integers of 32 bits, bounds included, and no text, float or boolean."""

    def body(number: Any) -> dict[str, Any]:
        inner = {key: number} if section != "services" else {"s": {key: number}}
        kind = {"distributionType": "PyTorch"} if section == "distribution" else {}
        return {**GOOD, section: {**inner, **kind}}

    with pytest.raises(BadRequest, match=key):
        job_body.parse("run-1", body(value))
    for number in (least, INT32, None):
        job_body.parse("run-1", body(number))


@pytest.mark.parametrize("value", ["", 0, 60, "60", "soon", "P999999999D", "PT" + "9" * 400 + "S", True, []])
def test_a_timeout_is_a_duration(value: Any) -> None:
    """limits.timeout is an ISO 8601 duration that .NET can hold. A number or any other text is a 400."""
    with pytest.raises(BadRequest, match=r"timeout"):
        job_body.parse("run-1", {**GOOD, "limits": {"timeout": value}})


def test_too_many_processes_are_refused(cloud: Cloud) -> None:
    """A million processes on a node is a 400 with the maximum, and the server keeps answering."""
    many = {"distributionType": "PyTorch", "processCountPerInstance": 1_000_000}
    with pytest.raises(AssertionError, match=f"at most {MOST_PROCESSES}"):
        cloud.submit("too-many", "cpu-cluster", "exit 0", distribution=many)
    cloud.submit("after-too-many", "cpu-cluster", "exit 0")
    assert cloud.wait("after-too-many")["status"] == "Completed"
