"""Where a job's code came from: properties of the job, under Azure ML's names for them, as every client writes them.

https://learn.microsoft.com/azure/machine-learning/concept-train-model-git-integration
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.jobs.spec import JobSpec


@dataclass(frozen=True)
class Source:
    """A commit. `dirty`: files were changed since then. Text that is '' is not said."""

    commit: str = ""
    branch: str = ""
    repository: str = ""
    dirty: bool = False


def source_of(job: JobSpec) -> Source:
    """What whoever submitted the job said of its code."""

    def said(name: str) -> str:
        return str(job.properties.get(f"azureml.git.{name}") or "")

    return Source(said("commit"), said("branch"), said("repository_uri"), said("dirty").lower() == "true")
