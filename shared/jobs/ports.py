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


@dataclass(frozen=True)
class LivePage:
    """Names of unfinished jobs, and the token of the next page of all jobs, '' for the last page."""

    jobs: tuple[str, ...]
    token: str


class Jobs(Protocol):
    """Azure ML jobs. A job has the name of its run."""

    def submit(self, job: JobSpec) -> JobStatus:
        """Submit the job (with resolved ids) under the job's name.

        An existing job with this name is left unchanged, and its status is returned. Raises BadInput with Azure ML's
        own words if the job can never run.
        """

    def document(self, job: JobSpec) -> dict[str, Any]:
        """The job in Azure ML's schema, for people to read. Calls no service."""

    def problems(self, job: JobSpec) -> list[Problem]:
        """Problems of the job according to Azure ML's schema, with the schema's keys. Calls no service."""

    def lacks(self, job: JobSpec) -> list[str]:
        """The job's needs that the workspace can't meet, in sentences, as far as known before the submission.

        Azure itself reports nothing. A local workspace can't build every environment. The code may still be
        unregistered.
        """

    def unreachable(self, url: str, cached: str) -> str:
        """Why the nodes can't download from this address, in a sentence; '' if they can, or if it is not known.

        Azure itself reports nothing. A local workspace tries the address, unless PyTorch's cache folder has a file that
        matches the pattern `cached`.
        """

    def status(self, name: str) -> JobStatus | None:
        """The job's current status; None if the job does not exist."""

    def times(self, name: str) -> JobTimes:
        """The start and the end of the job. Empty for a missing job."""

    def listed(self, hour: str) -> Iterator[JobStatus]:
        """The statuses of the jobs with this hour in their HOUR_PROPERTY, newest first, page by page.

        Failed jobs come without their errors. A job submitted a moment ago may be missing.
        """

    def scarce(self) -> bool:
        """Whether Azure ML is limiting requests now; a check that can wait for a list should wait. Calls no service."""

    def cancel(self, name: str) -> None:
        """Request the end of the job. Does nothing for a job that has ended or does not exist."""

    def active(self) -> list[tuple[str, str]]:
        """(job, cluster) of all unfinished jobs of the workspace, from any submitter; limited to the newest few
        hundred.
        """

    def live_page(self, token: str = "") -> LivePage:
        """The unfinished jobs on one page of the workspace's jobs, newest first. Costs one request.

        Raises BadInput for a token that the service does not know any more.
        """

    def folder(self, name: str) -> JobFolder:
        """The job's own folder. Folders of jobs differ only in the job's name at the end of the path."""

    def rank_of(self, log: str) -> int | None:
        """The rank whose log has this file name; None for any other file. Calls no service."""

    def logged(self, name: str) -> dict[str, list[tuple[float, float, float]]]:
        """The values that the job logged to MLflow, by metric: step, value, unix time, oldest first.

        Empty if the job logged nothing.
        """

    def place(self, where: Where | Pattern) -> Place:
        """The folder in blob storage.

        Raises NotFound for an unknown store, BadInput for a place outside of all stores.
        """

    def register_code(self, folder: Path | Location, digest: str) -> Asset:
        """The id of the code asset with the files of this folder. Registered once per digest, then looked up.

        The folder is local, or an uploaded one (see upload.path).
        """

    def register_environment(self, file: str, digest: str) -> Asset:
        """The id of the environment in this YAML file. Registered once per digest, then looked up."""

    def vm_size(self, cluster: str) -> str:
        """The VM size of a cluster's nodes, '' for an unknown cluster. Azure never changes a cluster's VM size."""

    def code_id(self, digest: str) -> Asset:
        """The id from `register_code`, without registering the code."""

    def environment_id(self, file: str, digest: str) -> Asset:
        """The id from `register_environment`, without registering the environment."""

    def check(self) -> None:
        """Raise Unavailable unless the workspace responds, and BadSetting if its data is in another storage account."""


class Stores(Protocol):
    """Access to files, and to the places behind Azure ML's paths."""

    @property
    def blobs(self) -> Blobs: ...
    @property
    def jobs(self) -> Jobs: ...


@dataclass(frozen=True)
class Around:
    """The context of a user's job.

    `limits` are those of the route or request; `folder` is the drop's, None without a drop.
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
        """The job of a request. Raises Impossible with every problem of a rejected job."""


@dataclass(frozen=True)
class Readers:
    """Several readers as one: the first reader to recognize a document reads the document.

    The last reader recognizes every document.
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
