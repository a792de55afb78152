"""The origin of a job's code, in the properties that every Azure ML client writes.

https://learn.microsoft.com/azure/machine-learning/concept-train-model-git-integration
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.jobs.spec import JobSpec


@dataclass(frozen=True)
class Commit:
    """A commit. `dirty`: files were changed after the commit. Empty texts are unknown."""

    commit: str = ""
    branch: str = ""
    repository: str = ""
    dirty: bool = False


def source_of(job: JobSpec) -> Commit:
    """The origin of the job's code, as reported by the submitting client."""

    def said(name: str) -> str:
        return str(job.properties.get(f"azureml.git.{name}") or "")

    return Commit(said("commit"), said("branch"), said("repository_uri"), said("dirty").lower() == "true")
