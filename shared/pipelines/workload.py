"""A run of a pipeline. Azure ML receives the whole pipeline and runs the graph; each step is a job in Azure ML."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from shared.jobs import spec
from shared.jobs.assets import Assets, assets, resolve
from shared.jobs.model import ENDED, JobState
from shared.jobs.readers.pipeline import with_steps
from shared.jobs.spec import JobSpec
from shared.pipelines.decide import steps_at_first, why_failed, with_statuses
from shared.pipelines.model import PipelineSteps, Step
from shared.runs.model import Run, RunState
from shared.runs.node_use import ClusterUse, NodeSpan, end_of
from shared.runs.ports import RunPorts
from shared.runs.progress.one_job import OneJob
from shared.runs.progress.put_job import put_job
from shared.runs.progress.workload import NewRun, NextStep, Statuses, Submitted


class PipelineJob(OneJob):
    """The pipeline's job has the run's name. Azure ML chooses the names of the steps' jobs."""

    kind = "pipeline"

    def accepts(self, job: JobSpec) -> bool:
        return job.kind == spec.PIPELINE

    def begun(self, run: Run, new: NewRun) -> Run:
        return super().begun(run, new).having(PipelineSteps(steps_at_first(new.job)))

    def jobs(self, run: Run) -> dict[int, str]:
        return super().jobs(run) | {number: step.job for number, step in enumerate(steps_of(run), 1) if step.job}

    def uses(self, run: Run, now: datetime) -> list[ClusterUse]:
        """The nodes of each step during the step's run, on the step's cluster."""
        ran: dict[str, tuple[NodeSpan, ...]] = {run.asked.cluster: ()}
        for step in steps_of(run):
            cluster, end = step.cluster or run.asked.cluster, step.ended or end_of(run) or now
            if step.nodes and step.began and step.began < end:
                ran[cluster] = (*ran.get(cluster, ()), NodeSpan(step.began, end, step.nodes))
        return [
            ClusterUse(run.name, cluster, run.created_at, ran=spells, ended=end_of(run))
            for cluster, spells in ran.items()
        ]

    def submit(self, ports: RunPorts, run: Run) -> Submitted:
        def with_ids(step: JobSpec) -> JobSpec:
            placed = replace(step, cluster=step.cluster or run.asked.cluster)
            return resolve(step, assets(ports.jobs, ports.trainers, placed))

        job = self.job_spec(run, run.name, ports.rendezvous, ports.clock())
        answer = put_job(ports, run.name, with_steps(job, with_ids))
        return Submitted(Assets(), (run.name,), answer.state is JobState.QUEUED)

    def decide(self, run: Run, statuses: Statuses, now: datetime) -> NextStep | None:
        step, status = super().decide(run, statuses, now), statuses.get(run.name)
        if step is None or status is None or status.steps is None:
            return step
        steps = with_statuses(steps_of(run), status.steps, status.state in ENDED)
        step = replace(step, run=step.run.having(PipelineSteps(steps)))
        why, job = why_failed(steps)
        return replace(step, why=why, failed_job=job) if step.state is RunState.FAILED and why else step

    def job_folder(self, run: Run, job: str) -> str:
        """The folder of a step's job. The pipeline's own files have the places of a single job's files."""
        return next((f"{step.name}/" for step in steps_of(run) if step.job == job), "")

    def ranks(self, run: Run) -> list[int] | None:
        """The started steps, by position in the file."""
        return [place for place, step in enumerate(steps_of(run)) if step.job]

    def log_of(self, run: Run, rank: int) -> tuple[str, int] | None:
        steps = steps_of(run)
        return (steps[rank].job, 0) if 0 <= rank < len(steps) and steps[rank].job else None


def steps_of(run: Run) -> tuple[Step, ...]:
    """The steps of a pipeline; no steps for another run."""
    added = run.feature(PipelineSteps)
    return added.steps if added else ()
