"""The reach and the exclusions of roles, and the permission that each request requires."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulators.arm import declared
from emulators.arm.access import Access, built_in
from emulators.arm.deploy import deploy
from emulators.arm.operations import Need, Request, UnknownOperation, needs, workspace_action

WORKSPACE = "Microsoft.MachineLearningServices/workspaces"
ENTITIES = "Microsoft.Storage/storageAccounts/tableServices/tables/entities"
MESSAGES = "Microsoft.Storage/storageAccounts/queueServices/queues/messages"
BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
SENDER = "c6a89b2d-59bc-44d0-9896-0f6e12d7b80a"
WRITER = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"
DELIVERY = """
param role string = '%s'
resource account 'Microsoft.Storage/storageAccounts@1' = { name: 'st' }
resource service 'Microsoft.Storage/storageAccounts/queueServices@1' = { parent: account, name: 'default' }
resource queue 'Microsoft.Storage/storageAccounts/queueServices/queues@1' = { parent: service, name: 'events' }
resource blobs 'Microsoft.Storage/storageAccounts/blobServices@1' = { parent: account, name: 'default' }
resource letters 'Microsoft.Storage/storageAccounts/blobServices/containers@1' = { parent: blobs, name: 'dead' }
resource topic 'Microsoft.EventGrid/systemTopics@1' = { name: 'topic', properties: { source: account.id } }
resource send 'Microsoft.Authorization/roleAssignments@1' = {
  name: 'send'
  scope: queue
  properties: { principalId: topic.identity.principalId, roleDefinitionId: 'x/${role}' }
}
resource keep 'Microsoft.Authorization/roleAssignments@1' = {
  name: 'keep'
  scope: blobs
  properties: { principalId: topic.identity.principalId, roleDefinitionId: 'x/%s' }
}
resource subscription1 'Microsoft.EventGrid/systemTopics/eventSubscriptions@1' = {
  parent: topic
  name: 'sub'
  properties: {
    deliveryWithResourceIdentity: { destination: { properties: { resourceId: account.id, queueName: 'QUEUE' } } }
    deadLetterWithResourceIdentity: {
      deadLetterDestination: { properties: { resourceId: account.id, blobContainerName: 'dead' } }
    }
  }
}
"""


def role(name: str) -> object:
    return next(role for role in built_in() if role.name == name)


def check(folder: Path, queue: str = "events", role_id: str = SENDER) -> None:
    (folder / "main.bicep").write_text((DELIVERY % (role_id, WRITER)).replace("QUEUE", queue))
    deployment = deploy(folder / "main.bicep", {})
    declared.check_delivery(deployment, Access(deployment))


def test_a_data_scientist_may_do_all_but_change_computes() -> None:
    """A data scientist may use jobs, but may change neither the workspace nor its computes, as Azure describes the
    role."""
    scientist = role("AzureML Data Scientist")
    may = {what: scientist.allows(f"{WORKSPACE}/{what}") for what in ("jobs/write", "computes/write", "write", "read")}  # type: ignore[attr-defined]
    assert may == {"jobs/write": True, "computes/write": False, "write": False, "read": True}


def test_delivery_that_is_allowed_passes(tmp_path: Path) -> None:
    """A topic passes if its identity may send to the queue and write dead letters. A role on a parent scope is
    inherited."""
    check(tmp_path)


@pytest.mark.parametrize(
    ("queue", "role_id", "message"),
    [
        ("evnts", SENDER, "subscription sub: queues/evnts is not declared"),
        ("events", WRITER, "subscription sub: queues/events: the identity of topic may not write there"),
    ],
)
def test_delivery_that_would_fail_is_refused(tmp_path: Path, queue: str, role_id: str, message: str) -> None:
    """A missing queue, and a role without the right to send to the queue, are found before the deployment."""
    with pytest.raises(declared.DeploymentFailed, match=message):
        check(tmp_path, queue, role_id)


@pytest.mark.parametrize(
    ("request_", "actions", "target"),
    [
        (Request("blob", "GET", "/drops?restype=container&comp=list"), f"{BLOBS}/read", "containers/drops"),
        (Request("blob", "PUT", "/drops/a%20b"), f"{BLOBS}/write", "containers/drops"),
        (Request("blob", "HEAD", "/drops/a"), f"{BLOBS}/read", "containers/drops"),
        (Request("queue", "POST", "/q/messages"), f"{MESSAGES}/add/action", "queues/q"),
        (Request("queue", "GET", "/q/messages?peekonly=true"), f"{MESSAGES}/read", "queues/q"),
        (Request("queue", "DELETE", "/q/messages/1?popreceipt=x"), f"{MESSAGES}/process/action", "queues/q"),
        (Request("table", "GET", "/runs(PartitionKey='a',RowKey='b')"), f"{ENTITIES}/read", "tables/runs"),
        (Request("table", "PATCH", "/runs(RowKey='b')", {"if-match": "x"}), f"{ENTITIES}/write", "tables/runs"),
    ],
)
def test_requests_need_what_azure_documents(request_: Request, actions: str, target: str) -> None:
    """Each kind of request needs the permission in Azure's tables, on the container, queue or table in its path."""
    (need,) = needs(request_)
    assert actions in [action for some in need.any_of for action in some]
    assert need.target.endswith(target)


def test_a_copy_also_reads_its_source() -> None:
    """Copying needs the right to write at the destination and to read at the source."""
    copy = Request("blob", "PUT", "/output/x", {"x-ms-copy-source": "https://st.blob/account/azureml/y"})
    assert [need.target.rpartition("/")[2] for need in needs(copy)] == ["output", "azureml"]


def test_a_transaction_needs_what_its_parts_need() -> None:
    """A table transaction needs the permission of each of its operations."""
    body = "--c\r\nPOST http://h/account/runs HTTP/1.1\r\nX: y\r\n\r\n{}\r\n--c\r\n" + (
        "DELETE http://h/account/runs(PartitionKey='a',RowKey='b') HTTP/1.1\r\nIf-Match: *\r\n\r\n--c--"
    )
    found = needs(Request("table", "POST", "/$batch", {}, body))
    assert found == [
        Need(((f"{ENTITIES}/add/action",), (f"{ENTITIES}/write",)), "/tableServices/default/tables/runs"),
        Need(((f"{ENTITIES}/delete",),), "/tableServices/default/tables/runs"),
    ]


def test_control_plane_requests() -> None:
    """The action is the resource type with a verb; a POST's path contains its action."""
    place = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
    assert workspace_action("PATCH", f"{place}/computes/c") == (f"{WORKSPACE}/computes/write", f"{place}/computes/c")
    assert workspace_action("POST", f"{place}/jobs/j/cancel") == (f"{WORKSPACE}/jobs/cancel/action", f"{place}/jobs/j")


def test_an_unknown_request_is_no_guess() -> None:
    """A request that the tables do not contain is an error."""
    with pytest.raises(UnknownOperation):
        needs(Request("blob", "PUT", "/drops"))
