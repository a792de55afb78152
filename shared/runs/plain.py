"""A run that is one job, under the run's own name."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from shared.jobs.assets import assets
from shared.jobs.job import HOUR_PROPERTY, mapping, nodes, resolve
from shared.kernel.errors import Impossible
from shared.runs.decide import first_line, why_step
from shared.runs.model import Run, RunState, hour_of
from shared.runs.workload import Look, Seen, Submitted
from shared.system import System

MISSING_FOR = timedelta(days=1)  # a job that can't be found may be in a workspace that the settings don't name now


class Plain:
    def jobs(self, run: Run) -> dict[int, str]:
        return {0: run.name}

    def live_jobs(self, run: Run) -> list[str]:
        return [run.name]

    def request(self, run: Run, job: str, rendezvous: str, now: datetime) -> dict[str, Any]:
        return {**run.request, "properties": {**mapping(run.request.get("properties")), **hour_property(run)}}

    def fewest_nodes(self, run: Run) -> int:
        return nodes(run.request)

    def submit(self, system: System, run: Run) -> Submitted:
        ids = assets(system, run.request)
        job = self.request(run, run.name, system.rendezvous, system.clock())
        system.jobs.submit(resolve(job, ids.code, ids.environment, ids.code_digest))
        return Submitted(ids, (run.name,))

    def sent(self, run: Run, jobs: tuple[str, ...]) -> dict[str, Any]:
        return {}

    def look(self, run: Run, seen: Seen, now: datetime) -> Look | None:
        if run.name not in seen:
            return None
        status = seen[run.name]
        if status is None:
            if run.state is RunState.RECEIVED or now - run.history[-1].at < MISSING_FOR:
                return None
            return Look(RunState.FAILED, f"Azure ML has no job {run.name} any more.")
        if status.state is RunState.FAILED:
            words = first_line(status.error) or "The job failed."
            return Look(RunState.FAILED, words, failed_job=run.name, error=status.error)
        return Look(status.state, status.error or why_step(run, status, now))

    def act(self, system: System, run: Run, look: Look) -> tuple[str, ...]:
        return ()  # Azure ML itself starts a job again that lost its nodes

    def cancel(self, system: System, run: Run) -> None:
        system.jobs.cancel(run.name)

    def evict(self, system: System, run: Run, index: int) -> str:
        raise Impossible(f"Run {run.name} is one job; only members of an elastic run can be evicted.", "not_elastic")

    def log_folder(self, run: Run, job: str) -> str:
        return "logs/"

    def output_folder(self, run: Run, job: str) -> str:
        return "outputs/"

    def ranks(self, run: Run) -> list[int] | None:
        return None

    def log_of(self, run: Run, rank: int) -> tuple[str, int] | None:
        return run.name, rank


def hour_property(run: Run) -> dict[str, str]:
    """By this Azure ML lists the jobs of all runs that were made in the same hour."""
    return {HOUR_PROPERTY: hour_of(run.created_at)}


PLAIN = Plain()
