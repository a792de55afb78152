"""A run that is a pipeline: Azure ML has it whole, and runs its graph; each step is a job of its own there."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from shared.jobs.assets import Assets, assets
from shared.jobs.model import ENDED, JobState
from shared.jobs.readers.pipeline import with_steps
from shared.jobs.spec import JobSpec, resolve
from shared.runs.model import Run, RunState
from shared.runs.node_use import Spell, Use, end_of
from shared.runs.progress.pipeline_steps import as_told, why_failed
from shared.runs.progress.single_job import Plain, Ports
from shared.runs.progress.workload import Look, Seen, Submitted


class Steps(Plain):
    """See Workload. The job of the pipeline has the run's name; those of its steps have names of Azure ML's."""

    def jobs(self, run: Run) -> dict[int, str]:
        return super().jobs(run) | {number: step.job for number, step in enumerate(run.jobs.steps, 1) if step.job}

    def can_move(self, run: Run) -> bool:  # noqa: ARG002 the port's
        return False

    def uses(self, run: Run, now: datetime) -> list[Use]:
        """Each step's nodes while it ran, on its own cluster."""
        ran: dict[str, tuple[Spell, ...]] = {run.asked.cluster: ()}
        for step in run.jobs.steps:
            cluster, end = step.cluster or run.asked.cluster, step.ended or end_of(run) or now
            if step.nodes and step.began and step.began < end:
                ran[cluster] = (*ran.get(cluster, ()), Spell(step.began, end, step.nodes))
        return [
            Use(run.name, cluster, run.created_at, ran=spells, ended=end_of(run)) for cluster, spells in ran.items()
        ]

    def submit(self, ports: Ports, run: Run) -> Submitted:
        def with_ids(step: JobSpec) -> JobSpec:
            ids = assets(ports.jobs, ports.trainers, step)
            return resolve(step, ids.code, ids.environment, ids.code_digest)

        job = self.request(run, run.name, ports.rendezvous, ports.clock())
        answer = ports.jobs.submit(with_steps(job, with_ids))
        return Submitted(Assets(), (run.name,), answer.state is JobState.QUEUED)

    def look(self, run: Run, seen: Seen, now: datetime) -> Look | None:
        look, status = super().look(run, seen, now), seen.get(run.name)
        if look is None or status is None or status.steps is None:
            return look
        steps = as_told(run.jobs.steps, status.steps, status.state in ENDED)
        look = replace(look, changes=look.changes | ({"steps": steps} if steps != run.jobs.steps else {}))
        why, job = why_failed(steps)
        return replace(look, why=why, failed_job=job) if look.state is RunState.FAILED and why else look

    def log_folder(self, run: Run, job: str) -> str:
        return f"logs/{_folder(run, job)}"

    def output_folder(self, run: Run, job: str) -> str:
        return f"outputs/{_folder(run, job)}"

    def ranks(self, run: Run) -> list[int] | None:
        """The steps that have begun, by their places in the file."""
        return [place for place, step in enumerate(run.jobs.steps) if step.job]

    def log_of(self, run: Run, rank: int) -> tuple[str, int] | None:
        steps = run.jobs.steps
        return (steps[rank].job, 0) if 0 <= rank < len(steps) and steps[rank].job else None


def _folder(run: Run, job: str) -> str:
    """The folder of a step's job; the pipeline's own files lie where other jobs' do."""
    return next((f"{step.name}/" for step in run.jobs.steps if step.job == job), "")


STEPS = Steps()
