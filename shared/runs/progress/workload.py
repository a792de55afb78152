"""What each kind of run states: the lifecycle of its jobs, its use of nodes, and the places of its logs and outputs.

A kind is one class that inherits from `Workload` and is registered in workloads.py. A kind implements the abstract
methods and overrides a default only where it differs. What only some kinds can do, such as evicting a member, is a
capability in capabilities.py, which its caller asks for by type.

`decide` is pure: the caller records its decision before `act` carries it out, so that a crash between the two is
retried.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from shared.jobs.assets import Assets
from shared.jobs.model import JobFailure, JobStatus
from shared.jobs.spec import JobSpec
from shared.runs.decide import is_over, overdue
from shared.runs.model import FINAL, Run, RunState
from shared.runs.node_use import Use
from shared.runs.ports import RunPorts

# Statuses of jobs by their names. None: Azure ML has no such job. Absent: nobody asked Azure ML about this job.
Statuses = Mapping[str, JobStatus | None]


@dataclass(frozen=True)
class NewRun:
    """What a run is made from. `bounds`: the fewest nodes (0: all of them) and the number of resubmissions."""

    job: JobSpec
    bounds: tuple[int, int]
    at: datetime


@dataclass(frozen=True)
class Submitted:
    """The ids of code and environment that the jobs have, and the names of the jobs.

    `queued`: Azure ML's answer says that the run's job waits for nodes, as the job's first event will.
    """

    ids: Assets
    jobs: tuple[str, ...]
    queued: bool = False


@dataclass(frozen=True)
class NextStep:
    """What the statuses of jobs mean for the run: the run as it is to be, its state and the reason, jobs to cancel.

    `run` is not in the new state yet: the caller brings it there, if the table of states allows it.

    `failed_job` is the job whose log explains why the run failed, `failure` why a job failed.
    """

    run: Run
    state: RunState
    why: str = ""
    to_cancel: tuple[str, ...] = ()
    failed_job: str = ""
    failure: JobFailure | None = None


class JobLifecycle(ABC):
    """Submits a run's jobs, decides from their statuses what follows, acts on the decision, and cancels the jobs."""

    replaces_jobs: ClassVar[bool] = False  # whether a row that is seconds old may name jobs that were replaced

    @abstractmethod
    def jobs(self, run: Run) -> dict[int, str]:
        """The names of all jobs that the run has had, each under a number that stays when further jobs come."""

    @abstractmethod
    def live_jobs(self, run: Run) -> list[str]:
        """The names of the jobs that have not ended, as the run's row knows them."""

    @abstractmethod
    def job_spec(self, run: Run, job: str, rendezvous: str, now: datetime) -> JobSpec:
        """The job of this name, without the ids of code and environment."""

    @abstractmethod
    def submit(self, ports: RunPorts, run: Run) -> Submitted:
        """Submit the jobs that Azure ML lacks. Raises BadInput if Azure ML permanently rejects one.

        A further job of a run that was ended while the job was on its way is canceled.
        """

    @abstractmethod
    def decide(self, run: Run, statuses: Statuses, now: datetime) -> NextStep | None:
        """What these statuses mean for the run; None if nothing. A job without a status is as it was."""

    def running_jobs(self, run: Run) -> set[str]:
        """The names of the jobs that run on nodes, as the run's row knows them."""
        return set(self.live_jobs(run)) if run.progress.state is RunState.RUNNING else set()

    def has_unsent_jobs(self, run: Run) -> bool:
        """Whether the row of a submitted run names a job that is still to be submitted."""
        return run.jobs.resubmit

    def after_submission(self, run: Run, jobs: tuple[str, ...]) -> Run:
        """The run once these jobs are submitted."""
        job = next((job for job in self.live_jobs(run) if job in jobs), "")
        return replace(run, jobs=replace(run.jobs, resubmit=False, job=job)) if run.jobs.resubmit and job else run

    def act(self, ports: RunPorts, run: Run, step: NextStep) -> tuple[str, ...]:
        """Carry out a recorded step, and return the names of the jobs that were submitted. A repeat does no harm."""
        for job in step.to_cancel:
            ports.jobs.cancel(job)
        return self.submit(ports, run).jobs if not is_over(run) and self.has_unsent_jobs(run) else ()

    def cancel(self, ports: RunPorts, run: Run) -> None:
        """Cancel every job that has not ended."""
        for job in self.live_jobs(run):
            ports.jobs.cancel(job)

    def overdue(self, run: Run, now: datetime) -> str | None:
        """Why the run has to be canceled now, past its time limit; None if not, or if `decide` ends it."""
        return overdue(run, now)

    def can_ignore(self, run: Run, told: RunState, scarce: bool) -> bool:
        """Whether an event that tells this state of a job can be left to the hourly reconcile.

        `scarce`: Azure ML answers few requests now.
        """
        return told is run.progress.state or (told not in FINAL and scarce)

    def may_change(self, run: Run, statuses: Statuses) -> bool:
        """Whether these statuses, which were read in a list, may change anything."""
        states = (status and RunState(status.state) for status in statuses.values())
        return any(state is not run.progress.state for state in states)


class NodeUse(ABC):
    """Says which nodes a run needs and has had."""

    has_own_nodes: ClassVar[bool] = True  # False: other runs have the nodes and the cost
    pays_while_waiting: ClassVar[bool] = False  # whether some nodes may be there, and paid, while others are awaited
    can_move: ClassVar[bool] = False  # whether another run on another cluster can go on where this one is

    @abstractmethod
    def uses(self, run: Run, now: datetime) -> list[Use]:
        """When the run waited for nodes of each of its clusters, and when it had them, until now."""

    def fewest_nodes(self, run: Run) -> int:
        """How many nodes must be there for the run to begin."""
        return run.asked.nodes

    def losses(self, run: Run) -> int:
        """How often the run lost nodes."""
        return max(run.progress.attempts - 1, 0)

    def bounds(self, run: Run) -> tuple[int, int]:
        """The fewest nodes (0: all of them) and the number of resubmissions, for another run like this one."""
        return 0, run.asked.resubmissions


class ResultPlaces(ABC):
    """Says where a run's logs and outputs are."""

    logs_to_mlflow: ClassVar[bool] = True  # whether the metrics of its jobs in MLflow are the run's

    @abstractmethod
    def job_folder(self, run: Run, job: str) -> str:
        """The folder of this job below logs/, outputs/ and mlflow/ in the run's archive: '' or with a final slash."""

    def archived_run(self, run: Run) -> str:
        """The run whose outputs are archived as this run's."""
        return run.name

    @abstractmethod
    def ranks(self, run: Run) -> list[int] | None:
        """The ranks that have a log; None where only a listing of the logs says that."""

    @abstractmethod
    def log_of(self, run: Run, rank: int) -> tuple[str, int] | None:
        """The job that has this rank's log, and the rank's number in that job; None if there is no such rank.

        A run of one job accepts any rank: a listing of its logs says which there are.
        """


class Workload(JobLifecycle, NodeUse, ResultPlaces, ABC):
    """A kind of run. `kind` is the value of the run's column `kind`."""

    kind: ClassVar[str]

    @abstractmethod
    def takes(self, job: JobSpec) -> bool:
        """Whether a run of this job is of this kind."""

    def begun(self, run: Run, new: NewRun) -> Run:
        """A new run with what depends on its kind."""
        job = new.job
        asked = replace(run.asked, cluster=job.cluster, nodes=job.node_count, parameters=job.values)
        return replace(run, asked=asked)
