"""A job's code and environment in Azure ML, as their ids: the trainers', or a folder that was sent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shared.jobs.location import Asset
from shared.jobs.ports import Jobs
from shared.jobs.snapshot import digest_environment, digest_files
from shared.jobs.spec import JobSpec, uses_own_code, uses_own_environment
from shared.jobs.upload import digest_in, path


@dataclass(frozen=True)
class Assets:
    """The ids that a job needs, None where it names its own, and the digest of the code."""

    code: Asset | None = None
    environment: Asset | None = None
    code_digest: str = ""


def assets(jobs: Jobs, trainers: Path, job: JobSpec, register: bool = True) -> Assets:
    """The ids of the code and environment that this job needs, and the code's digest. `trainers` is their folder.

    They are registered if they are new, unless only their ids are asked for.
    """
    code = environment = None
    digest = ""
    if uses_own_code(job):
        sent = digest_in(job.code)
        digest, folder = (sent, path(sent)) if sent else (digest_files(trainers), trainers)
        code = jobs.register_code(folder, digest) if register else jobs.code_id(digest)
    if uses_own_environment(job):
        environment_id = jobs.register_environment if register else jobs.environment_id
        file = str(trainers / "environment.yaml")
        environment = environment_id(file, digest_environment(trainers))
    return Assets(code, environment, digest)
