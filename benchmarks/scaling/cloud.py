"""The local cloud with a simulated cluster and Resource Manager's limits, and the CPU time and memory of each part."""

from __future__ import annotations

import contextlib
import json
import os
import ssl
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulators.testing import azurite
from local import cloud
from shared import wiring
from shared.kernel.settings import Settings
from shared.system import System

CLUSTER = "cpu-cluster"
ARM_READS = (250, 25)  # tokens of Resource Manager's bucket, and how many come back a second
ROUTES = f"routes: {{noop: {{template: noop.yaml, cluster: {CLUSTER}, quiet_seconds: 60}}}}\n"
TEMPLATE = """
command: python -c "print('done')"
environment: azureml:trainyard@latest
inputs: {data: {type: uri_folder, path: azureml://datastores/drops/paths/x/}}
outputs: {models: {type: uri_folder}}
"""
_SETTINGS = {
    "AzureFunctionsJobHost__extensions__queues__maxPollingInterval": "00:00:01",
    "TRAINYARD_SCALING_SCHEDULE": "0 0 0 1 1 *",  # cluster scaling is not measured here
}


@dataclass(frozen=True)
class Plan:
    """The settings of a ScaleCloud. `life` describes the simulated jobs, see emulators.azureml.kernel.config.Life;
    `writes` is the bucket for writes.

    `storage_log` gets a line for each request to storage. With `waits_as_azure` locks are held as long as in Azure.
    """

    life: dict[str, Any] = field(default_factory=dict)
    writes: tuple[int, int] = ARM_READS
    reconcile: str = "0 */5 * * * *"
    azurite: bool = False
    app_env: dict[str, str] = field(default_factory=dict)
    storage_log: Path | None = None
    waits_as_azure: bool = False


class ScaleCloud(cloud.Cloud):
    """A local cloud that runs the class attribute `plan`."""

    plan = Plan()

    _azurite: azurite.Azurite | None = None

    def _start_storage(self) -> None:
        super()._start_storage()  # elastic runs reach its tables with their identity
        if self.plan.azurite:
            self._azurite = azurite.start(self.home / "azurite", key=self.storage_key)

    def stop(self) -> None:
        super().stop()
        if self._azurite:
            self._azurite.stop()

    @property
    def _blob_log(self) -> Path:
        return self._azurite.access_log if self._azurite else super()._blob_log

    @property
    def blob_url(self) -> str:
        return self._azurite.blob_url if self._azurite else super().blob_url

    def _azureml_config(self, eventgrid: str) -> dict[str, Any]:
        config = super()._azureml_config(eventgrid)
        limits = {"reads": ARM_READS, "writes": self.plan.writes, "deletes": ARM_READS}
        seed = {"name": CLUSTER, "simulated": self.plan.life}
        return {**config, "clusters": [seed], "arm_limits": limits}

    @property
    def connection_string(self) -> str:
        return self._azurite.connection_string if self._azurite else super().connection_string

    def restart_host(self) -> None:
        """Start a new process of the app, with nothing imported yet."""
        self._parts["host"].part.stop()
        self._parts["host"].restarts = 0
        self._restart("host")

    def pids(self) -> dict[str, int]:
        return self.record.parts | ({"azurite": self._azurite.pid} if self._azurite else {})

    def system(self) -> System:
        """Return the app's own parts, in this process."""
        env = self._parts["host"].env
        os.environ.update(self._parts["azureml"].part.info["env"])
        return wiring.build(Settings.from_env(env))

    def ask(self, url: str, body: Any = None) -> Any:
        """Send a request to a control route of one of the parts."""
        data = None if body is None else json.dumps(body).encode()
        context = ssl.create_default_context(cafile=str(self.certs)) if url.startswith("https") else None
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600, context=context) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def reads(self) -> int:
        """Return the number of reads among the latest requests that Resource Manager remembers."""
        return sum(r["method"] == "GET" and r["path"].startswith("/subscriptions") for r in self.arm_requests())

    def arm_requests(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask(f"{self.azureml}/control/requests")
        return found

    def lose_events(self, share: float, *types: str) -> None:
        self.ask(f"{self.eventgrid}/control/faults", {"lose": share, "event_types": list(types) or None})


@contextlib.contextmanager
def running(home: Path, plan: Plan) -> Iterator[ScaleCloud]:
    home.mkdir(parents=True, exist_ok=True)
    (home / "routes.yaml").write_text(ROUTES)
    (home / "noop.yaml").write_text(TEMPLATE)

    class Planned(ScaleCloud):
        pass

    Planned.plan = plan
    env = {**_SETTINGS, "TRAINYARD_RECONCILE_SCHEDULE": plan.reconcile, **plan.app_env}
    options = cloud.Options(
        routes=home / "routes.yaml", app_env=env, storage_log=plan.storage_log, waits_as_azure=plan.waits_as_azure
    )
    with Planned.start(home / "cloud", options) as one:
        assert isinstance(one, ScaleCloud)
        yield one


def cpu_seconds(pids: dict[str, int]) -> dict[str, float]:
    """Return the CPU seconds (user and system) of each part so far: of its process and of its child processes."""
    return {name: sum(_cpu_seconds(each) for each in _family(pid)) for name, pid in pids.items()}


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _family(pid: int) -> list[int]:
    """Return the process and its children, because the host has a worker process."""
    children = (path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    return [pid, *(int(child) for each in children for child in each)]


def memory_mib(pid: int, key: str = "VmRSS") -> float:
    """Return the memory of the process and its children: VmRSS is the present memory, VmHWM the peak."""
    return sum(_memory_mib(each, key) for each in _family(pid))


def _memory_mib(pid: int, key: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) / 1024
    return 0.0


def p95(samples: list[float]) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))] if ordered else float("nan")
