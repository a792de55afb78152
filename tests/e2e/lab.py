"""A cloud with a user."""

from __future__ import annotations

import json
import ssl
import urllib.request
import weakref
from pathlib import Path
from typing import Any

from azure.storage.blob import ContainerClient

from cli.api.client import Api
from emulators.process import wait_for
from local.cloud import Cloud

LOOK_SECONDS = 0.3  # between two polls, which slow the trainings down
PATIENCE = 120.0  # seconds; a training takes some ten, most of them for importing torch


class Lab:
    """A cloud with a practitioner's actions: upload, query, wait."""

    def __init__(self, cloud: Cloud, data: Path) -> None:
        self.cloud, self.data = cloud, data
        self.api = Api(cloud.api)  # retries a busy API
        weakref.finalize(self, self.api.close)

    def upload(self, drop: str, files: dict[str, bytes]) -> None:
        with ContainerClient.from_connection_string(self.cloud.connection_string, "drops") as drops:
            for name, content in files.items():
                drops.upload_blob(f"{drop}/{name}", content, overwrite=True)

    def digits(self) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in self.data.iterdir()}

    def get(self, path: str) -> Any:
        return self.api.get(*path.split("/"))

    def drop(self, name: str) -> Any:
        """The drop, or a drop without a state if no event of the drop has arrived."""
        found = (drop for drop in self.get("drops") if drop["drop"] == name)
        return next(found, {"state": "", "run": ""})

    def drop_that_is(self, name: str, state: str) -> Any:
        def look() -> Any:
            drop = self.drop(name)
            return drop if drop["state"] == state else None

        return wait_for(look, PATIENCE, f"drop {name} to be {state}", LOOK_SECONDS)

    def archived(self, name: str) -> Any:
        """The drop's run, once it is archived."""
        run = self.drop_that_is(name, "sealed")["run"]

        def look() -> Any:
            found = self.get(f"runs/{run}")
            return found if found["archived_at"] else None

        return wait_for(look, PATIENCE, f"run {run} to be archived", LOOK_SECONDS)

    def output(self, run: dict[str, Any]) -> dict[str, int]:
        container, _, prefix = run["output"].partition("/")
        with ContainerClient.from_connection_string(self.cloud.connection_string, container) as output:
            return {b.name.removeprefix(f"{prefix}/"): b.size for b in output.list_blobs(f"{prefix}/")}

    def control(self, url: str, body: dict[str, Any] | None = None, method: str | None = None) -> Any:
        """Query or control a part of the cloud."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        context = ssl.create_default_context(cafile=str(self.cloud.certs))
        with urllib.request.urlopen(request, timeout=30, context=context) as response:
            return json.loads(response.read() or b"null")
