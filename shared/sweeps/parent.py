"""The kind of run of a sweep. A sweep has no job: the trials are runs, with the nodes and the cost.

The sweep's run has the values common to all trials and, at the end, the archive of the best trial.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from shared.jobs.assets import Assets
from shared.jobs.spec import JobSpec
from shared.kernel.ports import StoragePorts
from shared.runs.model import Run
from shared.runs.node_use import ClusterUse, end_of
from shared.runs.progress.workload import NewRun, NextStep, Statuses, Submitted, Workload
from shared.sweeps.model import SweepSummary


class SweepParent(Workload):
    kind = "sweep"
    has_own_nodes = False

    def accepts(self, job: JobSpec) -> bool:
        return job.sweep is not None

    def begun(self, run: Run, new: NewRun) -> Run:
        """The new run, with only the parameters common to all trials, and without nodes."""
        space = new.job.sweep.space if new.job.sweep else {}
        parameters = {name: value for name, value in new.job.values.items() if name not in space}
        return replace(run, asked=replace(run.asked, parameters=parameters)).having(SweepSummary())

    def jobs(self, _run: Run) -> dict[int, str]:
        return {}

    def live_jobs(self, _run: Run) -> list[str]:
        return []

    def job_spec(self, run: Run, _job: str, _rendezvous: str, _now: datetime) -> JobSpec:
        """The job of a trial, before drawing the values."""
        return replace(run.asked.request, sweep=None)

    def submit(self, _ports: StoragePorts, _run: Run) -> Submitted:
        """Submit nothing. The fact of the sweep's submission causes a check of the sweep, which makes the trials."""
        return Submitted(Assets(None, None, ""), ())

    def decide(self, _run: Run, _statuses: Statuses, _now: datetime) -> NextStep | None:
        return None

    def overdue(self, _run: Run, _now: datetime) -> str | None:
        """None: the time limit applies to each trial."""

    def uses(self, run: Run, _now: datetime) -> list[ClusterUse]:
        return [ClusterUse(run.name, "", run.created_at, ended=end_of(run))]

    def fewest_nodes(self, run: Run) -> int:
        return run.asked.request.node_count

    def job_folder(self, _run: Run, _job: str) -> str:
        return ""

    def ranks(self, _run: Run) -> list[int] | None:
        return []

    def log_of(self, run: Run, rank: int) -> tuple[str, int] | None:
        """The log of the best trial, if a best trial is known."""
        best = self.archived_run(run)
        return (best, rank) if best != run.name else None

    def archived_run(self, run: Run) -> str:
        """The run of the best trial; the sweep's own run before there is a best trial."""
        standing = run.feature(SweepSummary)
        return standing.best if standing and standing.best else run.name
