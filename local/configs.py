"""The configuration of each part of the local cloud, as plain values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from emulators.storage.azurite import ACCOUNT

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
GROUP = WORKSPACE = "trainyard"
CONTAINERS = ("drops", "output", "deadletter")
QUEUES = ("drop-events", "drop-checks", "submissions", "job-events", "run-looks", "archives", "announcements")
CLUSTER = "cpu-cluster"
MAX_NODES = 4
# Calls after which a blob is whole, or has another name. Azurite makes none of the last four; a test may publish them.
UPLOAD_CALLS = [
    "PutBlob",
    "PutBlockList",
    "CopyBlob",
    "FlushWithClose",
    "SftpCommit",
    "RenameFile",
    "RenameDirectory",
    "SftpRename",
]
UPLOAD_TYPES = [f"Microsoft.Storage.{name}" for name in ("BlobCreated", "BlobRenamed", "DirectoryRenamed")]
LEASE_SECONDS = 30  # what a killed host had in work is taken up again after so long; renewed at half time


def storage(home: Path, key: str, access_log: Path | None) -> dict[str, Any]:
    """The queues and tables; the blobs are Azurite's, under the same account and key."""
    log = str(access_log) if access_log else None
    return {"host": "127.0.0.1", "state": str(home / "storage"), "key": key, "access_log": log}


def connection_string(key: str, blobs: str, queues: str, tables: str) -> str:
    endpoints = f"BlobEndpoint={blobs};QueueEndpoint={queues};TableEndpoint={tables};"
    return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={key};{endpoints}"


def eventgrid(home: Path, storage: dict[str, str], topic_key: str, retry_time_scale: float) -> dict[str, Any]:
    providers = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers"
    workspaces = f"{providers}/Microsoft.MachineLearningServices/workspaces"
    return {
        "host": "127.0.0.1",
        "port": 0,
        "certs": str(home / "certs"),
        "state": str(home / "eventgrid"),
        "storage": storage,
        "topics": [
            {
                "name": "storage",
                "resource": f"{providers}/Microsoft.Storage/storageAccounts/devstoreaccount1",
                "source": "azurite",
            },
            {"name": "azureml", "resource": f"{workspaces}/{WORKSPACE}"},
            {"name": "trainyard", "resource": f"{providers}/Microsoft.EventGrid/topics/trainyard", "key": topic_key},
        ],
        "subscriptions": [_drop_events(), _job_events()],
        "retry_time_scale": retry_time_scale,
    }


def _drop_events() -> dict[str, Any]:
    return _subscription(
        "drop-events",
        "storage",
        {
            "includedEventTypes": UPLOAD_TYPES,
            "subjectBeginsWith": "/blobServices/default/containers/drops/blobs/",
            "advancedFilters": [{"operatorType": "StringIn", "key": "data.api", "values": UPLOAD_CALLS}],
        },
    )


def _job_events() -> dict[str, Any]:
    types = [f"Microsoft.MachineLearningServices.{name}" for name in ("RunStatusChanged", "RunCompleted")]
    return _subscription("job-events", "azureml", {"includedEventTypes": types})


def _subscription(name: str, topic: str, event_filter: dict[str, Any]) -> dict[str, Any]:
    """A subscription that delivers into the queue of its own name, with Azure's default retry policy."""
    return {
        "name": name,
        "topic": topic,
        "eventDeliverySchema": "EventGridSchema",
        "destination": {"endpointType": "StorageQueue", "properties": {"queueName": name}},
        "filter": event_filter,
        "retryPolicy": {"maxDeliveryAttempts": 30, "eventTimeToLiveInMinutes": 1440},
        "deadLetterDestination": {"endpointType": "StorageBlob", "properties": {"blobContainerName": "deadletter"}},
    }


def azureml(home: Path, connection_string: str, python: Path, seconds: tuple[float, float, float]) -> dict[str, Any]:
    """`seconds`: how long a node takes to start, stays idle before it goes, and may go on once it is preempted."""
    node_start, idle, grace = seconds
    return {
        "host": "127.0.0.1",
        "port": 0,
        "certs": str(home / "certs"),
        "state": str(home / "azureml"),
        "storage": {"connection_string": connection_string},
        "python": str(python),
        "subscription_id": SUBSCRIPTION,
        "resource_group": GROUP,
        "workspace": WORKSPACE,
        "location": "local",
        "datastores": {"drops": "drops"},
        "clusters": [
            {
                "name": CLUSTER,
                "vm_size": "Standard_D2s_v5",
                "tier": "low_priority",
                "min_instances": 0,
                "max_instances": MAX_NODES,
                "idle_seconds": idle,
            }
        ],
        "node_start_seconds": node_start,
        "preemption_grace_seconds": grace,
        "events": None,
    }


def host(app: Path) -> dict[str, Any]:
    return {
        "host": "127.0.0.1",
        "port": 0,
        "app": str(app),
        "require_keys": False,
        "host_id": "trainyard-local",
        "backend": "direct",
        "invisibility_seconds": LEASE_SECONDS,
    }
