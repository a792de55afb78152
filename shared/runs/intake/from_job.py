"""The record of a run, made from the job that it will send. Every way to make a run begins here, so that none
forgets a field."""

from __future__ import annotations

from datetime import datetime

from shared.jobs.data import below_drops
from shared.jobs.spec import DataInput, JobSpec
from shared.runs.model import PIPELINE, SWEEP, Run
from shared.runs.progress.elastic_policy import begin
from shared.runs.progress.pipeline_steps import steps_at_first


def run_of(name: str, job: JobSpec, bounds: tuple[int, int], at: datetime) -> Run:
    """What the job itself says of the run; the caller adds where it comes from. `bounds` are those of `begin`."""
    sweep = job.sweep
    return Run.of(
        name=name,
        drop="",
        route="",
        fingerprint="",
        experiment=job.experiment,
        cluster="" if sweep else job.cluster,  # its trials have nodes, not it
        nodes=0 if sweep else job.node_count,
        kind=SWEEP if sweep else PIPELINE if job.kind == PIPELINE else "",
        steps=steps_at_first(job),
        created_at=at,
        request=job,
        parameters={name: v for name, v in job.values.items() if not sweep or name not in sweep.space},
        elastic=None if sweep else begin(job, bounds, at),
        resubmissions=bounds[1],
        timeout_seconds=job.timeout_seconds,
        reads=_reads(job),
    )


def _reads(job: JobSpec) -> tuple[str, ...]:
    """The places below the drops container that the job's inputs name."""
    places = (below_drops(value.path) for value in job.inputs.values() if isinstance(value, DataInput))
    return tuple(sorted(set(filter(None, places))))
