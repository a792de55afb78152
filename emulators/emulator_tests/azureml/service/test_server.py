"""The server's answers to impossible and unauthorized requests, and how requests are counted."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import requests
from azure.storage.blob import BlobServiceClient

from emulator_tests.azureml.clouds import ENVIRONMENT, Cloud, cluster_body
from emulators.storage.keys import ACCOUNT

BLOBS = {"datastoreType": "AzureBlob", "accountName": ACCOUNT, "containerName": "drops"}
INSTANCE: dict[str, Any] = {"computeType": "ComputeInstance", "properties": {"vmSize": "Standard_DS3_v2"}}
COMPUTE: dict[str, Any] = {"computeType": "AmlCompute", "properties": {"scaleSettings": {"maxNodeCount": 1}}}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("GET", "/nothings", None, 404, "doesn't serve GET"),
        ("GET", "/models/nope/versions/1", None, 404, "No version 1 of 'nope' among the workspace's models"),
        ("GET", "/jobs/nope", None, 404, "Run with id nope was not found"),
        ("PATCH", "/jobs/nope", None, 405, "served: DELETE, GET,"),
        ("GET", "/datastores/nope", None, 404, "there are: drops, workspaceartifactstore, workspaceblobstore"),
        ("GET", "/codes/nope/versions/1", None, 404, "No version 1 of 'nope' among the workspace's codes"),
        ("PUT", "/jobs/x", {"nothing": 1}, 400, "The body lacks 'properties'"),
        ("PUT", "/jobs/x", {"properties": []}, 400, "The body lacks 'properties'"),
        ("PUT", "/jobs/x", {"properties": [1]}, 400, "'properties' must be a JSON object"),
        ("PUT", "/jobs/x", [1], 400, "must be a JSON object"),
        ("PUT", "/jobs/x", {"properties": {"jobType": "Command"}}, 400, "need a 'command'"),
        ("PUT", "/computes/x", {"properties": COMPUTE}, 400, "be between 3 and 24 characters in length"),
        ("PUT", "/computes/fine", {"properties": {"computeType": "Kubernetes"}}, 400, "supported: AmlCompute"),
        ("PUT", "/computes/fine", cluster_body(maximum=1, minimum=2), 400, "must be 0 <= min <= max"),
        ("PUT", "/computes/fine", cluster_body(maximum=65_001, minimum=65_001), 400, "at most 65000 nodes"),
        ("PUT", "/computes/cpu-cluster", {"properties": INSTANCE}, 409, "compute cpu-cluster of another type"),
        ("PUT", "/computes/fine", cluster_body(maximum=1, idle="soon"), 400, "'soon' is not an ISO 8601 duration"),
        ("PATCH", "/computes/cpu-cluster", {"properties": {"x": 1}}, 400, "scaleSettings, tags, and nothing else"),
        ("PUT", "/datastores/d", {"properties": {"datastoreType": "AzureFile"}}, 400, "needs datastoreType AzureBlob"),
        ("PUT", "/datastores/a.b", {"properties": BLOBS}, 400, "Datastore name 'a.b'"),
        ("PUT", "/datastores/d", {"properties": {**BLOBS, "containerName": "A/b"}}, 400, "containerName is 'A/b'"),
        ("PUT", "/jobs/x", {"properties": {"command": "\ud800"}}, 400, "surrogates not allowed"),
        ("GET", f"/jobs?properties={'a=b,' * 101}", None, 400, "names 101; at most 100"),
        ("GET", "/jobs?listViewType=Some", None, 400, "choose ActiveOnly, ArchivedOnly or All"),
    ],
)
def test_errors_are_arm_errors(cloud: Cloud, method: str, path: str, body: Any, status: int, message: str) -> None:
    """A request that can't be served gets a status, a code and a message with the reason."""
    answer = cloud.call(method, cloud.workspace + path, body)
    assert answer.status_code == status
    assert message in answer.json()["error"]["message"]
    assert answer.json()["error"]["code"]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("00000000-0000-0000-0000-000000000001", "other", "SubscriptionNotFound"),
        ("resourceGroups/team", "resourceGroups/other", "ResourceGroupNotFound"),
        ("workspaces/team", "workspaces/other", "ResourceNotFound"),
    ],
)
def test_other_workspaces_are_not_found(cloud: Cloud, old: str, new: str, code: str) -> None:
    """A wrong subscription, group or workspace is a 404 that names it."""
    answer = cloud.call("GET", cloud.workspace.replace(old, new))
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, code)


def test_a_request_without_a_token_is_refused(cloud: Cloud) -> None:
    """ARM routes require a bearer token, as in Azure."""
    assert cloud.call("GET", cloud.workspace, headers={}).status_code == 401


def test_the_token_endpoint_asks_its_header_back(cloud: Cloud) -> None:
    """The identity endpoint gives a token only to requests with IDENTITY_HEADER."""
    path = "/msi/token?resource=https://management.azure.com/&api-version=2019-08-01"
    assert cloud.call("GET", path, headers={}).status_code == 401
    header = {"X-IDENTITY-HEADER": cloud.part.info["env"]["IDENTITY_HEADER"]}
    assert cloud.call("GET", path, headers=header).json()["token_type"] == "Bearer"


def test_broken_json_is_a_bad_request(cloud: Cloud) -> None:
    """A body that isn't JSON is a 400, not a server error."""
    answer = cloud.call("PUT", f"{cloud.workspace}/jobs/x", data="{", headers={"Authorization": "Bearer x"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "InvalidRequestContent")


def test_odd_bodies_of_our_own_routes_are_bad_requests(cloud: Cloud) -> None:
    """Our own routes answer unreadable bodies with a reason, too. A job that can't run here gets the reason, also
    for an invalid build context."""
    look = f"/preflight/v1.0{cloud.workspace}/jobs"
    preempt = "/control/clusters/cpu-cluster/preempt"
    for method, path, body, why in (
        ("POST", look, {"job": ["x"]}, "'job' must be an object"),
        ("POST", preempt, {"node": True}, "'node' is True"),
        ("PUT", "/control/faults", {"allocations": {"cpu-cluster": {"code": 5}}}, "need a 'code'"),
        ("GET", f"/control/requests?newest={'9' * 5000}", None, "must be a whole number"),
    ):
        answer = cloud.call(method, path, body)
        assert (answer.status_code, why in answer.text) == (400, True), answer.text
    for build, why in (
        ({}, "need a 'contextUri'"),
        ({"path": "https://[x/"}, "'https://[x/': Invalid IPv6 URL"),
        ({"path": "ftp://x/y"}, "is not an address of blobs"),
        ({"path": "azureml://datastores/drops/paths/x", "dockerfile_path": []}, "dockerfilePath is []"),
    ):
        (refusal,) = cloud.call("POST", look, {"job": {"environment": {"build": build}}}).json()["refusals"]
        assert why in refusal


def test_a_large_build_context_is_refused(cloud: Cloud, storage: BlobServiceClient) -> None:
    """Azure ML builds an image from at most 100 files (https://aka.ms/azure-machine-learning-limits)."""
    for number in range(101):
        storage.get_blob_client("drops", f"wide/{number}").upload_blob(b"FROM python" if not number else b"")
    build = {"path": "azureml://datastores/drops/paths/wide"}
    look = f"/preflight/v1.0{cloud.workspace}/jobs"
    (refusal,) = cloud.call("POST", look, {"job": {"environment": {"build": build}}}).json()["refusals"]
    assert "has 101 files with 11 bytes; Azure ML takes at most 100 files and 1000000 bytes" in refusal


def test_no_text_takes_long_to_read(cloud: Cloud) -> None:
    """A command with many unclosed `$[[`, and an id of similar length, are answered before the client gives up.
    Meanwhile the server would answer no other client."""
    job = {
        "jobType": "Command",
        "command": "$[[" * 250_000 + "${{inputs.none}}",
        "computeId": f"{cloud.workspace}/computes/cpu-cluster",
        "environmentId": f"{cloud.workspace}/environments/{ENVIRONMENT}",
    }
    answer = cloud.call("PUT", f"{cloud.workspace}/jobs/long-to-read", {"properties": job})
    assert (answer.status_code, "uses ${{inputs.none}}" in answer.text) == (400, True)
    ids = {"values": ["/data/azureml_a_output_data_" * 20_000]}
    assert cloud.call("POST", f"/data/v1.0{cloud.workspace}/dataversion/batchGetResolvedUris", ids).status_code == 404


def test_only_what_mlflow_wrote_is_deleted_through_it(cloud: Cloud, storage: BlobServiceClient) -> None:
    """Files of a datastore can be read through MLflow, but not deleted."""
    storage.get_blob_client("drops", "kept/a").upload_blob(b"a", overwrite=True)
    files = f"/mlflow/v1.0{cloud.workspace}/api/2.0/mlflow-artifacts/artifacts"
    assert cloud.call("GET", f"{files}/datastores/drops/kept/a").content == b"a"
    assert cloud.call("GET", f"{files}/datastores/drops/").status_code == 404
    for path in ("datastores/drops", "datastores/drops/kept", "ExperimentRun"):
        assert cloud.call("DELETE", f"{files}/{path}").status_code == 400
    assert storage.get_blob_client("drops", "kept/a").exists()


def test_the_same_job_put_by_many_at_once_is_one_job(cloud: Cloud) -> None:
    """Twenty simultaneous PUTs of one name create one job (one 201), which runs once."""
    cloud.submit("prototype", "cpu-cluster", "echo ran")
    answers: list[requests.Response] = []

    def put() -> None:
        body = {"properties": {**cloud.job("prototype"), "status": None, "services": None}}
        answers.append(cloud.call("PUT", f"{cloud.workspace}/jobs/twins", body))

    threads = [threading.Thread(target=put) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [200] * 19 + [201]
    cloud.wait("twins")
    assert cloud.log("twins") == "ran\n"


def test_requests_are_counted_with_their_status(cloud: Cloud) -> None:
    """/control/requests lists every ARM request in order, including failed ones, and no control request."""
    before = len(cloud.call("GET", "/control/requests").json())
    cloud.call("GET", f"{cloud.workspace}/jobs/nope")
    cloud.call("GET", cloud.workspace)
    seen = cloud.call("GET", "/control/requests").json()[before:]
    assert [(e["method"], e["path"], e["status"]) for e in seen] == [
        ("GET", f"{cloud.workspace}/jobs/nope", 404),
        ("GET", cloud.workspace, 200),
    ]
