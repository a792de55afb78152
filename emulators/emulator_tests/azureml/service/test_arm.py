"""Resource Manager's rules for every request: versions, case, conditions, ids, depth and types."""

from __future__ import annotations

from typing import Any

import pytest

from emulator_tests.azureml.clouds import Cloud, cluster_body
from emulators.azureml.kernel.identity import token
from emulators.azureml.service import arm

BEARER = {"Authorization": f"Bearer {token()}"}
IMAGE = {"properties": {"image": "python:3.11"}}


@pytest.mark.parametrize(
    ("version", "code"),
    [
        ("", "MissingApiVersionParameter"),
        ("1999-01-01", "NoRegisteredProviderFound"),
        ("2024-04-01-beta", "NoRegisteredProviderFound"),
        ("2024-04-01", None),
        ("2024-10-01-PREVIEW", None),
    ],
)
def test_a_version_of_the_api_is_asked_for(cloud: Cloud, version: str, code: str | None) -> None:
    """A request needs an api-version that the provider has. A missing or unknown version is a 400."""
    answer = cloud.call("GET", f"{cloud.workspace}/jobs?api-version={version}")
    assert (answer.status_code, answer.json().get("error", {}).get("code")) == (400 if code else 200, code)


@pytest.mark.parametrize(
    ("written", "otherwise"),
    [
        ("resourceGroups/team", "resourcegroups/TEAM"),
        ("Microsoft.MachineLearningServices", "microsoft.machinelearningservices"),
        ("/subscriptions/", "/Subscriptions/"),
        ("workspaces/team", "Workspaces/Team"),
    ],
)
def test_ids_have_no_case(cloud: Cloud, written: str, otherwise: str) -> None:
    """Groups, providers, types and names match in any case, and the answer repeats the id as the client wrote it."""
    cloud.arm("PUT", "environments/cased/versions/1", IMAGE)
    path = f"{cloud.workspace}/environments/cased/versions/1"
    answer = cloud.call("GET", path.replace(written, otherwise))
    assert (answer.status_code, answer.json().get("id")) == (200, path)
    assert cloud.call("GET", path.replace("environments", "ENVIRONMENTS")).status_code == 200


@pytest.mark.parametrize("tags", [5, "x", ["a"], {"a": 1}, {"a": {}}, {"a": True}])
@pytest.mark.parametrize("kind", ["computes", "datastores", "environments", "data", "models", "jobs"])
def test_tags_are_texts(cloud: Cloud, kind: str, tags: Any) -> None:
    """Tags that are not a map of strings are a 400 everywhere, so that no list fails later."""
    path, body = {
        "computes": ("computes/tagged", cluster_body(0)),
        "datastores": ("datastores/tagged", {"properties": {"datastoreType": "AzureBlob", "containerName": "c"}}),
        "environments": ("environments/tagged/versions/1", IMAGE),
        "data": ("data/tagged/versions/1", {"properties": {"dataType": "uri_file", "dataUri": "https://x/y"}}),
        "models": ("models/tagged/versions/1", {"properties": {"modelUri": "azureml://datastores/drops/paths/m"}}),
        "jobs": ("jobs/tagged", {"properties": {"jobType": "Command", "command": "true"}}),
    }[kind]
    place = body if kind == "computes" else body["properties"]
    answer = cloud.call("PUT", f"{cloud.workspace}/{path}", body | {"tags": tags} if place is body else {
        "properties": {**place, "accountName": "devstoreaccount1", "tags": tags}
    })  # fmt: skip
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "UserError")
    assert "must be" in answer.json()["error"]["message"]


@pytest.mark.parametrize("depth", [arm.DEEPEST - 3, arm.DEEPEST, 900, 100_000])
def test_deep_bodies_are_refused(cloud: Cloud, depth: int) -> None:
    """A body nested beyond the depth limit is a 400. A body at the limit is accepted, stored and returned."""
    text = '{"properties": {"image": "i", "inferenceConfig": ' + '{"a":' * depth + "1" + "}" * depth + "}}"
    path = f"{cloud.workspace}/environments/deep/versions/{depth}"
    answer = cloud.call("PUT", path, data=text, headers=BEARER)
    assert answer.status_code == (201 if depth < arm.DEEPEST - 2 else 400)
    assert cloud.call("GET", path).status_code in (200, 404)


def test_conditions_hold(cloud: Cloud) -> None:
    """`If-None-Match: *` creates only once, If-Match changes only the version that the client has read, and an
    unchanged resource is a 304."""
    path = f"{cloud.workspace}/environments/conditional/versions/1"

    def ask(method: str, body: Any = None, **conditions: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in conditions.items()}
        return cloud.call(method, path, body, headers={**BEARER, **named})

    assert ask("PUT", IMAGE, If_Match="*").status_code == 412
    assert ask("PUT", IMAGE, If_None_Match="*").status_code == 201
    refused = ask("PUT", IMAGE, If_None_Match="*")
    assert (refused.status_code, refused.json()["error"]["code"]) == (412, "PreconditionFailed")
    seen = ask("GET").headers["ETag"]
    assert ask("GET", If_None_Match=seen).status_code == 304
    changed = ask("PUT", {"properties": {**IMAGE["properties"], "description": "new"}}, If_Match=seen)
    assert changed.status_code == 200
    assert changed.headers["ETag"] != seen
    assert ask("DELETE", If_Match=seen).status_code == 412
    assert ask("DELETE", If_Match=changed.headers["ETag"]).status_code == 200


def test_answers_have_ids(cloud: Cloud) -> None:
    """Each answer, including errors, has its own id and repeats the client's id."""
    found = [cloud.call("GET", cloud.workspace + path, headers={**BEARER, "x-ms-client-request-id": "mine"})
             for path in ("", "", "/jobs/none")]  # fmt: skip
    assert len({answer.headers["x-ms-request-id"] for answer in found}) == 3
    assert {answer.headers["x-ms-client-request-id"] for answer in found} == {"mine"}


def test_a_stranger_is_told_where_to_get_a_token(cloud: Cloud) -> None:
    """A 401 has a Bearer challenge with the authority, for clients that answer challenges."""
    challenge = cloud.call("GET", cloud.workspace, headers={}).headers["WWW-Authenticate"]
    assert challenge.startswith('Bearer authorization_uri="https://')


def test_a_clusters_identity_is_kept_and_its_secrets_are_not(cloud: Cloud) -> None:
    """The identity is returned with ids, and an update without an identity keeps it. The password and the key are
    never returned."""
    account = {"adminUserName": "me", "adminUserPassword": "hunter2!", "adminUserSshPublicKey": "ssh-rsa AAA"}
    user = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/u"
    body = cluster_body(0)
    body["identity"] = {"type": "UserAssigned", "userAssignedIdentities": {user: {}}}
    body["properties"]["properties"]["userAccountCredentials"] = account
    made = cloud.arm("PUT", "computes/identified", body)
    again = cloud.arm("PUT", "computes/identified", cluster_body(1))
    for answer in (made, again, cloud.arm("GET", "computes/identified")):
        assert set(answer["identity"]["userAssignedIdentities"][user]) == {"clientId", "principalId"}
        assert "hunter2" not in str(answer)
        assert "ssh-rsa" not in str(answer)
    assert made["properties"]["properties"]["userAccountCredentials"] == {"adminUserName": "me"}
    wrong = {**cluster_body(0), "identity": {"type": "Mine"}}
    assert cloud.call("PUT", f"{cloud.workspace}/computes/identified", wrong).status_code == 400


def test_a_clusters_tags_can_be_patched(cloud: Cloud) -> None:
    """A PATCH of a cluster's tags keeps the scale settings, and a PATCH of the scale settings keeps the tags."""
    cloud.arm("PUT", "computes/patched", {**cluster_body(3), "tags": {"a": "1"}})
    assert cloud.arm("PATCH", "computes/patched", {"tags": {"b": "2"}})["tags"] == {"b": "2"}
    settings = cloud.arm("GET", "computes/patched")["properties"]["properties"]["scaleSettings"]
    assert settings["maxNodeCount"] == 3
    scaled = {"properties": {"properties": {"scaleSettings": {**settings, "maxNodeCount": 2}}}}
    assert cloud.arm("PATCH", "computes/patched", scaled)["tags"] == {"b": "2"}


def test_a_job_that_has_ended_can_be_deleted(cloud: Cloud) -> None:
    """DELETE of a live job is refused. DELETE of an ended job is a 202 and removes the job from lists, too."""
    cloud.arm("PUT", "computes/roomless", cluster_body(0))
    cloud.submit("deleted", "roomless", "true", tags={"find": "deleted"})
    path = f"{cloud.workspace}/jobs/deleted"
    assert cloud.call("DELETE", path).status_code == 409
    cloud.arm("POST", "jobs/deleted/cancel")
    cloud.wait("deleted")
    answer = cloud.call("DELETE", path)
    assert answer.status_code == 202
    assert cloud.call("GET", answer.headers["Location"].removeprefix(cloud.url)).status_code == 200
    assert cloud.call("GET", path).status_code == 404
    assert cloud.arm("GET", "jobs?tag=find=deleted")["value"] == []
    assert cloud.call("DELETE", path).status_code == 204


def test_another_job_of_the_same_name_is_refused(cloud: Cloud) -> None:
    """A repeated job returns the existing job with the new tags. Other content under the same name is an error with
    the differences."""
    cloud.arm("PUT", "computes/roomless", cluster_body(0))
    cloud.submit("named-twice", "roomless", "true")
    assert cloud.submit("named-twice", "roomless", "true", tags={"a": "b"})["properties"]["tags"] == {"a": "b"}
    body = {**cloud.job("named-twice"), "command": "false", "status": None, "services": None}
    answer = cloud.call("PUT", f"{cloud.workspace}/jobs/named-twice", {"properties": body})
    assert answer.status_code == 400
    assert "already exists, with another command" in answer.json()["error"]["message"]
