"""The port to Azure ML's jobs. tests/fakes/ports.py and shared/adapters pass the same contract suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from shared.events.ports import EventPorts
from shared.jobs.limits import Limits
from shared.jobs.location import Asset, Location, Pattern, Where
from shared.jobs.model import JobFolder, JobStatus, JobTimes
from shared.jobs.problem import Problem
from shared.jobs.readers.job_file import JobFile
from shared.jobs.route import Routes
from shared.jobs.spec import JobSpec, Layer
from shared.kernel.storage import Blobs, Place


class Jobs(Protocol):
    """Azure ML jobs. A job's name is its run's name."""

    def submit(self, job: JobSpec) -> JobStatus:
        """Put the job (ids resolved) under its name.

        If a job of this name is there it is left as it is, and its status is returned. Raises BadInput with Azure ML's
        own words if the job can never run.
        """

    def document(self, job: JobSpec) -> dict[str, Any]:
        """The job as Azure ML's schema has it, for people to see. Asks no service."""

    def problems(self, job: JobSpec) -> list[Problem]:
        """What Azure ML's schema finds wrong with the job, by the schema's keys. Asks no service."""

    def lacks(self, job: JobSpec) -> list[str]:
        """What the workspace can't give this job, in words, as far as it tells before the job is sent.

        Azure itself tells nothing; a workspace on one machine can't make every environment. Code may be unregistered.
        """

    def status(self, name: str) -> JobStatus | None:
        """The job's current status; None if the job does not exist."""

    def times(self, name: str) -> JobTimes:
        """When the job started and ended. Empty for a job that does not exist."""

    def listed(self, hour: str) -> Iterator[JobStatus]:
        """The statuses of the jobs with this hour in their property HOUR_PROPERTY, newest first, page by page.

        Without the errors of those that failed. A job that was put a moment ago may not be among them.
        """

    def scarce(self) -> bool:
        """Whether Azure ML takes few questions more for now: what can wait for a list, should. Asks no service."""

    def cancel(self, name: str) -> None:
        """Request the end of the job. Does nothing for a job that has ended or does not exist."""

    def active(self) -> list[tuple[str, str]]:
        """(job, cluster) of the workspace's jobs that haven't ended, whoever sent them; the newest few hundred."""

    def folder(self, name: str) -> JobFolder:
        """The folder of the job's own. The folders of all jobs begin alike, up to the name."""

    def rank_of(self, log: str) -> int | None:
        """The rank whose log a file of this name is; None for another file. Asks no service."""

    def logged(self, name: str) -> dict[str, list[tuple[float, float, float]]]:
        """What the job logged to MLflow, by metric: step, value, unix time, oldest first. Empty for nothing."""

    def place(self, where: Where | Pattern) -> Place:
        """The folder in blob storage. Raises NotFound for an unknown store, BadInput for a place that is in none."""

    def register_code(self, folder: Path | Location, digest: str) -> Asset:
        """The id of the code asset with the files of this folder. Registered once per digest, then looked up.

        The folder is local, or an uploaded one (see upload.path).
        """

    def register_environment(self, file: str, digest: str) -> Asset:
        """The id of the environment in this YAML file. Registered once per digest, then looked up."""

    def vm_size(self, cluster: str) -> str:
        """The VM size of a cluster's nodes, '' for a cluster that is not there. Azure never changes that of one."""

    def code_id(self, digest: str) -> Asset:
        """The id that `register_code` gives, without registering anything."""

    def environment_id(self, file: str, digest: str) -> Asset:
        """The id that `register_environment` gives, without registering anything."""

    def check(self) -> None:
        """Raise Unavailable unless the workspace answers, BadSetting if its data lie in another storage account."""


class Stores(Protocol):
    """Access to files, and to the places that Azure ML's paths mean."""

    @property
    def blobs(self) -> Blobs: ...
    @property
    def jobs(self) -> Jobs: ...


@dataclass(frozen=True)
class Around:
    """The context of a user's job. `limits` are those of the route or request; `folder` is the drop's, None without a
    drop.
    """

    stores: Stores
    limits: Limits
    folder: Place | None = None


@dataclass(frozen=True)
class Written:
    """A user's job, read into a layer.

    `template` is the job below the layer, None for the route's template. `problems` prevent the submission; they name
    keys of the user's document. `absent` has a sentence for each input whose data does not exist. `summary` is for the
    run's history. `findings` report the translation of each field; None for a document that needed no translation.
    """

    layer: Layer
    template: JobSpec | None = None
    problems: tuple[Problem, ...] = ()
    absent: tuple[str, ...] = ()
    summary: str = ""
    findings: list[dict[str, Any]] | None = None


class Reader(Protocol):
    """Reads jobs of one document format."""

    def reads(self, document: Mapping[str, Any]) -> bool:
        """Whether the document has this format."""

    def of_drop(self, job_file: JobFile, around: Around) -> Written:
        """The job of a drop, including the files beside the job file. Raises BrokenJobFile."""

    def of_request(self, document: Mapping[str, Any], beside: Any, around: Around) -> Written:
        """The job of a request. Raises Impossible with all problems of a rejected job."""


@dataclass(frozen=True)
class Readers:
    """Several readers as one: the first reader that recognizes a document reads it. The last recognizes every
    document.
    """

    readers: tuple[Reader, ...]

    def reads(self, document: Mapping[str, Any]) -> bool:
        return any(reader.reads(document) for reader in self.readers)

    def of_drop(self, job_file: JobFile, around: Around) -> Written:
        return self._of(job_file.document).of_drop(job_file, around)

    def of_request(self, document: Mapping[str, Any], beside: Any, around: Around) -> Written:
        return self._of(document).of_request(document, beside, around)

    def _of(self, document: Mapping[str, Any]) -> Reader:
        return next(reader for reader in self.readers if reader.reads(document))


class WorkspacePorts(EventPorts, Protocol):
    """The ports of events, of the workspace, and of the inputs from which jobs are built."""

    @property
    def jobs(self) -> Jobs: ...
    @property
    def reader(self) -> Reader: ...
    @property
    def routes(self) -> Routes: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def trainers(self) -> Path: ...
    @property
    def rendezvous(self) -> str: ...
