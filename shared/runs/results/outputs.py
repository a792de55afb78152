"""Where in the archive everything goes that a run's jobs wrote.

    models/...               the job's output `models` (or `model`, if there is only that)
    metrics/...              its output `metrics`
    named-outputs/<name>/    its other outputs
    outputs/...              what it wrote to ./outputs; of an elastic run in a folder for each of its jobs
    mlflow/...               what it saved through MLflow, files and models; of an elastic run in such folders too
    logs/...                 every rank's log; of an elastic run in a folder for each of its jobs

No two of them can meet, whatever the outputs are called.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shared.jobs.location import Pattern, Where
from shared.jobs.model import Part
from shared.jobs.spec import FILE, LEFT_OUTPUT
from shared.runs.model import Run
from shared.runs.progress.workloads import workload


@dataclass(frozen=True)
class Output:
    """Something that a job wrote, or may have written.

    `path` is where it lies. Of what is in the job's own folder, `path` is '', and `job` and `part` say where it lies.
    `folder` is where it goes in the archive, '' if it is left where it is.
    """

    name: str
    folder: str
    path: Where | Pattern = ""
    is_file: bool = False
    job: str = ""
    part: Part | None = None
    asset: str = ""  # the name, or name:version, under which it is registered


def archive_folder(run: Run) -> str:
    """The archive's folder in the output container."""
    return f"{run.asked.experiment}/{run.name}"


def outputs(run: Run) -> Iterator[Output]:
    """All outputs to be archived or reported, in the order of the manifest."""
    how = workload(run)
    for job in how.jobs(run).values():  # one that was never submitted has no logs
        folder = how.job_folder(run, job)
        yield Output("logs", f"logs/{folder}", job=job, part=Part.LOGS)
        yield Output("outputs", f"outputs/{folder}", job=job, part=Part.OUTPUTS)
        yield Output("mlflow", f"mlflow/{folder}", job=job, part=Part.REST)
    declared = run.asked.request.outputs
    for name, output in declared.items():
        folder = "" if name == LEFT_OUTPUT else _folder(name, "models" in declared)
        asset = ":".join(part for part in (output.asset, output.asset_version) if part)
        yield Output(name, folder, output.path, output.kind == FILE, asset=asset)


def _folder(name: str, has_models: bool) -> str:
    if name in ("models", "metrics"):
        return f"{name}/"
    return "models/" if name == "model" and not has_models else f"named-outputs/{name}/"
