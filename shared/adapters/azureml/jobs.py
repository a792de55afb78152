"""Azure ML jobs. A job has the name of its run, so a second submission of a run creates no second job."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from shared.adapters.azureml import mlflow, pipelines, sdk_job
from shared.adapters.azureml.clusters import AzureMLClusters
from shared.adapters.azureml.code_assets import AssetIds, AzureMLAssets, WorkspaceBlobs, environment_id
from shared.adapters.azureml.document import document
from shared.adapters.azureml.failures import failure_of
from shared.adapters.azureml.inline_environment import inline_environment
from shared.adapters.azureml.job_body import job_body
from shared.adapters.azureml.job_folder import job_folder, rank_of
from shared.adapters.azureml.job_forms import form_of
from shared.adapters.azureml.pipelines import moment
from shared.adapters.azureml.workspace import connect, sdk_errors
from shared.adapters.translation import without_secrets
from shared.jobs.location import Asset, Location, Pattern, Where
from shared.jobs.model import ENDED, JobFolder, JobState, JobStatus, JobTimes
from shared.jobs.ports import LivePage
from shared.jobs.problem import Problem
from shared.jobs.readers.azureml import environment_document
from shared.jobs.readers.job_status import state_of
from shared.jobs.readers.place_text import PLACE_FORM, SCHEME, place_text, read_place
from shared.jobs.spec import HOUR_PROPERTY, JobSpec
from shared.kernel.errors import BadInput, BadSetting, Changed, NotFound, TrainyardError
from shared.kernel.settings import Workspace
from shared.kernel.storage import Place

__all__ = ["AzureMLClusters", "AzureMLJobs"]

log = logging.getLogger(__name__)

_MOST_LISTED = 200
_ARTIFACTS = "workspaceartifactstore"


class AzureMLJobs:
    """`store` caches the ids of registered code and environments.

    `account` is the app's storage account, and `files` its blobs, which hold the registered code.
    """

    def __init__(self, workspace: Workspace, store: AssetIds, files: WorkspaceBlobs, account: str = "") -> None:
        self._connection = connect(workspace)
        self._assets = AzureMLAssets(self._connection, store, files)
        self._store = store
        self._account = account
        self._url = files.url
        self._containers: dict[str, str] = {}
        self._lock = threading.Lock()

    def submit(self, spec: JobSpec) -> JobStatus:
        form = form_of(spec)
        if wrong := form.refused_before_sending(spec):
            raise BadInput("; ".join(f"{problem.path}: {problem.message}" for problem in wrong))
        try:
            return self._put(form.sendable(spec, self._registered, self._connection.arm.workspace_id))
        except (BadInput, Changed, NotFound) as exc:
            # An existing job may refuse a change. Checking first would cost every job a request.
            if existing := self.status(spec.name):
                return existing
            raise BadInput(str(exc)) from exc

    def _put(self, job: dict[str, Any]) -> JobStatus:
        arm = self._connection.arm
        if body := job_body(job, arm.workspace_id):
            return _listed_status(arm.put(f"jobs/{job['name']}", body))
        with self._connection.circuit.call(), sdk_errors("Azure ML refused the job"):
            return _status(self._connection.ml.jobs.create_or_update(sdk_job.load(job, arm.workspace_id)))

    def _registered(self, environment: pipelines.Described) -> pipelines.Described:
        """Return the id of an environment. A described environment is registered first, unless the SDK has to register
        it.
        """
        if not (described := inline_environment(environment_document(environment), self._address_at)):
            return environment
        path, body = described
        self._connection.arm.put(path, body)
        return Asset(f"{self._connection.arm.workspace_id}/{path}")

    def document(self, job: JobSpec) -> dict[str, Any]:
        return document(job)

    def problems(self, job: JobSpec) -> list[Problem]:
        return form_of(job).problems(job)

    def lacks(self, job: JobSpec) -> list[str]:
        return form_of(job).lacks(job, self._connection.arm)

    def unreachable(self, url: str, cached: str) -> str:
        answer = self._connection.arm.preflight({"downloads": [{"url": url, "cached": cached}]})
        return " ".join(map(str, answer.get("refusals", [])))

    def status(self, name: str) -> JobStatus | None:
        answer = self._connection.arm.find(f"jobs/{name}")
        if answer is None:
            return None
        status = _listed_status(answer)
        if status.steps is None:
            inner, children_of = pipelines.pipelines_in(answer), self._connection.arm.run_children
            status = replace(status, steps=tuple(pipelines.step_statuses(children_of, name, inner)))
        return self._explained(status) if status.state is JobState.FAILED else status

    def times(self, name: str) -> JobTimes:
        try:
            details = self._connection.arm.run_details(name)
        except NotFound:
            return JobTimes()
        return JobTimes(moment(details.get("startTimeUtc")), moment(details.get("endTimeUtc")))

    def listed(self, hour: str) -> Iterator[JobStatus]:
        for job in self._connection.arm.items("jobs", properties=f"{HOUR_PROPERTY}={hour}"):
            yield _listed_status(job)

    def scarce(self) -> bool:
        return self._connection.arm.scarce()

    def cancel(self, name: str) -> None:
        try:
            # MLClient would poll in a thread until the job has ended, which may take minutes.
            self._connection.arm.post(f"jobs/{name}/cancel", {})
        except NotFound:
            return
        except (BadInput, Changed):
            if (status := self.status(name)) and status.state not in ENDED:
                raise

    def active(self) -> list[tuple[str, str]]:
        jobs = islice(self._connection.arm.items("jobs"), _MOST_LISTED)
        alive = (job for job in jobs if _listed_status(job).state not in ENDED)
        return [(str(job["name"]), _compute_name(job)) for job in alive]

    def live_page(self, token: str = "") -> LivePage:
        page, following = self._connection.arm.page("jobs", token)
        return LivePage(tuple(str(job["name"]) for job in page if _listed_status(job).state not in ENDED), following)

    def folder(self, name: str) -> JobFolder:
        return job_folder(self._container(_ARTIFACTS), name)

    def rank_of(self, log: str) -> int | None:
        return rank_of(log)

    def logged(self, name: str) -> dict[str, list[tuple[float, float, float]]]:
        return mlflow.logged(self._connection.arm, name)

    def place(self, where: Where | Pattern) -> Place:
        if not isinstance(where, Location):
            raise BadInput(f"{place_text(where)[:200]!r} is not a path in a datastore; use {PLACE_FORM}.")
        folder = where.path.rstrip("/")
        return Place(self._container(where.store), f"{folder}/" if folder else "")

    def register_code(self, folder: Path | Location, digest: str) -> Asset:
        source = self._address(folder) if isinstance(folder, Location) else str(folder)
        return _asset(self._assets.code(source, digest))

    def register_environment(self, file: str, digest: str) -> Asset:
        return _asset(self._assets.environment(file, digest))

    def vm_size(self, cluster: str) -> str:
        sizes = self._connection.vm_sizes
        if cluster not in sizes and (compute := self._connection.arm.find(f"computes/{cluster}")):
            sizes[cluster] = str((compute["properties"].get("properties") or {}).get("vmSize") or "")
        return sizes.get(cluster, "")

    def code_id(self, digest: str) -> Asset:
        return _asset(self._assets.code_id(digest))

    def environment_id(self, file: str, digest: str) -> Asset:
        return _asset(environment_id(file, digest))

    def check(self) -> None:
        workspace = self._connection.arm.get()
        default = str(workspace.get("properties", {}).get("storageAccount", "")).rpartition("/")[2]
        if self._account and default.lower() != self._account.lower():
            raise BadSetting(
                f"workspace {workspace.get('name')} keeps its data in storage account {default!r}, the app in "
                f"{self._account!r}. Archives are copied within one account: deploy both on the same account."
            )

    def _address(self, where: Where) -> str:
        """Return the URL of a folder in one of the workspace's containers."""
        place = self.place(where)
        return f"{self._url}/{place.container}/{place.prefix}"

    def _address_at(self, path: str) -> str:
        return self._address(read_place(path))

    def _explained(self, status: JobStatus) -> JobStatus:
        """Return the status with Azure ML's explanation of the failure, if it is available."""
        try:
            error = self._connection.arm.run_details(status.name).get("error") or {}
        except TrainyardError as exc:
            log.warning("no reason for the failure of %s: %s", status.name, exc)
            return status
        message = (error.get("error") or {}).get("message") or ""
        message = without_secrets(message)
        return replace(status, error=message, failure=failure_of(message))

    def _container(self, datastore: str) -> str:
        """Return the datastore's container. Datastores never change, so each is read only once."""
        with self._lock:
            name = self._containers.get(datastore)
        if name := name or self._store.get(
            "container", datastore
        ):  # from the table, so that logs are readable while Azure ML is down
            return name
        try:
            answer = self._connection.arm.get(f"datastores/{datastore}")
        except NotFound as exc:
            raise NotFound(
                f"The workspace has no datastore {datastore!r}; a drop's path begins with drops/. {exc}"
            ) from exc
        container = answer["properties"].get("containerName")
        if not container:
            raise NotFound(f"Datastore {datastore!r} is not a blob container.")
        # A local workspace has a URL here, which ends in the account's name.
        account = str(answer["properties"].get("accountName") or "").rstrip("#").rpartition("/")[2]
        if self._account and account != self._account:
            raise BadInput(
                f"Datastore {datastore!r} lies in storage account {account!r}, not in the app's {self._account!r}; "
                "archives are copied inside one account."
            )
        with self._lock:
            self._containers[datastore] = container
        self._store.put("container", datastore, str(container))
        return str(container)


def _asset(written: str) -> Asset:
    return Asset(written.removeprefix(SCHEME))


def _status(job: Any) -> JobStatus:
    raw = str(getattr(job.status, "value", job.status) or "")
    return JobStatus(str(job.name), state_of(raw), raw)


def _listed_status(job: dict[str, Any]) -> JobStatus:
    """Return the status of a job from Resource Manager's JSON."""
    raw = str(job["properties"].get("status") or "")
    is_pipeline = job["properties"].get("jobType") == "Pipeline"
    return JobStatus(str(job["name"]), state_of(raw), raw, steps=None if is_pipeline else ())


def _compute_name(job: dict[str, Any]) -> str:
    """Return the name of a job's compute from the compute's resource id; '' for a job without compute (serverless)."""
    return str(job["properties"].get("computeId") or "").rpartition("/")[2]
