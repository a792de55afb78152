"""The configuration of each part of the local cloud, as plain values derived from infra/."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from emulators.storage.keys import ACCOUNT
from local.declaration import Declaration
from local.record import REPOSITORY

WEB = REPOSITORY / "local" / "web"  # local/web/HOST/PATH answers jobs for https://HOST/PATH
REGISTRIES = REPOSITORY / ".trainyard" / "registries"  # folders of asset files, which their owner puts there
ENVIRONMENTS = REPOSITORY / ".trainyard" / "environments"  # of jobs; all clouds of this folder share them
STORAGE = "storage"  # the folder of the account's data, inside the cloud's folder
# The work of a killed host is resumed after this time, and its timers after up to twice the time. In Azure these are
# 600 s and 60 s; shorter times suit a laptop, where a host is restarted at once.
LEASE_SECONDS, LOCK_SECONDS = 30, 15


def storage(home: Path, key: str, declaration: Declaration, token_key: str, access_log: Path | None) -> dict[str, Any]:
    """Return the blobs, queues and tables of the account."""
    return {
        "host": "127.0.0.1",
        "state": str(home / STORAGE),
        "blob_log": str(blob_log(home)),
        "key": key,
        "certs": str(home / "certs"),
        "identities": {"key": token_key, "grants": declaration.table_grants},
        "access_log": str(access_log) if access_log else None,
    }


def blob_log(home: Path) -> Path:
    """Return where the storage emulator reports the blobs for which Event Grid makes events."""
    return home / STORAGE / "blobs.log"


def connection_string(key: str, blobs: str, queues: str, tables: str) -> str:
    endpoints = f"BlobEndpoint={blobs};QueueEndpoint={queues};TableEndpoint={tables};"
    return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={key};{endpoints}"


def eventgrid(
    home: Path, storage: dict[str, str], declaration: Declaration, topic_key: str, retry_time_scale: float
) -> dict[str, Any]:
    return {
        "host": "127.0.0.1",
        "port": 0,
        "certs": str(home / "certs"),
        "state": str(home / "eventgrid"),
        "storage": storage,
        "topics": declaration.topics(topic_key),
        "subscriptions": declaration.subscriptions,
        "retry_time_scale": retry_time_scale,
    }


def azureml(
    home: Path,
    connection_string: str,
    declaration: Declaration,
    python: Path,
    seconds: tuple[float, float, float],
) -> dict[str, Any]:
    """`seconds`: the duration of a node's start, of an idle node, and of a preempted node's notice."""
    node_start, idle, grace = seconds
    return {
        "host": "127.0.0.1",
        "port": 0,
        "certs": str(home / "certs"),
        "state": str(home / "azureml"),
        "storage": {"connection_string": connection_string},
        "python": str(python),
        **declaration.workspace,
        "datastores": declaration.datastores,
        "clusters": declaration.clusters(idle),
        "roles": declaration.workspace_roles,
        "node_start_seconds": node_start,
        "preemption_grace_seconds": grace,
        "events": None,
        "environments": str(ENVIRONMENTS),
        "registries": str(REGISTRIES),
        "made_of": dict.fromkeys(("trainyard", "trainyard-gpu"), trainer_requirements()),
        "node_environment": {
            "TRAINYARD_MLFLOW": "off",  # our trainers' rows are in their files
            "TRAINYARD_LOCAL_NODES": "1",  # trainers/batchai_launch.py installs nothing on such a node
        },
    }


def trainer_requirements() -> list[str]:
    """Return the packages of the trainers' environment: the packages installed for the trainers, linked within a
    second.

    For Azure, the trainers' conda file declares the same packages, and also MLflow, because the MLflow server is Azure
    ML's own.
    """
    lines = (REPOSITORY / "trainers" / "requirements.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def host(app: Path, waits_as_azure: bool = False) -> dict[str, Any]:
    shorter = {"invisibility_seconds": LEASE_SECONDS, "lock_seconds": LOCK_SECONDS}
    return {
        "host": "127.0.0.1",
        "port": 0,
        "app": str(app),
        "require_keys": False,
        "host_id": "trainyard-local",
        "backend": "direct",
        **({} if waits_as_azure else shorter),
    }
