"""The supervisor of the local cloud: starts the parts in order, restarts a dead part, and stops the parts."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from azure.core.exceptions import ResourceExistsError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient, CorsRule
from azure.storage.queue import QueueServiceClient

from emulators import certs, process
from emulators.arm.declared import Storage
from emulators.eventgrid import access
from emulators.private import write_private
from emulators.storage import keys
from local import configs, signing_key
from local.declaration import Declaration
from local.record import REPOSITORY, Lock, Record, make_private, read

HOST_PORT = "host-port"  # a file in the cloud's folder
RESTARTS = 5  # of one part in the life of a cloud; a part that dies more often has a fault
FAST_TIMER = "*/5 * * * * *"


class AlreadyRunning(RuntimeError):
    """Another process runs a cloud on this folder. `record` holds the addresses, or is None during the other cloud's
    start or stop.
    """

    def __init__(self, record: Record | None) -> None:
        super().__init__(
            f"A local cloud is running already (process {record.pid})." if record else "The local cloud is in use."
        )
        self.record = record


@dataclass(frozen=True)
class Options:
    """The settings of a cloud for callers to change.

    `infra` is the folder of the Bicep files that declare the deployment. `python` runs the nodes' processes and has
    torch. `app_env` overrides the settings of the Functions app. `retry_time_scale` multiplies Event Grid's retry
    delays. `storage_log` gets a line for each request to blobs, queues and tables. With `waits_as_azure`, the messages
    and timers of a killed host are resumed as late as in Azure. With `arm_limits`, the control plane answers 429 as
    Azure Resource Manager does. `web` is the folder that stands for the web.
    """

    node_start_seconds: float = 1.0
    idle_seconds: float = 3.0
    preemption_grace_seconds: float = 5.0
    retry_time_scale: float = 1.0
    routes: Path | None = None
    storage_log: Path | None = None
    arm_limits: bool = False
    waits_as_azure: bool = False
    app: Path = REPOSITORY
    infra: Path = REPOSITORY / "infra"
    app_env: Mapping[str, str] = field(default_factory=dict)
    python: Path = Path(sys.executable)
    web: Path = configs.WEB
    say: Callable[[str], None] = lambda _: None


@dataclass
class _Running:
    """A running part, with the values for a restart at the part's address."""

    part: process.Part
    config: dict[str, Any]
    env: dict[str, str]
    restarts: int = 0


class Cloud:
    """A running local cloud, created by `start`. As a context manager, it stops at the end of the block."""

    def __init__(self, home: Path, options: Options, lock: Lock) -> None:
        self.home = home
        self.options = options
        self._lock = lock
        self._parts: dict[str, _Running] = {}
        self._declaration = Declaration(options.infra)
        self._token_key = secrets.token_urlsafe(32)  # signs the tokens of identities, for as long as this cloud runs

    @classmethod
    def start(cls, home: Path, options: Options | None = None) -> Cloud:
        """Start all parts on the state under `home`, and return when the app answers.

        Raises AlreadyRunning if another process has a cloud there, PartFailed, with the end of its log, if a part
        does not start, PermissionError if the folder is another user's. Nothing is left running then.
        """
        make_private(home)
        lock = Lock.acquire(home)
        if lock is None:
            raise AlreadyRunning(read(home))
        try:
            cloud = cls(home, options or Options(), lock)
        except BaseException:
            lock.release()
            raise
        try:
            cloud._start_all()
        except BaseException:
            cloud.stop()
            raise
        return cloud

    def __enter__(self) -> Cloud:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def connection_string(self) -> str:
        info = self._parts["storage"].part.info
        return configs.connection_string(self.storage_key, info["blob_url"], info["queue_url"], info["table_url"])

    @property
    def storage_key(self) -> str:
        """Return the account's key, which is random for each cloud folder."""
        return keys.own_key(self.home / configs.STORAGE)

    @property
    def blob_url(self) -> str:
        return str(self._parts["storage"].part.info["blob_url"])

    @property
    def api(self) -> str:
        return f"{self._url('host')}/api"

    @property
    def azureml(self) -> str:
        return self._url("azureml")

    @property
    def azureml_env(self) -> dict[str, str]:
        """Return the environment variables with which Microsoft's clients reach the workspace."""
        return dict(self._parts["azureml"].part.info["env"])

    @property
    def eventgrid(self) -> str:
        return self._url("eventgrid")

    @property
    def certs(self) -> Path:
        """Return the certificate bundle for verifying `azureml` and `eventgrid`."""
        return self.home / "certs" / "bundle.pem"

    @property
    def record(self) -> Record:
        return Record(
            pid=os.getpid(),
            api=self.api,
            connection_string=self.connection_string,
            blob_url=self.blob_url,
            azureml=self.azureml,
            eventgrid=self.eventgrid,
            certs=str(self.certs),
            workspace_id=self._parts["azureml"].part.info["workspace_id"],
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            parts={name: running.part.process.pid for name, running in self._parts.items()},
        )

    @property
    def table_tls_url(self) -> str:
        """Return the URL of the table service for clients that show a token."""
        return str(self._parts["storage"].part.info["table_tls_url"])

    def log(self, part: str) -> Path:
        """Return the log file of a part: storage, eventgrid, azureml or host."""
        return self.home / "logs" / f"{part}.log"

    def heal(self) -> list[str]:
        """Restart the parts that have died, at their old addresses. Returns their names.

        A part that does not start is retried with the next call, because a part that it needs may have died as well.
        Raises PartFailed for a part that has already been restarted RESTARTS times.
        """
        dead = [name for name, running in self._parts.items() if not running.part.alive()]
        for name in dead:
            self.options.say(f"{name} has ended and is started again")
        healed = [name for name in dead if self._restart(name)]
        if healed:
            self.record.write(self.home)
        return healed

    def stop(self) -> None:
        """Stop all parts, the app first and the storage last, whatever their state. A second call does nothing."""
        with contextlib.suppress(FileNotFoundError):
            (self.home / "cloud.json").unlink()
        while self._parts:
            _, running = self._parts.popitem()
            running.part.stop()
        self._lock.release()

    def _start_all(self) -> None:
        options, say = self.options, self.options.say
        if (old := self.home / "azurite").is_dir():
            say(f"the blobs of an earlier version, in {old}, are not read; `down --purge` removes all")
        say("storage: blobs, queues and tables")
        certs.ensure(self.home / "certs")  # before the parts start together and need the certificates
        self._start_storage()
        make_storage(self.connection_string, self._declaration.storage)
        say("eventgrid: events of the storage account and the workspace; azureml: the workspace and its cluster")
        key = access.new_key()
        storage = {"connection_string": self.connection_string, "access_log": str(self._blob_log)}
        config = configs.eventgrid(self.home, storage, self._declaration, key, options.retry_time_scale)
        port = process.free_port()
        events = f"https://127.0.0.1:{port}"
        self._start_together({"eventgrid": {**config, "port": port}, "azureml": self._azureml_config(events)})
        say("host: the Functions app")
        self._parts["host"] = self._started(
            "host", configs.host(options.app, options.waits_as_azure), self._app_settings(key)
        )
        self._let_the_page_in()
        self.record.write(self.home)

    def _start_storage(self) -> None:
        self._start_together({"storage": self._storage_config()})

    @property
    def _blob_log(self) -> Path:
        return configs.blob_log(self.home)

    def _let_the_page_in(self) -> None:
        """Let the app's own page use signed addresses of blobs, by the declared rules with its address here."""
        origin = self._url("host")
        rules = [
            CorsRule(
                [origin],
                rule["allowedMethods"],
                allowed_headers=rule["allowedHeaders"],
                exposed_headers=rule["exposedHeaders"],
                max_age_in_seconds=rule["maxAgeInSeconds"],
            )
            for rule in self._declaration.cors
        ]
        with BlobServiceClient.from_connection_string(self.connection_string) as blobs:
            blobs.set_service_properties(cors=rules)

    def _storage_config(self) -> dict[str, Any]:
        log = self.options.storage_log
        return configs.storage(self.home, self.storage_key, self._declaration, self._token_key, log)

    def _azureml_config(self, eventgrid: str) -> dict[str, Any]:
        options = self.options
        seconds = (options.node_start_seconds, options.idle_seconds, options.preemption_grace_seconds)
        topic = self._declaration.workspace_topic
        events = {"url": f"{eventgrid}/topics/{topic}/api/events", "ca": str(self.certs)}
        config = configs.azureml(self.home, self.connection_string, self._declaration, options.python, seconds)
        nodes = {**self._declaration.nodes, "token_key": self._token_key}
        limits: dict[str, Any] | None = {} if options.arm_limits else None
        return {**config, "events": events, "nodes": nodes, "arm_limits": limits, "web": str(options.web)}

    def _app_settings(self, topic_key: str) -> dict[str, str]:
        """The app's environment: Azure's settings, with the addresses of this cloud."""
        settings = {
            **self._declaration.app_settings,
            "AzureWebJobsStorage": self.connection_string,
            **self._parts["azureml"].part.info["env"],
            # Nodes show their identity, and the SDKs send tokens only over HTTPS.
            "TRAINYARD_RENDEZVOUS": self.table_tls_url,
            "TRAINYARD_TOPIC_ENDPOINT": f"{self.eventgrid}/topics/{self._declaration.own_topic}/api/events",
            "TRAINYARD_TOPIC_KEY": topic_key,
            "TRAINYARD_SIGNING_KEY": str(signing_key.own_key(self.home)),
            "TRAINYARD_REGION": "eastus",  # nodes cost nothing here, but have the prices of this region, to show costs
            # Polling costs nothing here, and a user should not wait for a retry.
            "AzureFunctionsJobHost__extensions__queues__maxPollingInterval": "00:00:01",
            "AzureFunctionsJobHost__extensions__queues__visibilityTimeout": "00:00:05",
            "TRAINYARD_RECONCILE_SCHEDULE": FAST_TIMER,
            "TRAINYARD_ALLOW": "services,identity,queue_settings",  # a job here has the rights of its sender anyway
            "TRAINYARD_NOTICES_TO": "anywhere",  # callers of this API are on this machine already
            "TRAINYARD_SCALING_SCHEDULE": FAST_TIMER,
        }
        if self.options.routes:
            settings["TRAINYARD_ROUTES"] = str(self.options.routes)
        return {**settings, **self.options.app_env}

    def _start_together(self, wanted: Mapping[str, dict[str, Any]]) -> None:
        """Start independent parts. If a part fails, the started parts are known, and so stopped."""
        with ThreadPoolExecutor(len(wanted)) as threads:
            starting = {name: threads.submit(self._started, name, config, {}) for name, config in wanted.items()}
            try:
                wait(starting.values())
            finally:  # Ctrl-C interrupts here
                done = {name: future for name, future in starting.items() if not future.exception()}
                self._parts |= {name: future.result() for name, future in done.items()}
        for future in starting.values():
            future.result()

    def _started(self, name: str, config: dict[str, Any], settings: dict[str, str]) -> _Running:
        # The user's own Azure login must not reach the parts: DefaultAzureCredential would prefer it to ours.
        inherited = {
            key: value for key, value in os.environ.items() if not key.startswith(("AZURE_", "AZUREML_", "AML_"))
        }
        env = {**inherited, **settings}
        kept = {"port": port_before(self.home, self.options.say)} if name == "host" else {}
        part = self._launch(name, {**config, **kept}, env)
        # The storage part keeps its ports itself.
        address = {"port": urlsplit(part.info["url"]).port} if "url" in part.info else {}
        if name == "host":
            write_private(self.home / HOST_PORT, str(address["port"]))
        return _Running(part, {**config, **address}, env)

    def _restart(self, name: str) -> bool:
        running = self._parts[name]
        running.restarts = _one_more(name, running.restarts, running.part.log)
        running.part.stop()  # the part has ended; this closes our end of its pipe
        try:
            running.part = self._launch(name, running.config, running.env)
        except process.PartFailed:
            if running.restarts >= RESTARTS:
                raise
            return False
        return True

    def _launch(self, name: str, config: dict[str, Any], env: dict[str, str]) -> process.Part:
        file = self.home / "configs" / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_private(file, json.dumps(config, indent=2))
        argv = [sys.executable, "-m", f"emulators.{name}", "--config", str(file)]
        return process.start(name, argv, log=self.log(name), env=env)

    def _url(self, name: str) -> str:
        return str(self._parts[name].part.info["url"])


def _one_more(name: str, restarts: int, log: Path) -> int:
    if restarts >= RESTARTS:
        raise process.PartFailed(f"{name} has ended {restarts + 1} times; end of {log}:\n{process.tail(log)}")
    return restarts + 1


def make_storage(connection_string: str, wanted: Storage) -> None:
    """Make the declared containers, queues and tables. Existing ones stay unchanged."""
    with (
        BlobServiceClient.from_connection_string(connection_string) as blobs,
        QueueServiceClient.from_connection_string(connection_string) as queues,
        TableServiceClient.from_connection_string(connection_string) as tables,
    ):
        for create, names in (
            (blobs.create_container, wanted.containers),
            (queues.create_queue, wanted.queues),
            (tables.create_table, wanted.tables),
        ):
            for name in names:
                with contextlib.suppress(ResourceExistsError):
                    create(name)


def port_before(home: Path, say: Callable[[str], None]) -> int:
    """The host's port of the last start, to keep known addresses valid; 0 if another program has the port now."""
    try:
        port = int((home / HOST_PORT).read_text())
    except (OSError, ValueError):
        return 0
    if not is_free(port):
        say(f"another program has port {port}: the page and the API get a new address")
        return 0
    return port


def is_free(port: int) -> bool:
    """Whether a server on this machine could take the port now."""
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
