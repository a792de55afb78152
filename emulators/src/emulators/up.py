"""The emulators together: storage, Event Grid and Azure ML on one folder, started at once and stopped in order.

    with start(Path("state"), Options()) as running:
        os.environ.update(running.env)  # then MLClient, the storage clients and MLflow find it

This module imports nothing that takes long to import, so that starting takes only as long as the parts.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulators import process
from emulators.private import private_folder, write_private
from emulators.storage import keys

Json = dict[str, Any]
SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
PORTS = ("blob", "queue", "table", "eventgrid", "azureml")
RECORD = "emulators.json"  # in the folder while they run: addresses and the clients' environment


@dataclass(frozen=True)
class Options:
    """The settings of the emulators. `clusters` maps names to maximum nodes. `more` is merged into the parts'
    configurations."""

    subscription_id: str = SUBSCRIPTION
    resource_group: str = "local"
    workspace: str = "local"
    clusters: Mapping[str, int] = field(default_factory=lambda: {"cpu-cluster": 4})
    more: Mapping[str, Json] = field(default_factory=dict)
    say: Callable[[str], None] = lambda _: None


@dataclass
class Running:
    """Running emulators. `env` has the variables with which Microsoft's clients find them. `seconds` is the
    duration of the start."""

    home: Path
    key: str = field(repr=False)
    parts: dict[str, process.Part]
    topic_key: str = field(repr=False)
    seconds: float = 0.0

    @property
    def connection_string(self) -> str:
        urls = self.parts["storage"].info
        return _connection_string(self.key, urls["blob_url"], urls["queue_url"], urls["table_url"])

    @property
    def env(self) -> dict[str, str]:
        found: dict[str, str] = self.parts["azureml"].info["env"]
        return {**found, "AZURE_STORAGE_CONNECTION_STRING": self.connection_string}

    @property
    def record(self) -> Json:
        """Return the content of the file RECORD."""
        return {
            "pid": os.getpid(),
            "azureml": self.parts["azureml"].info["url"],
            "eventgrid": self.parts["eventgrid"].info["url"],
            "topics": {name: f"{self.parts['eventgrid'].info['url']}/topics/{name}/api/events" for name in TOPICS},
            "topic_key": self.topic_key,
            "workspace_id": self.parts["azureml"].info["workspace_id"],
            "env": self.env,
        }

    def failed(self) -> list[str]:
        """Return the names of the parts that ended without a stop."""
        return [name for name, part in self.parts.items() if not part.alive()]

    def stop(self) -> None:
        """Stop every part, the storage last. A second call does nothing."""
        with contextlib.suppress(FileNotFoundError):
            (self.home / RECORD).unlink()
        for name in ("azureml", "eventgrid", "storage"):
            if part := self.parts.get(name):
                part.stop()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


TOPICS = ("storage", "workspace", "custom")


def start(home: Path, options: Options | None = None) -> Running:
    """Start everything with the state under `home`, at the addresses of the last start if they are free.

    Raises PartFailed, with the end of the log, if a part does not start. Then nothing is left running.
    """
    begun, options = time.monotonic(), options or Options()
    home = home.resolve()
    private_folder(home)
    ports, topic_key = _ports(home), _topic_key(home)
    key = keys.own_key(home / "storage")
    configs = _configs(home, options, ports, key, topic_key)
    running = _start_all(home, key, configs, topic_key)
    running.seconds = time.monotonic() - begun
    write_private(home / RECORD, json.dumps(running.record, indent=2) + "\n")
    return running


def _start_all(home: Path, key: str, configs: Json, topic_key: str) -> Running:
    with ThreadPoolExecutor(len(configs)) as threads:
        starting = {name: threads.submit(_start, home, name, config) for name, config in configs.items()}
    every: list[Future[Any]] = [*starting.values()]
    errors = [error for future in every if (error := future.exception())]
    if not errors:
        parts = {name: future.result() for name, future in starting.items()}
        return Running(home, key, parts, topic_key)
    for future in reversed(every):
        if not future.exception():
            future.result().stop()
    raise errors[0]


def _start(home: Path, name: str, config: Json) -> process.Part:
    file = home / "configs" / f"{name}.json"
    private_folder(file.parent)
    write_private(file, json.dumps(config, indent=2))
    # The user's own Azure login must not reach the parts: their clients would prefer it.
    env = {key: value for key, value in os.environ.items() if not key.startswith(("AZURE_", "AZUREML_", "AML_"))}
    argv = [sys.executable, "-m", f"emulators.{name}", "--config", str(file)]
    return process.start(name, argv, log=home / "logs" / f"{name}.log", env=env)


def _configs(home: Path, options: Options, ports: Mapping[str, int], key: str, topic_key: str) -> Json:
    urls = {name: f"http://127.0.0.1:{ports[name]}/{keys.ACCOUNT}" for name in ("blob", "queue", "table")}
    storage = {"connection_string": _connection_string(key, urls["blob"], urls["queue"], urls["table"])}
    certs = str(home / "certs")
    events = {"url": f"https://127.0.0.1:{ports['eventgrid']}/topics/workspace/api/events", "ca": f"{certs}/bundle.pem"}
    blob_log = str(home / "storage" / "blobs.log")
    of_storage = {
        "blob_port": ports["blob"],
        "queue_port": ports["queue"],
        "table_port": ports["table"],
        "key": key,
        "state": str(home / "storage"),
        "blob_log": blob_log,
    }
    eventgrid = {
        "port": ports["eventgrid"],
        "certs": certs,
        "state": str(home / "eventgrid"),
        "storage": {**storage, "access_log": blob_log},
        "topics": _topics(options, topic_key),
        "make_destinations": True,
    }
    azureml = {
        "port": ports["azureml"],
        "certs": certs,
        "state": str(home / "azureml"),
        "storage": storage,
        "python": sys.executable,
        "registries": str(home / "registries"),
        "subscription_id": options.subscription_id,
        "resource_group": options.resource_group,
        "workspace": options.workspace,
        "clusters": [{"name": name, "max_instances": most} for name, most in options.clusters.items()],
        "events": events,
    }
    made = {"storage": of_storage, "eventgrid": eventgrid, "azureml": azureml}
    return {name: {**config, **options.more.get(name, {})} for name, config in made.items()}


def _topics(options: Options, key: str) -> list[Json]:
    """Return the topics of TOPICS, each with the source of its events."""
    group = f"/subscriptions/{options.subscription_id}/resourceGroups/{options.resource_group}/providers"
    account = f"{group}/Microsoft.Storage/storageAccounts/{keys.ACCOUNT}"
    workspace = f"{group}/Microsoft.MachineLearningServices/workspaces/{options.workspace}"
    return [
        {"name": "storage", "resource": account, "source": "storage"},
        {"name": "workspace", "resource": workspace},
        {"name": "custom", "resource": f"{group}/Microsoft.EventGrid/topics/custom", "key": key},
    ]


def _connection_string(key: str, blobs: str, queues: str, tables: str) -> str:
    endpoints = f"BlobEndpoint={blobs};QueueEndpoint={queues};TableEndpoint={tables};"
    return f"DefaultEndpointsProtocol=http;AccountName={keys.ACCOUNT};AccountKey={key};{endpoints}"


def _ports(home: Path) -> dict[str, int]:
    """Return a free port for each part before any part starts: the ports of the last start if they are free."""
    file = home / "ports.json"
    saved = json.loads(file.read_text()) if file.exists() else {}
    with contextlib.ExitStack() as stack:
        found = {name: _free(stack, saved.get(name, 0)) for name in PORTS}
    write_private(file, json.dumps(found))
    return found


def _free(stack: contextlib.ExitStack, port: int) -> int:
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError:
        listener = socket.create_server(("127.0.0.1", 0))
    stack.enter_context(listener)
    return int(listener.getsockname()[1])


def _topic_key(home: Path) -> str:
    file = home / "topic.key"
    if not file.exists():
        from emulators.eventgrid.access import new_key

        write_private(file, new_key())
    return file.read_text()
