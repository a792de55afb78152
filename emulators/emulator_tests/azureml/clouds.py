"""Start the azureml part for a test, and send requests to it without the SDK."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from emulators.azureml.kernel.identity import token
from emulators.process import Part, start, wait_for
from emulators.storage.services import Services

CODE = Path(__file__).parent / "code"
PROBE = CODE / "probe.py"
RUN = f"python '{PROBE}'"  # the repository's path may contain spaces
ENVIRONMENT = "AzureML-local/versions/1"  # Microsoft's own environments need no registration
VERSION = "2024-04-01"  # of the OpenAPI documents that the answers must match
TERMINAL = {"Completed", "Failed", "Canceled"}


@dataclass
class Cloud:
    """A running azureml part. `arm` sends requests as a plain HTTP client with a bearer token."""

    part: Part
    config: Path

    @property
    def url(self) -> str:
        return str(self.part.info["url"])

    @property
    def workspace(self) -> str:
        return str(self.part.info["workspace_id"])

    def call(self, method: str, path: str, body: Any = None, **kwargs: Any) -> requests.Response:
        """Request a path of the server with our authority, a token, and a version of Resource Manager's API."""
        kwargs.setdefault("headers", {"Authorization": f"Bearer {token()}"})
        if path.lower().startswith("/subscriptions") and "api-version" not in path:
            path += f"{'&' if '?' in path else '?'}api-version={VERSION}"
        bundle = self.part.info["env"]["REQUESTS_CA_BUNDLE"]
        return requests.request(method, self.url + path, json=body, verify=bundle, timeout=30, **kwargs)

    def arm(self, method: str, path: str, body: Any = None) -> Any:
        """Request a path under the workspace, and return the JSON of a successful answer."""
        response = self.call(method, f"{self.workspace}/{path}", body)
        assert response.ok, response.text
        return response.json() if response.content else None

    def job(self, name: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.arm("GET", f"jobs/{name}")["properties"]
        return answer

    def details(self, name: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.call("GET", f"/history/v1.0{self.workspace}/runs/{name}/details").json()
        return answer

    def nodes(self, cluster: str) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = self.call("GET", f"/control/clusters/{cluster}").json()["nodes"]
        return answer

    def log(self, name: str, path: str = "user_logs/std_log.txt") -> str:
        url = self.details(name)["logFiles"].get(path)
        return requests.get(url, timeout=30).content.decode() if url else ""

    def submit(self, name: str, cluster: str, command: str, **properties: Any) -> dict[str, Any]:
        body = {
            "jobType": "Command",
            "command": command,
            "computeId": f"{self.workspace}/computes/{cluster}",
            "environmentId": f"{self.workspace}/environments/{ENVIRONMENT}",
            **properties,
        }
        answer: dict[str, Any] = self.arm("PUT", f"jobs/{name}", {"properties": body})
        return answer

    def wait(self, name: str, *statuses: str, timeout: float = 60) -> dict[str, Any]:
        """Wait until a job has any of these statuses (default: any terminal status)."""
        wanted = set(statuses) or TERMINAL
        wait_for(lambda: self.job(name)["status"] in wanted, timeout, f"{name} to be one of {wanted}")
        return self.job(name)

    def restart(self) -> None:
        """Stop the part normally, and start it again with the same state."""
        assert self.part.stop() == 0
        self.part = launch(self.config)


def cluster_body(maximum: int, minimum: int = 0, idle: str = "PT30S") -> dict[str, Any]:
    """The body for creating or updating a cluster."""
    scale = {"minNodeCount": minimum, "maxNodeCount": maximum, "nodeIdleTimeBeforeScaleDown": idle}
    inner = {"vmSize": "Standard_D2s_v5", "vmPriority": "LowPriority", "scaleSettings": scale}
    return {"location": "local", "properties": {"computeType": "AmlCompute", "properties": inner}}


def told(log: str, word: str) -> Any:
    """Return the last value that a probe logged under this word."""
    return json.loads(re.findall(rf"^{word} (.*)$", log, re.MULTILINE)[-1])


def gone(pid: int) -> bool:
    """Return whether the process has ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def configuration(home: Path, account: Services, **changes: Any) -> Path:
    """Write a configuration for a part whose state is under `home`."""
    config = {
        "certs": str(home / "certs"),
        "state": str(home / "state"),
        "storage": {"connection_string": account.connection_string},
        "python": sys.executable,
        "subscription_id": "00000000-0000-0000-0000-000000000001",
        "resource_group": "team",
        "workspace": "team",
        "datastores": {"drops": "drops"},
        "clusters": [{"name": "cpu-cluster", "max_instances": 4, "idle_seconds": 30}],
        "node_start_seconds": 0.2,
        "preemption_grace_seconds": 1,
        "measured_every_seconds": 0.5,
        "events": None,
        **changes,
    }
    home.mkdir(parents=True, exist_ok=True)
    path = home / "azureml.json"
    path.write_text(json.dumps(config))
    return path


def launch(config: Path) -> Part:
    argv = [sys.executable, "-m", "emulators.azureml", "--config", str(config)]
    return start("azureml", argv, log=config.with_suffix(".log"))
