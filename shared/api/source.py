"""Where a job's code came from: what whoever submitted it wrote into the job's properties, under Azure ML's names."""

from __future__ import annotations

from typing import Any

from shared.jobs.spec import JobSpec

COMMIT = "azureml.git.commit"
DIRTY = "azureml.git.dirty"
BRANCH = "azureml.git.branch"
REPOSITORY = "azureml.git.repository_uri"


def git(job: JobSpec) -> dict[str, Any] | None:
    """The commit, whether files were changed since, the branch and the repository; None if the job says nothing."""
    properties = job.properties
    if not properties.get(COMMIT):
        return None
    dirty = str(properties.get(DIRTY, "")).lower() == "true"
    names = {"commit": COMMIT, "branch": BRANCH, "repository": REPOSITORY}
    return {name: str(properties.get(key) or "") for name, key in names.items()} | {"dirty": dirty}
