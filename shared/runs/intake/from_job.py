"""Build a run's record from the run's job. Every way to make a run starts here: no way forgets a field."""

from __future__ import annotations

from datetime import datetime

from shared.jobs.data import below_drops
from shared.jobs.spec import DataInput, JobSpec
from shared.runs.model import Requested, Run
from shared.runs.progress.workload import NewRun
from shared.runs.progress.workloads import workload_of_job


def run_of(name: str, job: JobSpec, bounds: tuple[int, int], at: datetime) -> Run:
    """The run of this job, without the origin; the caller adds the origin. `bounds` come from `NewRun`."""
    kind = workload_of_job(job)
    asked = Requested(
        drop="",
        route="",
        fingerprint="",
        experiment=job.experiment,
        cluster="",
        nodes=0,
        request=job,
        resubmissions=bounds[1],
        timeout_seconds=job.timeout_seconds,
        reads=_reads(job),
        kind=kind.kind,
    )
    return kind.begun(Run(name, at, asked), NewRun(job, bounds, at))


def _reads(job: JobSpec) -> tuple[str, ...]:
    """The places below the drops container in the job's inputs."""
    places = (below_drops(value.path) for value in job.inputs.values() if isinstance(value, DataInput))
    return tuple(sorted(set(filter(None, places))))
