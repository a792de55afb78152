"""The Azure ML ids of a job's code and environment: the trainers' own, or an uploaded folder.

The trainers have two environments. PyTorch's GPU wheels need a matching driver and are 4 GB larger than the CPU wheels,
so the VM size of the job's cluster selects the environment (docs/adr/0068).
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
    """The ids for a job (None for names in the job itself), the digest of the job's code, and the GPUs per node."""

    code: Asset | None = None
    environment: Asset | None = None
    code_digest: str = ""
    gpus: int = 0


def assets(jobs: Jobs, trainers: Path, job: JobSpec, register: bool = True) -> Assets:
    """The ids of this job's code and environment on the cluster. `trainers` is the trainers' folder.

    New assets are registered, unless `register` is false.
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
    """The number of GPUs per node of the job. An unknown size of Azure's N family counts as one GPU."""
    size = job.machine or (jobs.vm_size(job.cluster) if job.cluster else "")
    known = gpus_of(size)
    return 1 if known is None else known


def resolve(job: JobSpec, ids: Assets) -> JobSpec:
    """The job with the ids filled in: code if the job names none, environment if the job uses the trainers'.

    On nodes with GPUs, a variable gives the number of GPUs, unless the job sets that variable itself.
    """
    if ids.code is not None and not isinstance(job.code, Asset):
        job = replace(job, code=ids.code, tags={**job.tags, "trainyard.code": ids.code_digest})
    if ids.environment is not None and uses_own_environment(job):
        job = replace(job, environment=ids.environment)
    return replace(job, variables={GPUS_VARIABLE: str(ids.gpus), **job.variables}) if ids.gpus else job
