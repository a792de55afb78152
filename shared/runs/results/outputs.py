"""The layout of a run's archive: the place of everything that the run's jobs wrote.

    models/...               the job's output `models` (or `model`, if `models` is not declared)
    metrics/...              the output `metrics`
    named-outputs/<name>/    the other outputs
    outputs/...              files in ./outputs; for an elastic run, in one folder per job
    mlflow/...               files and models saved through MLflow; for an elastic run, in one folder per job
    logs/...                 every rank's log; for an elastic run, in one folder per job

These folders never collide, whatever the names of the outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shared.jobs.location import Pattern, Where
from shared.jobs.model import JobFolderPart
from shared.jobs.spec import FILE, LEFT_OUTPUT
from shared.runs.model import Run
from shared.runs.progress.workloads import workload


@dataclass(frozen=True)
class RunOutput:
    """A written or expected result of a job.

    `path` is the result's place. For a result in the job's own folder, `path` is '', and `job` and `part` are its
    place. `folder` is the result's folder in the archive, '' if the result is not copied.
    """

    name: str
    folder: str
    path: Where | Pattern = ""
    is_file: bool = False
    job: str = ""
    part: JobFolderPart | None = None
    asset: str = ""  # the name, or name:version, of the registered asset


def archive_folder(run: Run) -> str:
    """The run's archive folder in the output container."""
    return f"{run.asked.experiment}/{run.name}"


def outputs(run: Run) -> Iterator[RunOutput]:
    """Every output to archive or report, in the order of the manifest."""
    how = workload(run)
    for job in how.jobs(run).values():  # a job that was never submitted has no logs
        folder = how.job_folder(run, job)
        yield RunOutput("logs", f"logs/{folder}", job=job, part=JobFolderPart.LOGS)
        yield RunOutput("outputs", f"outputs/{folder}", job=job, part=JobFolderPart.OUTPUTS)
        yield RunOutput("mlflow", f"mlflow/{folder}", job=job, part=JobFolderPart.REST)
    declared = run.asked.request.outputs
    for name, output in declared.items():
        folder = "" if name == LEFT_OUTPUT else _folder(name, "models" in declared)
        asset = ":".join(part for part in (output.asset, output.asset_version) if part)
        yield RunOutput(name, folder, output.path, output.kind == FILE, asset=asset)


def _folder(name: str, has_models: bool) -> str:
    if name in ("models", "metrics"):
        return f"{name}/"
    return "models/" if name == "model" and not has_models else f"named-outputs/{name}/"
