"""Azure ML's name for the folder of a job, and the folder's contents.

https://learn.microsoft.com/azure/machine-learning/how-to-track-monitor-analyze-runs
"""

from __future__ import annotations

import re

from shared.jobs.model import JobFolder
from shared.kernel.storage import Place

_LOGS, _OUTPUTS = "user_logs/", "outputs/"
_OWN = ("system_logs/", "azureml-logs/", "logs/azureml/")
_RANK = re.compile(r"std_log(?:_process_(\d+))?\.txt")  # the log of a single-process job has no number


def job_folder(container: str, name: str) -> JobFolder:
    """Return the job's folder in the container of the workspace's artifacts."""
    return JobFolder(Place(container, f"ExperimentRun/dcid.{name}/"), _LOGS, _OUTPUTS, _OWN)


def rank_of(log: str) -> int | None:
    """Return the rank of a log file; None for other files."""
    match = _RANK.fullmatch(log)
    return int(match[1] or 0) if match else None
