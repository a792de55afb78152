"""The mapping of Azure ML's job folders to Trainyard's parts and ranks."""

import pytest

from shared.adapters.azureml.job_folder import job_folder, rank_of
from shared.jobs.model import JobFolderPart
from shared.kernel.storage import Place

FOLDER = job_folder("azureml", "run-0")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("user_logs/std_log.txt", JobFolderPart.LOGS),
        ("outputs/a.csv", JobFolderPart.OUTPUTS),
        ("model/MLmodel", JobFolderPart.REST),
        ("logs/mine.txt", JobFolderPart.REST),
        ("system_logs/lifecycler.log", None),
        ("azureml-logs/70_driver_log.txt", None),
        ("logs/azureml/job.log", None),
    ],
)
def test_each_file_is_of_one_part(name: str, part: JobFolderPart | None) -> None:
    """Logs, outputs and MLflow's files belong to one part each; Azure ML's own files belong to none."""
    assert FOLDER.part_of(name) is part


def test_a_part_has_a_folder() -> None:
    """Each part is in its own folder; any other part is searched in the whole folder."""
    assert FOLDER.inside(JobFolderPart.LOGS) == Place("azureml", "ExperimentRun/dcid.run-0/user_logs/")
    assert FOLDER.inside(JobFolderPart.OUTPUTS) == Place("azureml", "ExperimentRun/dcid.run-0/outputs/")
    assert FOLDER.inside(JobFolderPart.REST) == FOLDER.place


@pytest.mark.parametrize(
    ("log", "rank"),
    [("std_log.txt", 0), ("std_log_process_0.txt", 0), ("std_log_process_12.txt", 12), ("other.txt", None)],
)
def test_a_log_is_of_a_rank(log: str, rank: int | None) -> None:
    """A log's rank is the number in its name; the log of a single process has no rank."""
    assert rank_of(log) == rank
