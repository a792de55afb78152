"""How a run is carried out in Azure ML: as one job, or as the members of an elastic run.

Nobody else asks which of the two a run is. `look` is pure: it decides from what is known of the jobs, and the caller
writes the decision down before `act` carries it out, so that a step that is lost in between comes again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from shared.jobs.assets import Assets
from shared.jobs.model import JobStatus
from shared.runs.model import Run, RunState
from shared.system import System

# What is known of jobs by their names. None: Azure ML has no such job. Not there: nobody asked.
Seen = Mapping[str, JobStatus | None]


@dataclass(frozen=True)
class Look:
    """What the jobs make of the run: its state and why, further changes of its fields, and what is to be done.

    `failed_job` is the job whose log says why the run failed, `error` what Azure ML says of that.
    """

    state: RunState
    why: str = ""
    changes: dict[str, Any] = field(default_factory=dict)
    to_cancel: tuple[str, ...] = ()
    failed_job: str = ""
    error: str = ""


@dataclass(frozen=True)
class Submitted:
    """The ids of code and environment that the jobs have, and the names of the jobs.

    `queued`: Azure ML's answer said that the run's job waits for nodes, as its first event will.
    """

    ids: Assets
    jobs: tuple[str, ...]
    queued: bool = False


class Workload(Protocol):
    def jobs(self, run: Run) -> dict[int, str]:
        """The names of all jobs that the run has had, each under a number that stays when further jobs come."""

    def live_jobs(self, run: Run) -> list[str]:
        """The names of those that were sent, as far as the run's row knows, and have not ended."""

    def request(self, run: Run, job: str, rendezvous: str, now: datetime) -> dict[str, Any]:
        """The job of this name, but for the ids of code and environment."""

    def fewest_nodes(self, run: Run) -> int:
        """How many nodes must be there for it to begin."""

    def losses(self, run: Run) -> int:
        """How often it lost nodes."""

    def submit(self, system: System, run: Run) -> Submitted:
        """Put the jobs to Azure ML that are not there yet. Raises BadInput if it takes one of them never."""

    def sent(self, run: Run, jobs: tuple[str, ...]) -> dict[str, Any]:
        """The changes of the run's fields that say that these jobs are there."""

    def look(self, run: Run, seen: Seen, now: datetime) -> Look | None:
        """What these statuses make of the run; None if they say nothing. A job that is not among them is as it was."""

    def act(self, system: System, run: Run, look: Look) -> tuple[str, ...]:
        """Carry out what the look decided, after it was written down, and return the jobs that were sent.

        Twice does no harm.
        """

    def cancel(self, system: System, run: Run) -> None:
        """Ask for the end of every job that has not ended."""

    def evict(self, system: System, run: Run, index: int) -> str:
        """End the job of one member, as losing its node does, and return its name. The run goes on without it.

        Raises Impossible for a run without members, NotFound for an unknown one, Conflict for one that isn't running.
        """

    def log_folder(self, run: Run, job: str) -> str:
        """Where in its archive the run keeps the logs of this job."""

    def output_folder(self, run: Run, job: str) -> str:
        """Where in its archive the run keeps what this job wrote to ./outputs."""

    def ranks(self, run: Run) -> list[int] | None:
        """The ranks that have a log; None where only the logs themselves say that."""

    def log_of(self, run: Run, rank: int) -> tuple[str, int] | None:
        """The job that has this rank's log, and the rank's number in that job; None if there is no such rank.

        Of a run without members any rank is possible: the logs themselves say which there are.
        """
