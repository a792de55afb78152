"""The workspace: everything it knows, and the use cases that change it. Every change is stored before it is answered.

One workspace per process, changed by its one event loop, so no method needs a lock.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from emulators.azureml import cluster_body, spec
from emulators.azureml.checks import mapping, optional_text, texts
from emulators.azureml.config import ARTIFACT_CONTAINER, Config
from emulators.azureml.errors import BadRequest, NotFound, among
from emulators.azureml.events import status_events
from emulators.azureml.jobs import Jobs
from emulators.azureml.models import (
    NEXT,
    ON_NODES,
    TERMINAL,
    Asset,
    Cluster,
    Datastore,
    Job,
    Json,
    Status,
    asset_key,
    timestamp,
)
from emulators.azureml.store import Store

DEFAULT_DATASTORE = "workspaceblobstore"
ARTIFACT_DATASTORE = "workspaceartifactstore"
CURATED = "AzureML-"  # environments of Microsoft's own, which every workspace has
EDITABLE = ("displayName", "description", "tags", "isArchived")  # of a job that was submitted


class Workspace:
    """State and use cases. `changed` is called after every change that the scheduler or the publisher may act on."""

    def __init__(self, config: Config, store: Store, changed: Callable[[], None]) -> None:
        self.config = config
        self._store = store
        self._changed = changed
        self.jobs = Jobs(store)
        self._specs: dict[str, spec.JobSpec] = {}  # of jobs that have not ended
        self._submitted = self.jobs.newest_number()
        self.clusters = {c.name.lower(): c for c in (Cluster(**body) for body in store.all("clusters"))}
        self.datastores = {d.name: d for d in (Datastore(**body) for body in store.all("datastores"))}
        self.assets = {a.key: a for a in (Asset(**body) for body in store.all("assets"))}
        self.created = self._created()
        # Checks what a job needs beside the workspace's own records: see `places` and `recipes`.
        self.check_needs: Callable[[spec.JobSpec], None] = lambda _: None

    def _created(self) -> str:
        for body in self._store.all("workspace"):
            return str(body["created"])
        now = timestamp()
        self._store.put("workspace", self.config.workspace, {"created": now})
        return now

    def seed(self) -> None:
        """Make the datastores that every workspace has and those of the configuration, where they are missing."""
        blobstore = f"azureml-blobstore-{self.config.workspace_guid}"
        seeds = [
            Datastore(DEFAULT_DATASTORE, blobstore, is_default=True),
            Datastore(ARTIFACT_DATASTORE, ARTIFACT_CONTAINER),
            *(Datastore(name, container) for name, container in self.config.datastores.items()),
        ]
        for datastore in seeds:
            if datastore.name not in self.datastores:
                self.put_datastore(datastore)
        for cluster in self.config.clusters:
            if cluster.name.lower() not in self.clusters:
                self.put_cluster(cluster.name, cluster_body.seed_body(cluster, self.config.location))

    def recover(self) -> None:
        """Account for the jobs that were on nodes when the last process ended: they run again, or stay canceled."""
        for job in list(self.jobs.live()):
            if job.status in ON_NODES:
                self.set_status(job, Status.QUEUED, notice="the control plane ended without stopping the job", nodes=[])
            elif job.status is Status.CANCEL_REQUESTED:
                self.set_status(job, Status.CANCELED, ended=timestamp(), nodes=[])

    # Jobs

    def job(self, name: str) -> Job:
        job = self.jobs.get(name)
        if job is None:
            raise NotFound(f"Run with id {name} was not found in workspace {self.config.workspace}.", "UserError")
        return job

    def job_spec(self, job: Job) -> spec.JobSpec:
        """What the job's body asks for. It was checked when the job was accepted."""
        if job.status in TERMINAL:
            return spec.parse(job.name, job.properties)
        if job.name not in self._specs:
            self._specs[job.name] = spec.parse(job.name, job.properties)
        return self._specs[job.name]

    def submit(self, name: str, properties: Json) -> tuple[Job, bool]:
        """Accept a job; the flag says whether it is new. A name that is there already is the same job: what may be
        edited of it is taken from the body, and it does not run again."""
        if self.jobs.get(name):
            spec.check_facts(properties)
            return self.edit(name, {key: properties.get(key) for key in EDITABLE}), False
        wanted = spec.parse(name, properties)
        self._check_references(wanted)
        self._specs[name] = wanted
        self._submitted += 1
        job = Job(name, self._submitted, _job_properties(name, properties), timestamp())
        self._save_job(job, announce=True, labels=True)
        return job, True

    def edit(self, name: str, changes: Json) -> Job:
        """Replace properties of a job that have no part in how it runs; None means that a value stays."""
        job = self.job(name)
        job.properties |= {key: value for key, value in changes.items() if value is not None}
        self._save_job(job, labels=True)
        return job

    def set_status(self, job: Job, status: Status, **changes: Any) -> None:
        """Move a job along the table in models, with other fields of it, and note the events that tell of it."""
        if status not in NEXT[job.status]:
            raise ValueError(f"job {job.name} can't go from {job.status} to {status}")
        self.jobs.move(job, status)
        if status in TERMINAL:
            self._specs.pop(job.name, None)
        self.update(job, announce=True, **{"waiting": None, **changes})

    def update(self, job: Job, *, announce: bool = False, **changes: Any) -> None:
        """Change other fields of a job, and store it."""
        for key, value in changes.items():
            setattr(job, key, value)
        self._save_job(job, announce=announce)

    def _save_job(self, job: Job, *, announce: bool = False, labels: bool = False) -> None:
        events = status_events(self.config, job) if announce and self.config.events else ()
        self.jobs.save(job, events, labels=labels)
        if announce:
            self._changed()

    def _check_references(self, wanted: spec.JobSpec) -> None:
        if wanted.cluster not in self.clusters:
            raise BadRequest(f"Compute target {wanted.cluster!r} was not found; there are: {among(self.clusters)}.")
        if wanted.code and asset_key("codes", *wanted.code) not in self.assets:
            raise BadRequest(f"Code {':'.join(wanted.code)} was not found in the workspace; create the version first.")
        if not self.has_environment(*wanted.environment):
            names = among({f"{a.name}:{a.version}" for a in self.assets.values() if a.kind == "environments"})
            raise BadRequest(f"Environment {':'.join(wanted.environment)} was not found; there are: {names}.")
        self.check_needs(wanted)

    # Clusters

    def cluster(self, name: str) -> Cluster:
        if name.lower() not in self.clusters:
            raise NotFound(f"The compute {name} was not found in workspace {self.config.workspace}.")
        return self.clusters[name.lower()]

    def put_cluster(self, name: str, body: Json) -> tuple[Cluster, bool]:
        """Create or update a cluster; the flag says whether it is new. New scale settings hold at once."""
        properties, now = cluster_body.checked(name, body), timestamp()
        old = self.clusters.get(name.lower())
        cluster = old or Cluster(name, body.get("location") or self.config.location, {}, {}, now, now)
        cluster.properties, cluster.tags, cluster.modified = properties, body.get("tags") or cluster.tags, now
        self.clusters[name.lower()] = cluster
        stored = dataclasses.replace(cluster, nodes=[])
        self._store.put("clusters", cluster.name, dataclasses.asdict(stored))
        self._changed()
        return cluster, old is None

    def scale_cluster(self, name: str, settings: Json) -> Cluster:
        """Replace a cluster's scale settings alone."""
        properties = self.cluster(name).properties
        inner = {**properties["properties"], "scaleSettings": settings}
        return self.put_cluster(name, {"properties": {**properties, "properties": inner}})[0]

    def forget_cluster(self, name: str) -> None:
        """Remove a cluster; the scheduler has stopped its jobs."""
        cluster = self.clusters.pop(name.lower(), None)
        if cluster:
            self._store.delete("clusters", cluster.name)

    def on_cluster(self, name: str, statuses: frozenset[Status]) -> list[Job]:
        """A cluster's jobs with these statuses, oldest first."""
        return self.jobs.on_cluster(name.lower(), statuses)

    # Datastores

    def datastore(self, name: str) -> Datastore:
        if name not in self.datastores:
            raise NotFound(f"Could not find datastore {name}; there are: {among(self.datastores)}.", "UserError")
        return self.datastores[name]

    def put_datastore(self, datastore: Datastore) -> bool:
        """Create or replace a datastore; says whether it is new. Its container is made by the caller."""
        fresh = datastore.name not in self.datastores
        self.datastores[datastore.name] = datastore
        self._store.put("datastores", datastore.name, dataclasses.asdict(datastore))
        return fresh

    def forget_datastore(self, name: str) -> bool:
        self._store.delete("datastores", name)
        return self.datastores.pop(name, None) is not None

    # Code and environment versions

    def asset(self, kind: str, name: str, version: str) -> Asset:
        key = asset_key(kind, name, version)
        if key not in self.assets:
            raise NotFound(f"No version {version} of {name!r} among the workspace's {kind}.")
        return self.assets[key]

    def put_asset(self, kind: str, name: str, version: str, properties: Json) -> tuple[Asset, bool]:
        """Create a version; the flag says whether it is new. Code versions never change; environments are replaced."""
        old = self.assets.get(asset_key(kind, name, version))
        if old and kind == "codes":
            return old, False
        asset = Asset(kind, name, version, _asset_properties(properties), old.created if old else timestamp())
        self.assets[asset.key] = asset
        self._store.put("assets", asset.key, dataclasses.asdict(asset))
        return asset, old is None

    def next_version(self, kind: str, name: str) -> str:
        numbers = [int(asset.version) for asset in self.versions(kind, name) if asset.version.isdigit()]
        return str(max(numbers, default=0) + 1)

    def versions(self, kind: str, name: str) -> list[Asset]:
        """Versions of a code or environment, newest first."""
        found = [a for a in self.assets.values() if a.kind == kind and a.name == name]
        return sorted(found, key=lambda asset: asset.created, reverse=True)

    def code_with_hash(self, digest: str) -> list[Asset]:
        """Code versions of that content, under any name: the SDK asks under a random one."""
        codes = [a for a in self.assets.values() if a.kind == "codes"]
        return [a for a in codes if a.properties["properties"].get("hash_sha256") == digest]

    def is_curated(self, name: str) -> bool:
        """Whether an environment is Microsoft's own, and none of the workspace has its name."""
        return name.startswith(CURATED) and not self.versions("environments", name)

    def has_environment(self, name: str, version: str) -> bool:
        return name.startswith(CURATED) or asset_key("environments", name, version) in self.assets


def _job_properties(name: str, body: Json) -> Json:
    defaults = {"experimentName": "Default", "displayName": name, "isArchived": False}
    filled = {**body, **{key: body.get(key) or value for key, value in defaults.items()}}
    return {**filled, **{key: body.get(key) or {} for key in ("tags", "properties", "inputs", "outputs")}}


def _asset_properties(body: Json) -> Json:
    # The contract says a map of strings; azure-ai-ml sends its hash_version as a number.
    strings = {key: str(value) for key, value in mapping(body, "properties").items()}
    for key in ("description", "codeUri", "image", "condaFile"):
        optional_text(body, key)
    return {**body, "properties": strings, "tags": texts(body, "tags"), "isArchived": bool(body.get("isArchived"))}
