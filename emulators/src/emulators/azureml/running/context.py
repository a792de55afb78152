"""The inputs and results of attempts at jobs: plain values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from emulators.azureml.bodies.job_body import Output
from emulators.azureml.environments.builder import Environments
from emulators.azureml.environments.model import Recipe
from emulators.azureml.kernel.config import ARTIFACT_CONTAINER, Config
from emulators.azureml.kernel.models import Job, Status
from emulators.azureml.kernel.sources import AssetRef
from emulators.azureml.running.folders import Finder
from emulators.azureml.running.mounts import Mounts
from emulators.azureml.running.process_guard import Guard
from emulators.azureml.storage.blobs import Blobs, Place


class Stop(Enum):
    """The reason for stopping an attempt. A cancellation takes precedence over every other reason."""

    CANCELED = "canceled"
    TIMED_OUT = "timed out"
    OUTLIVED = "reached the maximum lifetime of a job"
    PREEMPTED = "preempted"
    SHUT_DOWN = "shut down"


@dataclass(frozen=True)
class Outcome:
    """The outcome of an attempt: stopped for the reason `stop`, failed with `message`, or completed if both are
    None."""

    stop: Stop | None = None
    message: str | None = None


@dataclass(frozen=True)
class Work:
    """The processes of a job on one node: its ranks with all processes that they start. `disk` is a folder on the
    node's disk, and `variables` are the environment variables that the job and the node set."""

    job: str
    node: str
    cluster: str
    processes: tuple[int, ...]
    disk: Path
    variables: Mapping[str, str]


@dataclass(frozen=True)
class Site:
    """The objects that all attempts use.

    `places` finds inputs and outputs in storage, `code_place` finds code versions, and `recipe` returns what an
    environment contains. `register` makes an asset of an output with an asset's name. `own_mounts` returns whether each
    node has its own view of a mount, which is a fault.
    """

    config: Config
    blobs: Blobs
    guard: Guard
    environments: Environments
    service_url: str
    work: Path
    mounts: Mounts
    places: Finder
    code_place: Callable[[AssetRef], Place]
    recipe: Callable[[AssetRef], Awaitable[Recipe]]
    register: Callable[[Job, Output], None]
    own_mounts: Callable[[], bool]


@dataclass(frozen=True)
class Progress:
    """Callbacks of an attempt: `entered` when it enters a status, `logs` with the names of its log files."""

    entered: Callable[[Status], None]
    logs: Callable[[list[str]], None]


def run_place(job: str, path: str) -> Place:
    """Return the place in storage of a run's logs and of its `./outputs`."""
    return Place(ARTIFACT_CONTAINER, f"ExperimentRun/dcid.{job}/{path}")
