"""The interface of all kinds of runs: the lifecycle of jobs, the use of nodes, and the places of logs and outputs.

A kind is one class that inherits from `Workload` and is registered in workloads.py. A kind implements the abstract
methods and overrides a default only where it differs. An ability of only some kinds, such as evicting a member, is an
operation in the folder of that kind.

`decide` is pure: the caller records the decision before `act` carries it out, so a crash between the two is retried.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from shared.jobs.assets import Assets
from shared.jobs.model import JobFailure, JobStatus
from shared.jobs.ports import WorkspacePorts
from shared.jobs.spec import JobSpec
from shared.runs.decide import is_over, overdue
from shared.runs.model import FINAL, Run, RunState
from shared.runs.node_use import ClusterUse
from shared.runs.ports import RunPorts

# Job statuses by job name. None: Azure ML has no such job. Absent: Azure ML was not asked about the job.
Statuses = Mapping[str, JobStatus | None]


@dataclass(frozen=True)
class NewRun:
    """The inputs of a new run. `bounds`: minimum number of nodes (0: all of them) and number of resubmissions."""

    job: JobSpec
    bounds: tuple[int, int]
    at: datetime


@dataclass(frozen=True)
class Submitted:
    """The code and environment ids of the submitted jobs, and the jobs' names.

    `queued`: Azure ML's response already says that the job waits for nodes, as the job's first event will.
    """

    ids: Assets
    jobs: tuple[str, ...]
    queued: bool = False


@dataclass(frozen=True)
class NextStep:
    """The consequences of the jobs' statuses: the updated run, its next state and the reason, and jobs to cancel.

    `run` does not have the new state yet: the caller applies `state`, if the table of transitions allows it.

    `failed_job` is the job whose log explains why the run failed; `failure` explains why a job failed.
    """

    run: Run
    state: RunState
    why: str = ""
    to_cancel: tuple[str, ...] = ()
    failed_job: str = ""
    failure: JobFailure | None = None


class JobLifecycle(ABC):
    """Submits a run's jobs, decides the next step from their statuses, acts on the decision, and cancels the jobs."""

    replaces_jobs: ClassVar[bool] = False  # whether a row that is seconds old may name jobs that were replaced since

    @abstractmethod
    def jobs(self, run: Run) -> dict[int, str]:
        """The names of all jobs of the run so far, by number. More jobs never change a job's number."""

    @abstractmethod
    def live_jobs(self, run: Run) -> list[str]:
        """The names of the unfinished jobs, according to the run's row."""

    @abstractmethod
    def job_spec(self, run: Run, job: str, rendezvous: str, now: datetime) -> JobSpec:
        """The job with this name, without the ids of code and environment."""

    @abstractmethod
    def submit(self, ports: RunPorts, run: Run) -> Submitted:
        """Submit the jobs missing from Azure ML. Raises BadInput if Azure ML permanently rejects a job.

        If the run ends while a further job is being submitted, that job is canceled.
        """

    @abstractmethod
    def decide(self, run: Run, statuses: Statuses, now: datetime) -> NextStep | None:
        """The next step for these statuses; None if nothing changes. A job without a status is unchanged."""

    def running_jobs(self, run: Run) -> set[str]:
        """The names of the jobs with nodes, according to the run's row."""
        return set(self.live_jobs(run)) if run.progress.state is RunState.RUNNING else set()

    def running_since(self, run: Run, job: str) -> datetime | None:
        """When the row's writer first saw this job running; None for a job that is not running, according to the
        row.
        """
        return run.progress.history[-1].at if job in self.running_jobs(run) else None

    def nodes_changed_at(self, run: Run) -> datetime:
        """When a node of the run last joined or left, according to the row."""
        return run.progress.history[-1].at

    def has_unsent_jobs(self, run: Run) -> bool:
        """Whether the row of a submitted run names a job that is not submitted yet."""
        return run.jobs.resubmit

    def after_submission(self, run: Run, jobs: tuple[str, ...]) -> Run:
        """The run after the submission of these jobs."""
        job = next((job for job in self.live_jobs(run) if job in jobs), "")
        return replace(run, jobs=replace(run.jobs, resubmit=False, job=job)) if run.jobs.resubmit and job else run

    def act(self, ports: RunPorts, run: Run, step: NextStep) -> tuple[str, ...]:
        """Carry out a recorded step, and return the names of the submitted jobs. A repeat is safe."""
        for job in step.to_cancel:
            ports.jobs.cancel(job)
        return self.submit(ports, run).jobs if not is_over(run) and self.has_unsent_jobs(run) else ()

    def cancel(self, ports: WorkspacePorts, run: Run) -> None:
        """Cancel every unfinished job."""
        for job in self.live_jobs(run):
            ports.jobs.cancel(job)

    def overdue(self, run: Run, now: datetime) -> str | None:
        """Why the run must be canceled now, past its time limit; None if not, or if `decide` ends the run."""
        return overdue(run, now)

    def can_ignore(self, run: Run, told: RunState, scarce: bool) -> bool:
        """Whether an event with this job state can be left to the hourly reconcile.

        `scarce`: Azure ML is limiting requests now.
        """
        return told is run.progress.state or (told not in FINAL and scarce)

    def may_change(self, run: Run, statuses: Statuses) -> bool:
        """Whether these statuses, from a list, may change the run."""
        states = (status and RunState(status.state) for status in statuses.values())
        return any(state is not run.progress.state for state in states)


class NodeUse(ABC):
    """The needed and the used nodes of a run."""

    has_own_nodes: ClassVar[bool] = True  # False: other runs own the nodes and the cost
    pays_while_waiting: ClassVar[bool] = False  # whether some nodes may be up, and paid for, while others are awaited
    can_move: ClassVar[bool] = False  # whether a new run on another cluster can continue this run

    @abstractmethod
    def uses(self, run: Run, now: datetime) -> list[ClusterUse]:
        """The use of each of the run's clusters until now: the waits for nodes, and the times with nodes."""

    def fewest_nodes(self, run: Run) -> int:
        """The minimum number of nodes for the run to start."""
        return run.asked.nodes

    def losses(self, run: Run) -> int:
        """How often the run has lost nodes."""
        return max(run.progress.attempts - 1, 0)

    def bounds(self, run: Run) -> tuple[int, int]:
        """Minimum number of nodes (0: all nodes) and number of resubmissions, for a new run like this one."""
        return 0, run.asked.resubmissions


class ResultPlaces(ABC):
    """The places of a run's logs and outputs."""

    logs_to_mlflow: ClassVar[bool] = True  # whether the MLflow metrics of the run's jobs are the run's metrics

    @abstractmethod
    def job_folder(self, run: Run, job: str) -> str:
        """The job's folder below logs/, outputs/ and mlflow/ in the run's archive: '' or with a final slash."""

    def archived_run(self, run: Run) -> str:
        """The run whose outputs are archived as this run's outputs."""
        return run.name

    @abstractmethod
    def ranks(self, run: Run) -> list[int] | None:
        """The ranks that have a log; None if the ranks are known only from a listing of the logs."""

    @abstractmethod
    def log_of(self, run: Run, rank: int) -> tuple[str, int] | None:
        """The job with this rank's log, and the rank's number in the job; None for a missing rank.

        A run of one job accepts any rank: only a listing of its logs shows which ranks exist.
        """


class Workload(JobLifecycle, NodeUse, ResultPlaces, ABC):
    """A kind of run. `kind` is the value of the run's column `kind`."""

    kind: ClassVar[str]

    @abstractmethod
    def accepts(self, job: JobSpec) -> bool:
        """Whether a run of this job has this kind."""

    def begun(self, run: Run, new: NewRun) -> Run:
        """Complete a new run with the values for the run's kind."""
        job = new.job
        asked = replace(run.asked, cluster=job.cluster, nodes=job.node_count, parameters=job.values)
        return replace(run, asked=asked)
