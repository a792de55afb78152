"""Permissions as infra/ declares them: what each identity can and can't reach."""

from __future__ import annotations

import pytest

from emulators.arm import declared
from tests.infra.declared import account_id, grants, main, principal, workspace_id

ACCOUNT = declared.ACCOUNT


def test_the_cluster_role_is_the_narrow_one() -> None:
    """The app resizes clusters with a custom role that can create and delete nothing; as Data Scientist it may stop
    an instance."""
    access, who = grants(), principal("id-app-")
    compute = f"{workspace_id()}/computes/cpu-cluster"
    verbs = ("write", "stop/action", "delete")
    may = {verb: access.may(who, f"{declared.WORKSPACES}/computes/{verb}", compute) for verb in verbs}
    assert may == {"write": True, "stop/action": True, "delete": False}


@pytest.mark.parametrize(
    ("action", "target", "may"),
    [
        ("blobServices/containers/blobs/read", "/blobServices/default/containers/drops", True),
        ("blobServices/containers/blobs/write", "/blobServices/default/containers/drops", False),
        ("blobServices/containers/blobs/write", "/blobServices/default/containers/azureml", True),
        ("blobServices/containers/blobs/read", "/blobServices/default/containers/code", True),
        ("blobServices/containers/blobs/write", "/blobServices/default/containers/code", False),
        ("blobServices/containers/blobs/read", "/blobServices/default/containers/output", False),
        ("blobServices/containers/blobs/read", "/blobServices/default/containers/app-package", False),
        ("tableServices/tables/entities/write", "/tableServices/default/tables/rendezvous", True),
        ("tableServices/tables/entities/write", "/tableServices/default/tables/runs", False),
        ("tableServices/tables/entities/read", "/tableServices/default/tables/runs", False),
        ("queueServices/queues/messages/add/action", "/queueServices/default/queues/archives", False),
    ],
)
def test_what_a_training_can_reach(action: str, target: str, may: bool) -> None:
    """Code on a node reads drops and writes its outputs, and can't access runs, archives, code or queues."""
    assert grants().may(principal("id-nodes-"), f"{ACCOUNT}/{action}", account_id() + target) is may


def workspace_container() -> str:
    names = declared.storage(main()).containers
    name = next(name for name in names if name.startswith("azureml-blobstore-"))
    return f"{account_id()}/blobServices/default/containers/{name}"


def test_nodes_write_the_workspaces_container() -> None:
    """Outputs of jobs go to the workspace's own container, whose name Azure ML chooses; nodes submit nothing."""
    who = principal("id-nodes-")
    assert grants().may(who, f"{declared.CONTAINERS}/blobs/write", workspace_container())
    assert not grants().may(who, f"{declared.WORKSPACES}/jobs/write", workspace_id())


def test_images_are_pulled_by_azure_mls_own_grant() -> None:
    """infra/ does not grant AcrPull to nodes: Azure ML does, and a second grant would fail the deployment."""
    registry = main().one("Microsoft.ContainerRegistry/registries").id
    assert not grants().may(principal("id-nodes-"), "Microsoft.ContainerRegistry/registries/pull/read", registry)


def test_whoever_deployed_sees_what_jobs_wrote() -> None:
    """The studio shows logs and outputs with the viewer's permissions, so the deployer may read both containers."""
    read, write = (f"{declared.CONTAINERS}/blobs/{verb}" for verb in ("read", "write"))
    logs = f"{account_id()}/blobServices/default/containers/azureml"
    for target in (logs, workspace_container()):
        assert grants().may("operator", read, target)
        assert not grants().may("operator", write, target)


def test_events_can_be_delivered() -> None:
    """Each topic's identity may write to its own queue and store dead letters, and to no other queue."""
    declared.check_delivery(main(), grants())
    topics = {topic.name: topic for topic in main().of(declared.SYSTEM_TOPICS)}
    for name, topic in topics.items():
        who = main().runtime(topic, ("identity", "principalId"))
        queues = {queue.last_name for queue in main().of(declared.QUEUES) if grants().may(who, declared.SEND, queue.id)}
        assert queues == {"drop-events" if "storage" in name else "job-events"}
