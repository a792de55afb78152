"""MLflow at the URI that the workspace advertises: MLflow's own server, started at the first request.

The workspace's jobs (as runs with the jobs' names) and models are copied to MLflow before a request that may need them.
A model that is registered through MLflow becomes a model of the workspace.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import secrets
import sys
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp

from emulators.azureml.kernel.errors import ArmError, BadRequest, Conflict
from emulators.azureml.kernel.models import TERMINAL, Asset, Job, Json, Status
from emulators.azureml.tracking import artifacts
from emulators.azureml.workspace.jobs import Listing
from emulators.azureml.workspace.workspace import ARTIFACT_DATASTORE, Workspace
from emulators.private import write_private
from emulators.process import Part, PartFailed, start

NEEDED = ("mlflow", "flask", "sqlalchemy", "alembic")
START_SECONDS = 600.0  # its import takes seconds, and on a busy machine minutes
BATCH = 500
STATUS = {
    Status.NOT_STARTED: "SCHEDULED",
    Status.QUEUED: "SCHEDULED",
    Status.COMPLETED: "FINISHED",
    Status.FAILED: "FAILED",
    Status.CANCELED: "KILLED",
}  # all others are RUNNING


class Tracking:
    """Owns the MLflow server. If the server has ended, the next request restarts it."""

    def __init__(self, workspace: Workspace, state: Path) -> None:
        self._workspace = workspace
        self._state = state
        self._database = state / "mlflow.sqlite"
        self._secret = secrets.token_urlsafe(24)
        self._starting = asyncio.Lock()
        self._copying = asyncio.Lock()
        self._posting = asyncio.Lock()
        self._part: Part | None = None
        self._session: aiohttp.ClientSession | None = None
        self._newest = 0  # number of the newest job copied to MLflow
        self._copied: dict[str, str] = {}  # copied statuses of live jobs
        self._models: set[str] = set()

    @property
    def used(self) -> bool:
        """Return whether MLflow was ever used. Before its first use MLflow has no data, so reads do not start it."""
        return self._database.exists()

    async def close(self) -> None:
        if self._session:
            await self._session.close()
        if self._part:
            await asyncio.to_thread(self._part.stop)

    async def ask(self, method: str, path: str, query: str, body: bytes) -> tuple[int, bytes, str]:
        """Forward one request. Returns status, body and content type. Raises ArmError if MLflow is not installed."""
        url = f"{await self._address()}{path}{'?' if query else ''}{query}"
        headers = {"X-Emulators-Secret": self._secret, "Content-Type": "application/json"}
        assert self._session
        async with self._session.request(method, url, data=body or None, headers=headers) as response:
            return response.status, await response.read(), response.content_type

    async def metric(self, job: str, key: str) -> list[float]:
        """Return the logged values of a job's metric in order of time, or nothing if it has none. Raises ArmError
        if MLflow fails."""
        if not self.used:
            return []
        query = urlencode({"run_id": job, "metric_key": key})
        status, body, _ = await self.ask("GET", "/api/2.0/mlflow/metrics/get-history", query, b"")
        if status == 404:
            return []
        if status != 200:
            raise ArmError(502, "INTERNAL_ERROR", f"MLflow answers {status}: {body.decode()[:300]}")
        told = sorted(json.loads(body).get("metrics", ()), key=lambda each: (each["timestamp"], each.get("step", 0)))
        return [value for each in told if isfinite(value := float(each["value"]))]

    async def copy_job(self, name: str) -> None:
        """Copy the job of this name and its status to MLflow. A name without a job is one of MLflow's own runs."""
        job = self._workspace.jobs.get(name)
        if job:
            await self._copy([job])

    async def copy_jobs(self) -> None:
        """Copy new jobs to MLflow, and update the status of live jobs."""
        async with self._copying:
            before, found = None, list[Job]()
            while page := self._workspace.jobs.page(Listing(archived=None, before=before, of=None), BATCH):
                found += [job for job in page if job.number > self._newest]
                before = page[-1].number
                if before <= self._newest:
                    break
            live = [job for name in self._copied if (job := self._workspace.jobs.get(name))]
            for at in range(0, len(found), BATCH):
                await self._copy(found[at : at + BATCH])
            await self._copy(live)
            self._newest = max([self._newest, *(job.number for job in found)])

    async def _copy(self, jobs: list[Job]) -> None:
        async with self._posting:  # one at a time, or two first jobs would create the experiment twice
            await self._post_changed([job for job in jobs if self._copied.get(job.name) != _status(job)])

    async def _post_changed(self, changed: list[Job]) -> None:
        if changed:
            await self._post("/workspace/jobs", [_run(job) for job in changed])
        for job in changed:
            self._copied[job.name] = _status(job)
            if job.status in TERMINAL and job.number <= self._newest:
                del self._copied[job.name]

    async def copy_models(self) -> None:
        """Copy new models to MLflow. MLflow's versions are numbers, so other versions are left out."""
        every = [a for shelf in self._workspace.assets.shelves("models", None)
                 for a in self._workspace.assets.versions("models", shelf.name, None)]  # fmt: skip
        new = [asset for asset in every if asset.key not in self._models and asset.version.isdecimal()]
        if new:
            await self._post("/workspace/models", [self._version(asset) for asset in new])
            self._models |= {asset.key for asset in new}

    async def registered(self, answer: bytes) -> None:
        """Copy MLflow's registered models to the workspace."""
        version: Json = json.loads(answer)["model_version"]
        place = await self._source(version["source"])
        body = {
            "modelUri": f"azureml://datastores/{place}",
            "modelType": "mlflow_model",
            "jobName": version.get("run_id") or None,
            "description": version.get("description") or None,
        }
        try:
            asset, _ = self._workspace.assets.put("models", version["name"], str(version["version"]), body)
        except (BadRequest, Conflict):  # Azure ML refuses the name or version, so only MLflow has it
            return
        self._models.add(asset.key)

    async def _source(self, source: str) -> str:
        """Return a version's source as `DATASTORE/paths/PATH`."""
        below = source.partition("mlflow-artifacts:/")[2] or source.partition("/mlflow-artifacts/artifacts/")[2]
        below = below.lstrip("/")
        if below.startswith(f"{artifacts.DATASTORES}/"):
            _, store, inner = below.split("/", 2)
            return f"{store}/paths/{inner}"
        return f"{ARTIFACT_DATASTORE}/paths/{below}"

    def _version(self, asset: Asset) -> Json:
        store, _, inner = asset.properties["modelUri"].rpartition("/datastores/")[2].partition("/paths/")
        return {
            "name": asset.name,
            "version": int(asset.version),
            "source": f"mlflow-artifacts:/{artifacts.DATASTORES}/{store}/{inner}",
            "description": asset.properties.get("description"),
            "job": asset.properties.get("jobName"),
        }

    async def _post(self, path: str, body: Any) -> None:
        status, text, _ = await self.ask("POST", path, "", json.dumps(body).encode())
        if status >= 400:
            raise ArmError(502, "INTERNAL_ERROR", f"MLflow answers {status} to {path}: {text.decode()[:300]}")

    async def _address(self) -> str:
        async with self._starting:
            if self._part is None or not self._part.alive():
                self._part = await asyncio.to_thread(self._start)
                self._session = self._session or aiohttp.ClientSession(trust_env=False)
            return str(self._part.info["url"])

    def _start(self) -> Part:
        if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
            raise ArmError(
                501,
                "NOT_IMPLEMENTED",
                f"MLflow's server needs {', '.join(missing)}, which this installation lacks: "
                "pip install 'azure-emulators[mlflow]'.",
            )
        file = self._state / "tracking.json"
        values = {
            "database": str(self._database),
            "artifact_root": artifacts.ROOT,
            "run_files": artifacts.RUN_FILES,
            "secret": self._secret,
        }
        write_private(file, json.dumps(values))
        argv = [sys.executable, "-m", "emulators.tracking", "--config", str(file)]
        try:
            return start("tracking", argv, log=self._state / "tracking.log", timeout=START_SECONDS)
        except PartFailed as error:
            raise ArmError(502, "INTERNAL_ERROR", f"MLflow's server does not start: {error}"[:2000]) from None


def _status(job: Job) -> str:
    return STATUS.get(job.status, "RUNNING")


def _run(job: Job) -> Json:
    return {
        "name": job.name,
        "display_name": job.properties["displayName"],
        "experiment": job.experiment,
        "tags": {key: value for key, value in job.properties["tags"].items() if value is not None},
        "status": _status(job),
        "start": _milliseconds(job.started or job.created),
        "end": _milliseconds(job.ended) if job.ended else None,
    }


def _milliseconds(time: str) -> int:
    return int(datetime.fromisoformat(time).timestamp() * 1000)
