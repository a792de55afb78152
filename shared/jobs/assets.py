"""A job's code and environment in Azure ML, as their ids: the trainers', or a folder that was sent.

The trainers have two environments. PyTorch's wheels for GPUs need a driver that fits and are 4 GB larger than those for
processors, so the VM size of the job's cluster decides between them (docs/adr/0068).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from shared.jobs.location import Asset
from shared.jobs.ports import Jobs
from shared.jobs.snapshot import digest_environment, digest_files
from shared.jobs.spec import JobSpec, uses_own_code, uses_own_environment
from shared.jobs.upload import digest_in, path
from shared.jobs.vm_size import gpus_of

CPU_ENVIRONMENT, GPU_ENVIRONMENT = "environment.yaml", "environment-gpu.yaml"  # in trainers/
GPUS_VARIABLE = "TRAINYARD_GPUS"  # of the job's processes: how many GPUs their node has; see trainers/gpu.py


@dataclass(frozen=True)
class Assets:
    """The ids that a job needs, None where the job names its own, the digest of the code, and each node's GPUs."""

    code: Asset | None = None
    environment: Asset | None = None
    code_digest: str = ""
    gpus: int = 0


def assets(jobs: Jobs, trainers: Path, job: JobSpec, register: bool = True) -> Assets:
    """The ids of the code and environment that this job needs on its cluster. `trainers` is their folder.

    They are registered if they are new, unless only their ids are asked for.
    """
    code = environment = None
    digest, gpus = "", gpus_of_node(jobs, job)
    if uses_own_code(job):
        sent = digest_in(job.code)
        digest, folder = (sent, path(sent)) if sent else (digest_files(trainers), trainers)
        code = jobs.register_code(folder, digest) if register else jobs.code_id(digest)
    if uses_own_environment(job):
        environment_id = jobs.register_environment if register else jobs.environment_id
        file = trainers / (GPU_ENVIRONMENT if gpus else CPU_ENVIRONMENT)
        environment = environment_id(str(file), digest_environment(file))
    return Assets(code, environment, digest, gpus)


def gpus_of_node(jobs: Jobs, job: JobSpec) -> int:
    """How many GPUs a node of the job has. A size of Azure's N family that nobody knows counts as one."""
    size = job.machine or (jobs.vm_size(job.cluster) if job.cluster else "")
    known = gpus_of(size)
    return 1 if known is None else known


def resolve(job: JobSpec, ids: Assets) -> JobSpec:
    """The job with the ids filled in: code where it names none, environment where it names the trainers' own.

    Where its nodes have GPUs a variable says how many, unless the job sets that variable itself.
    """
    if ids.code is not None and not isinstance(job.code, Asset):
        job = replace(job, code=ids.code, tags={**job.tags, "trainyard.code": ids.code_digest})
    if ids.environment is not None and uses_own_environment(job):
        job = replace(job, environment=ids.environment)
    return replace(job, variables={GPUS_VARIABLE: str(ids.gpus), **job.variables}) if ids.gpus else job
