"""A job's needs beyond the workspace's records, checked before the job is accepted: an environment that this
machine can make, and data that it can reach. Each missing need is described, and nothing is created yet."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from emulators.azureml.bodies import distribution
from emulators.azureml.bodies.distribution import Distribution
from emulators.azureml.bodies.job_body import JobSpec, version_of
from emulators.azureml.environments.builder import Environments
from emulators.azureml.kernel.checks import mapping
from emulators.azureml.kernel.errors import BadRequest, DataError, NotFound, nothing_at
from emulators.azureml.kernel.models import Json
from emulators.azureml.kernel.sources import AssetRef, JobOutput, Source, Web, source
from emulators.azureml.running.launchers import with_launcher
from emulators.azureml.storage.blobs import Blobs, Place
from emulators.azureml.storage.web_folder import WebFolder
from emulators.azureml.storage.web_inputs import reach, reach_folder, reach_host
from emulators.azureml.workspace.places import Places
from emulators.azureml.workspace.recipes import Recipes
from emulators.azureml.workspace.registry_folder import RegistryFolder

MOST_PROCESSES = 128  # of one job; more would only block the machine
_TYPES = {"pytorch": "PyTorch", "mpi": "Mpi", "tensorflow": "TensorFlow", "ray": "Ray"}


@dataclass(frozen=True)
class Download:
    """A file that a job downloads by itself from this address, unless PyTorch's cache has a file that matches
    `cached`."""

    url: str
    cached: str

    def is_cached(self) -> bool:
        """Return whether nodes have the file. They share this user's cache, where torch.hub keeps it."""
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        home = Path(os.environ.get("TORCH_HOME") or caches / "torch")
        is_inside = ".." not in Path(self.cached).parts and not Path(self.cached).is_absolute()
        return bool(self.cached) and is_inside and any(home.glob(self.cached))


@dataclass(frozen=True)
class Wanted:
    """What a job needs from this machine. `environment` is a reference to a version, or the properties of an
    environment that the job defines. `component` is a step's component in a registry."""

    environment: AssetRef | Json | None
    inputs: Mapping[str, tuple[str, Source]]  # by name: kind and source
    spread: Distribution
    component: AssetRef | None = None
    downloads: Sequence[Download] = ()


@dataclass(frozen=True)
class Needs:
    """Checks whether this machine can run a job."""

    recipes: Recipes
    places: Places
    environments: Environments
    registries: RegistryFolder
    web: WebFolder
    blobs: Blobs

    async def refresh(self, body: Json) -> None:
        """Read changes in the registries if the job's body refers to a registry."""
        if "azureml://registries/" in json.dumps(body):
            await self.registries.refresh()

    async def check(self, job: JobSpec, *, simulated: bool) -> None:
        """Raise BadRequest for a job that can't run here. For a simulated job, only the addresses are checked."""
        inputs = {given.name: (given.kind, given.source) for given in job.inputs if given.source and not given.direct}
        for given in job.inputs:
            if given.source:
                self.places.check(given.source, f"Input {given.name!r}")
        for output in job.outputs:
            self.places.check(output.location, f"Output {output.name!r}")
        await self.check_wanted(Wanted(None if simulated else job.environment, inputs, job.distribution))

    async def check_wanted(self, wanted: Wanted) -> None:
        """Raise BadRequest with the first missing need."""
        if wanted.spread.world_size > MOST_PROCESSES:
            raise BadRequest(
                f"The job has {wanted.spread.world_size} processes on {wanted.spread.nodes} nodes; all of its "
                f"nodes are this machine, which starts at most {MOST_PROCESSES} for a job."
            )
        try:
            if wanted.component is not None:
                self.registries.find(wanted.component)
            for name, (kind, where) in wanted.inputs.items():
                await self._reach(f"Input {name!r}", kind, where)
            for download in wanted.downloads:
                if not download.is_cached():
                    await reach_host(download.url, self.web)
            if wanted.environment is not None:
                made_of = await self.recipes.find(wanted.environment)
                await self.environments.check(with_launcher(made_of, wanted.spread))
        except NotFound as error:
            raise BadRequest(error.message) from error
        except DataError as error:
            raise BadRequest(str(error)) from error

    async def check_stored(self, wanted: Wanted) -> None:
        """Raise BadRequest for an input that names a place of this workspace's storage where nothing is.

        Azure ML accepts such a job, and the job fails before its command starts.
        """
        try:
            for name, (kind, where) in wanted.inputs.items():
                place = self.places.place(where)
                if isinstance(place, Place) and not await self.blobs.holds(place, kind):
                    raise BadRequest(nothing_at(name, where, kind == "uri_file"))
        except DataError as error:
            raise BadRequest(str(error)) from error

    async def _reach(self, what: str, kind: str, where: Source) -> None:
        place = self.places.place(where)
        if not isinstance(place, Web):
            return
        if kind == "uri_file":
            await reach(place.uri, what, self.web)
        else:
            await reach_folder(place.uri, what, self.web)


def described(job: Json) -> Wanted:
    """Return the needs of a job in Azure ML's YAML schema that are known before the upload."""
    nodes = mapping(job, "resources").get("instance_count")
    spread = mapping(job, "distribution")
    body = {**{_camel(key): value for key, value in spread.items()}, "distributionType": _type(spread.get("type"))}
    inputs = {}
    for name, given in mapping(job, "inputs").items():
        if isinstance(given, dict) and isinstance(path := given.get("path"), str) and given.get("mode") != "direct":
            kind = str(given.get("type") or "uri_folder")
            where = source(path, f"Input {name!r}", kind)
            if not isinstance(where, JobOutput):  # that job may still be running
                inputs[name] = (kind, where)
    return Wanted(
        _environment(job.get("environment")),
        inputs,
        distribution.read(body if spread else {}, nodes if isinstance(nodes, int) else 1),
        version_of(job["component"], "components", "component") if job.get("component") else None,
        [Download(each["url"], each["cached"]) for each in job.get("downloads", [])],  # not a key of Azure ML's schema
    )


def _environment(said: Any) -> AssetRef | Json | None:
    if isinstance(said, str):
        return version_of(said, "environments", "environment")
    if not isinstance(said, dict):
        return None
    conda, build = said.get("conda_file"), said.get("build")
    body: Json = {"isAnonymous": True, "image": said.get("image")}
    if isinstance(conda, dict):
        body["condaFile"] = yaml.safe_dump(conda)
    if isinstance(build, dict):
        body["build"] = {"contextUri": build.get("path"), "dockerfilePath": build.get("dockerfile_path")}
    return body


def _type(name: Any) -> str | None:
    return _TYPES.get(str(name).lower(), str(name)) if name else None


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)
