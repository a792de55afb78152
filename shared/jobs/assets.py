"""The trainers' code and environment in Azure ML, as their ids."""

from __future__ import annotations

from typing import Any

from shared.jobs import jobspec
from shared.system import System


def assets(system: System, job: dict[str, Any], register: bool = True) -> dict[str, Any]:
    """The ids of the code and environment that this job needs, and the code's digest.

    They are registered if they are new, unless only their ids are asked for.
    """
    ids: dict[str, Any] = {"code": None, "environment": None, "code_digest": ""}
    if jobspec.uses_own_code(job):
        ids["code_digest"] = jobspec.digest_files(system.trainers)
        code = system.jobs.register_code if register else system.jobs.code_id
        ids["code"] = code(str(system.trainers), ids["code_digest"])
    if jobspec.uses_own_environment(job):
        environment = system.jobs.register_environment if register else system.jobs.environment_id
        file = str(system.trainers / "environment.yaml")
        ids["environment"] = environment(file, jobspec.digest_environment(system.trainers))
    return ids
