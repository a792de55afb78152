"""The workspace: its records and use cases. Every change is stored before the request is answered.

A process has one workspace, which one event loop changes, so no method needs a lock.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from emulators.azureml.bodies import any_job, cluster_body
from emulators.azureml.bodies.any_job import Spec
from emulators.azureml.bodies.job_body import JobSpec
from emulators.azureml.kernel.checks import texts
from emulators.azureml.kernel.config import ARTIFACT_CONTAINER, DEFAULT_DATASTORE, Config
from emulators.azureml.kernel.errors import BadRequest, Conflict, NotFound, among
from emulators.azureml.kernel.models import (
    NEXT,
    ON_NODES,
    SERVERLESS,
    TERMINAL,
    Asset,
    Cluster,
    Datastore,
    Job,
    Json,
    Status,
    timestamp,
)
from emulators.azureml.kernel.sources import AssetRef
from emulators.azureml.workspace.assets import Assets
from emulators.azureml.workspace.events import status_events
from emulators.azureml.workspace.families import Families
from emulators.azureml.workspace.faults import Faults
from emulators.azureml.workspace.instances import Instances
from emulators.azureml.workspace.jobs import Jobs
from emulators.azureml.workspace.registries import Registries, of_microsoft
from emulators.azureml.workspace.steps import naming
from emulators.azureml.workspace.store import Store

ARTIFACT_DATASTORE = "workspaceartifactstore"
CURATED = "AzureML-"  # environments of Microsoft's own, which every workspace has
EDITABLE = ("displayName", "description", "tags", "isArchived")  # of a submitted job


class Workspace:
    """State and use cases. `changed` is called after every change that the scheduler or the publisher may act on."""

    def __init__(self, config: Config, store: Store, changed: Callable[[], None]) -> None:
        self.config = config
        self._store = store
        self._changed = changed
        self.jobs = Jobs(store)
        self._specs: dict[str, Spec] = {}  # of jobs that have not ended
        self.families = Families(self.find)
        self._submitted = self.jobs.newest_number()
        self.faults = Faults()
        self.instances = Instances()
        self.clusters = {c.name.lower(): c for c in (Cluster(**body) for body in store.all("clusters"))}
        self.datastores = {d.name: d for d in (Datastore(**body) for body in store.all("datastores"))}
        self.assets = Assets(store)
        self.registries = Registries()
        self.created = self._created()
        self.serverless = Cluster(SERVERLESS, config.location, {}, cluster_body.SERVERLESS_BODY, "", "")

    def _created(self) -> str:
        for body in self._store.all("workspace"):
            return str(body["created"])
        now = timestamp()
        self._store.put("workspace", self.config.workspace, {"created": now})
        return now

    def seed(self) -> None:
        """Create the datastores of every workspace, and the datastores and clusters of the configuration, if they
        are missing."""
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
        """Update the jobs that were on nodes when the last process ended: they run again, or stay canceled."""
        for job in list(self.jobs.live()):
            if not job.cluster:
                continue  # it continues from the states of its child jobs
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

    def spec(self, job: Job) -> Spec:
        """Return the parsed body of a job, which was checked when the job was accepted."""
        if job.status in TERMINAL:
            return any_job.parse(job.name, job.properties)
        if job.name not in self._specs:
            self._specs[job.name] = any_job.parse(job.name, job.properties)
        return self._specs[job.name]

    def command_spec(self, job: Job) -> JobSpec:
        """Return the parsed body of a command job."""
        found = self.spec(job)
        assert isinstance(found, JobSpec), f"{job.name} is not a command job"
        return found

    def submit(
        self, name: str, properties: Json, parent: str | None = None, step: str = "", places: Json | None = None
    ) -> tuple[Job, bool]:
        """Accept a job. The flag is True for a new job. A job with an existing name is not run again, and its
        editable properties are updated from the body. Raises BadRequest if the body defines a different job."""
        if old := self.jobs.get(name):
            wanted = any_job.parse(name, properties)
            if wanted != self.spec(old):
                raise BadRequest(_another(name, wanted, self.spec(old)))
            return self.edit(name, {key: properties.get(key) for key in EDITABLE}), False
        self.commands(name, properties)
        self._specs[name] = any_job.parse(name, properties)
        self._submitted += 1
        job = Job(
            name,
            self._submitted,
            _job_properties(name, properties),
            timestamp(),
            parent=parent,
            step=step,
            places=places or {},
        )
        self._save_job(job, announce=True, labels=True)
        return job, True

    def commands(self, name: str, properties: Json) -> list[tuple[str, JobSpec]]:
        """Return the command jobs of a new job, with the names of their steps.

        Raises BadRequest if one of them refers to an object that the workspace does not have.
        """
        commands = list(self.families.commands(name, properties))
        for what, wanted in commands:
            with naming(what):
                self._check_command(wanted)
        return commands

    def _check_command(self, wanted: JobSpec) -> None:
        if wanted.cluster not in self.clusters and wanted.cluster != SERVERLESS:
            raise BadRequest(f"Compute target {wanted.cluster!r} was not found; there are: {among(self.clusters)}.")
        for ref in (wanted.code, wanted.environment):
            if ref and not self.is_curated(ref):
                self._check_reference(ref)

    def _check_reference(self, ref: AssetRef) -> None:
        try:
            self.find(ref)
        except NotFound as error:
            there = "" if ref.registry else f" There are: {among(self.assets.names(ref.kind))}."
            raise BadRequest(f"{error.message}{there}") from error

    def delete_job(self, name: str) -> bool:
        """Delete the records of an ended job and its children, but not the files. Returns whether the job existed.
        Raises Conflict for a live job."""
        job = self.jobs.get(name)
        if job and job.status not in TERMINAL:
            raise Conflict(f"Run {name} is {job.status}; cancel it first, only a run that has ended can be deleted.")
        if job:
            for child in self.jobs.children(name):
                self.delete_job(child.name)
            self.jobs.forget(job)
        return job is not None

    def edit(self, name: str, changes: Json) -> Job:
        """Change properties that do not affect the job's execution. None leaves a value unchanged."""
        job = self.job(name)
        job.properties |= {key: value for key, value in changes.items() if value is not None}
        self._save_job(job, labels=True)
        return job

    def set_status(self, job: Job, status: Status, **changes: Any) -> None:
        """Change a job's status as the table in models allows, and other fields with it, and record the events.
        Raises ValueError for a transition outside of the table."""
        if status not in NEXT[job.status]:
            raise ValueError(f"job {job.name} can't go from {job.status} to {status}")
        self.jobs.move(job, status)
        if status in TERMINAL:
            self._specs.pop(job.name, None)
        self.update(job, announce=True, **{"waiting": None, **changes})

    def update(self, job: Job, *, announce: bool = False, **changes: Any) -> None:
        """Change other fields of a job, and store the job."""
        for key, value in changes.items():
            setattr(job, key, value)
        self._save_job(job, announce=announce)

    def _save_job(self, job: Job, *, announce: bool = False, labels: bool = False) -> None:
        events = status_events(self.config, job) if announce and self.config.events else ()
        self.jobs.save(job, events, labels=labels)
        if announce:
            self._changed()

    # Clusters

    def every_cluster(self) -> list[Cluster]:
        """Return the clusters in the workspace, and the serverless compute for jobs without a cluster."""
        return [*self.clusters.values(), self.serverless]

    def cluster(self, name: str) -> Cluster:
        if name.lower() == SERVERLESS:
            return self.serverless
        if name.lower() not in self.clusters:
            raise NotFound(f"The compute {name} was not found in workspace {self.config.workspace}.")
        return self.clusters[name.lower()]

    def put_cluster(self, name: str, body: Json) -> tuple[Cluster, bool]:
        """Create or update a cluster. The flag is True for a new cluster. New scale settings apply at once."""
        properties, now = cluster_body.checked(name, body), timestamp()
        old = self.clusters.get(name.lower())
        properties = cluster_body.updated(old.properties, properties) if old else properties
        cluster = old or Cluster(name, body.get("location") or self.config.location, {}, {}, now, now)
        cluster.properties, cluster.tags, cluster.modified = properties, body.get("tags") or cluster.tags, now
        cluster.identity = cluster_body.identity(body) or cluster.identity
        self.clusters[name.lower()] = cluster
        stored = dataclasses.replace(cluster, nodes=[], errors=[], refused=0)
        self._store.put("clusters", cluster.name, dataclasses.asdict(stored))
        self._changed()
        return cluster, old is None

    def change_cluster(self, name: str, settings: Json | None, tags: Json | None) -> Cluster:
        """Change only a cluster's scale settings or tags. None leaves a value unchanged."""
        cluster = self.cluster(name)
        inner = {**cluster.properties["properties"], **({"scaleSettings": settings} if settings is not None else {})}
        body = {"properties": {**cluster.properties, "properties": inner}}
        if tags is not None:
            cluster.tags = texts({"tags": tags}, "tags")
        return self.put_cluster(name, body)[0]

    def forget_cluster(self, name: str) -> None:
        """Remove a cluster, after the scheduler has stopped the cluster's jobs."""
        cluster = self.clusters.pop(name.lower(), None)
        if cluster:
            self._store.delete("clusters", cluster.name)

    def on_cluster(self, name: str, statuses: frozenset[Status]) -> list[Job]:
        """Return a cluster's jobs with these statuses, oldest first."""
        return self.jobs.on_cluster(name.lower(), statuses)

    # Datastores

    def datastore(self, name: str) -> Datastore:
        if name not in self.datastores:
            raise NotFound(f"Could not find datastore {name}; there are: {among(self.datastores)}.", "UserError")
        return self.datastores[name]

    def put_datastore(self, datastore: Datastore) -> bool:
        """Create or replace a datastore. Returns whether the datastore is new. The caller creates the container."""
        fresh = datastore.name not in self.datastores
        self.datastores[datastore.name] = datastore
        self._store.put("datastores", datastore.name, dataclasses.asdict(datastore))
        return fresh

    def forget_datastore(self, name: str) -> bool:
        self._store.delete("datastores", name)
        return self.datastores.pop(name, None) is not None

    # Assets

    def find(self, ref: AssetRef) -> Asset:
        """Return the version of a reference, from the workspace or from a registry. Raises NotFound."""
        if ref.registry:
            return self.registries.find(ref)
        return of_microsoft(ref) if self.is_curated(ref) else self.assets.get(ref.kind, ref.name, ref.version)

    def is_curated(self, ref: AssetRef) -> bool:
        """Return whether the reference is to a Microsoft environment that the workspace does not override."""
        own = ref.kind == "environments" and not ref.registry and ref.name.startswith(CURATED)
        return own and not self.assets.versions("environments", ref.name)


def _another(name: str, wanted: Spec, old: Spec) -> str:
    if type(old) is not type(wanted):
        return f"A job with the name {name!r} already exists, of another jobType. Use a different name."
    differing = [
        field.name for field in dataclasses.fields(old) if getattr(old, field.name) != getattr(wanted, field.name)
    ]
    return (
        f"A job with the name {name!r} already exists, with another {', '.join(differing)}. To create a new job, use a "
        "different name. Of an existing one only description, displayName, tags, and isArchived can be updated."
    )


def _job_properties(name: str, body: Json) -> Json:
    defaults = {"experimentName": "Default", "displayName": name, "isArchived": False}
    filled = {**body, **{key: body.get(key) or value for key, value in defaults.items()}}
    filled |= {key: body.get(key) or {} for key in ("tags", "properties", "inputs", "outputs")}
    for section, key in (("objective", "goal"), ("samplingAlgorithm", "rule")):  # MLClient sends them in lower case
        if isinstance(said := filled.get(section), dict) and isinstance(said.get(key), str):
            filled[section] = {**said, key: said[key].capitalize()}
    return filled
