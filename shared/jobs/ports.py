"""Azure ML's jobs, as the system needs them. tests/fakes/ports.py and shared/adapters pass the same contract suite."""

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
        """The job's status now, or None if there is no such job."""

    def times(self, name: str) -> JobTimes:
        """When the job began and ended. Empty for one that isn't there."""

    def listed(self, hour: str) -> Iterator[JobStatus]:
        """The statuses of the jobs with this hour in their property HOUR_PROPERTY, newest first, page by page.

        Without the errors of those that failed. A job that was put a moment ago may not be among them.
        """

    def scarce(self) -> bool:
        """Whether Azure ML takes few questions more for now: what can wait for a list, should. Asks no service."""

    def cancel(self, name: str) -> None:
        """Ask for the end of the job. Nothing happens to one that has ended or isn't there."""

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
        """The id of the code asset with the files of this folder. Registered once per digest, then only looked up.

        The folder is one of this machine, or one that was sent (see upload.path).
        """

    def register_environment(self, file: str, digest: str) -> Asset:
        """The id of the environment that this YAML file describes. Registered once per digest, then only looked up."""

    def vm_size(self, cluster: str) -> str:
        """The VM size of a cluster's nodes, '' for a cluster that is not there. Azure never changes that of one."""

    def code_id(self, digest: str) -> Asset:
        """The id that `register_code` gives, without registering anything."""

    def environment_id(self, file: str, digest: str) -> Asset:
        """The id that `register_environment` gives, without registering anything."""

    def check(self) -> None:
        """Raise Unavailable unless the workspace answers, BadSetting if its data lie in another storage account."""


class Stores(Protocol):
    """Where files lie, and who knows which places Azure ML means."""

    @property
    def blobs(self) -> Blobs: ...
    @property
    def jobs(self) -> Jobs: ...


@dataclass(frozen=True)
class Around:
    """What lies around a job that someone wrote. `limits` are those of the route or the request; `folder` is the
    drop's, None where there is none."""

    stores: Stores
    limits: Limits
    folder: Place | None = None


@dataclass(frozen=True)
class Written:
    """A job that someone wrote.

    `template` is what lies below it, None where that is the route's. `problems` keep it from being sent, by the keys of
    its own document; `absent` has a sentence for each of its data that is nowhere. `summary` is for the run's history,
    `findings` say what became of each field; None for a document that needed no translation.
    """

    layer: Layer
    template: JobSpec | None = None
    problems: tuple[Problem, ...] = ()
    absent: tuple[str, ...] = ()
    summary: str = ""
    findings: list[dict[str, Any]] | None = None


class Reader(Protocol):
    """Reads jobs of one form."""

    def reads(self, document: Mapping[str, Any]) -> bool:
        """Whether the document has this form."""

    def of_drop(self, job_file: JobFile, around: Around) -> Written:
        """The job of a drop, with what lies beside it. Raises BrokenJobFile."""

    def of_request(self, document: Mapping[str, Any], beside: Any, around: Around) -> Written:
        """The job of a request. Raises Impossible for what must not become one, with all that is wrong."""


@dataclass(frozen=True)
class Readers:
    """Readers as one: the first that reads a job's form has the word; the last reads all."""

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
    """Those of events, the workspace, and what jobs are made from."""

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
