"""How a run is carried out in Azure ML: as one job, or as the members of an elastic run.

Nobody else asks which of the two a run is. `look` is pure: it decides from what is known of the jobs, and the caller
writes the decision down before `act` carries it out, so that a crash between the two is retried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from shared.jobs.assets import Assets
from shared.jobs.model import JobStatus
from shared.jobs.ports import HasJobs, HasTrainers
from shared.jobs.spec import JobSpec
from shared.kernel.has import HasClock
from shared.runs.model import Loss, Member, Run, RunState, Size
from shared.runs.node_use import Use
from shared.runs.ports import HasRendezvous, HasRuns

# What is known of jobs by their names. None: Azure ML has no such job. Not there: nobody asked.
Seen = Mapping[str, JobStatus | None]


class Ports(HasClock, HasJobs, HasTrainers, HasRuns, HasRendezvous, Protocol):
    """What is needed here from outside."""


@dataclass(frozen=True)
class Look:
    """What the jobs mean for the run: its state and why, changes of its fields, and what is to be done.

    `failed_job` is the job whose log says why the run failed, `error` what Azure ML says of that.
    """

    state: RunState
    why: str = ""
    changes: dict[str, Any] = field(default_factory=dict)
    to_cancel: tuple[str, ...] = ()
    failed_job: str = ""
    error: str = ""


@dataclass(frozen=True)
class MembersView:
    """An elastic run as people see it. `members` have the names of their present jobs, `losses` of those that ended."""

    min_nodes: int
    resubmissions: int
    resubmitted: int
    deadline: datetime
    members: tuple[tuple[Member, str], ...]
    sizes: tuple[Size, ...]
    losses: tuple[tuple[Loss, str], ...] = ()


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
        """The names of the jobs that were sent and have not ended, as the run's row knows them."""

    def on_nodes(self, run: Run) -> set[str]:
        """The names of those that run, as its row knows them."""

    def request(self, run: Run, job: str, rendezvous: str, now: datetime) -> JobSpec:
        """The job of this name, but for the ids of code and environment."""

    def fewest_nodes(self, run: Run) -> int:
        """How many nodes must be there for it to begin."""

    def losses(self, run: Run) -> int:
        """How often it lost nodes."""

    def uses(self, run: Run, now: datetime) -> list[Use]:
        """What it had of the nodes of each of its clusters until now."""

    def bounds(self, run: Run) -> tuple[int, int]:
        """The fewest nodes (0: all of them) and the number of resubmissions, for another run like it."""

    def overdue(self, run: Run, now: datetime) -> str | None:
        """Why it has to be ended now, past its time limit; None if not, or if its own decisions see to that."""

    def can_move(self, run: Run) -> bool:
        """Whether another run on another cluster could go on where this one is."""

    def members(self, run: Run) -> MembersView | None:
        """Its members as people see them; None for a run that has none."""

    def logs_to_mlflow(self, run: Run) -> bool:
        """Whether its jobs' metrics in MLflow are the run's."""

    def jobs_change(self, run: Run) -> bool:
        """Whether it may have other jobs by now than a row of some seconds ago says."""

    def can_wait(self, run: Run, told: RunState, scarce: bool) -> bool:
        """Whether an event that tells of this state of a job can be left to the look at the run's hour.

        `scarce`: Azure ML takes few questions now.
        """

    def worth_a_look(self, run: Run, seen: Seen) -> bool:
        """Whether these statuses, which were read in a list, may change anything."""

    def submit(self, ports: Ports, run: Run) -> Submitted:
        """Submit the jobs that Azure ML lacks. Raises BadInput if Azure ML permanently rejects one."""

    def sent(self, run: Run, jobs: tuple[str, ...]) -> dict[str, Any]:
        """The changes of the run's fields once these jobs are submitted."""

    def look(self, run: Run, seen: Seen, now: datetime) -> Look | None:
        """What these statuses mean for the run; None if nothing. A job that is not among them is as it was."""

    def act(self, ports: Ports, run: Run, look: Look) -> tuple[str, ...]:
        """Carry out a recorded decision, and return the jobs that were sent.

        A repeat does no harm.
        """

    def cancel(self, ports: Ports, run: Run) -> None:
        """Ask for the end of every job that has not ended."""

    def evict(self, ports: Ports, run: Run, index: int) -> str:
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
