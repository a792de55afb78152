"""Helpers of the contract suites that inspect requests, end the process in the middle of a request, and run Azure
ML."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from azure.core.pipeline.transport import RequestsTransport

from emulators.process import Part
from shared.kernel.settings import Workspace
from tests.fakes.ports import Crash


class Recording(RequestsTransport):  # type: ignore[misc] # the SDK hides its type behind __getattr__
    """Records method and URL of every request in `requests`. `change` may alter an answer before the SDK sees it."""

    def __init__(self, change: Callable[[Any, Any], None] | None = None) -> None:
        super().__init__()
        self.requests: list[str] = []
        self.change = change

    def send(self, request: Any, **kwargs: Any) -> Any:
        self.requests.append(f"{request.method} {request.url}")
        response = super().send(request, **kwargs)
        if self.change:
            self.change(request, response)
        return response


class Dying(RequestsTransport):  # type: ignore[misc]
    """Raises Crash in request number `at` (from 0), either before the request is sent or when its answer is lost."""

    def __init__(self, at: int, sent: bool) -> None:
        super().__init__()
        self.left, self.sent = at, sent

    def send(self, request: Any, **kwargs: Any) -> Any:
        self.left -= 1
        if self.left >= 0:
            return super().send(request, **kwargs)
        if self.sent:
            super().send(request, **kwargs)
        raise Crash(f"in {request.method}")


@dataclass(frozen=True)
class LocalAzureML:
    """A running local Azure ML, and its workspace as the app's settings name it."""

    part: Part
    workspace: Workspace

    def requests(self) -> list[dict[str, Any]]:
        """Every request from the SDK so far."""
        answer = requests.get(f"{self.part.info['url']}/control/requests", timeout=10)
        found: list[dict[str, Any]] = answer.json()
        return found

    def put(self, path: str, body: dict[str, Any]) -> None:
        """Set something over the control routes."""
        requests.put(f"{self.part.info['url']}{path}", json=body, timeout=10).raise_for_status()


def azureml_config(home: Path, connection_string: str) -> Path:
    """A configuration with a cluster at zero and a dedicated cluster that is kept warm."""
    config = {
        "certs": str(home / "certs"),
        "state": str(home / "state"),
        "storage": {"connection_string": connection_string},
        "python": sys.executable,
        "subscription_id": "00000000-0000-0000-0000-000000000001",
        "resource_group": "trainyard",
        "workspace": "trainyard",
        "datastores": {"drops": "drops"},
        "clusters": [
            {"name": "cpu-cluster", "tier": "low_priority", "max_instances": 4, "idle_seconds": 90},
            {"name": "warm", "tier": "dedicated", "min_instances": 1, "max_instances": 3, "idle_seconds": 150},
        ],
        "node_start_seconds": 0.1,
        "preemption_grace_seconds": 1,
        "events": None,
        "record_bodies": True,
    }
    path = home / "azureml.json"
    path.write_text(json.dumps(config))
    return path
