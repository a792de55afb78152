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
from shared.jobs.spec import FILE, LEFT_OUTPUT
from shared.runs.model import Run
from shared.runs.progress.workloads import workload

REST = "*"
LOGS, OUTPUTS = "user_logs/", "outputs/"
NOT_MLFLOW = (LOGS, OUTPUTS, "system_logs/", "azureml-logs/", "logs/azureml/")


@dataclass(frozen=True)
class Output:
    """Something that a job wrote, or may have written.

    `path` is where it lies, or for logs and ./outputs '' with the `job` and the `part` of its own folder. `folder` is
    where it goes in the archive, '' if it is left where it is. The part REST is what is in no other part, but for
    what Azure ML itself writes beside a job's files.
    """

    name: str
    folder: str
    path: Where | Pattern = ""
    is_file: bool = False
    job: str = ""
    part: str = ""
    asset: str = ""  # the name, or name:version, under which it is registered

    def takes(self, name: str) -> bool:
        """Whether a file of the job's own folder is of this part."""
        return not name.startswith(NOT_MLFLOW) if self.part == REST else name.startswith(self.part)

    @property
    def root(self) -> str:
        """The part's folder in the job's own."""
        return "" if self.part == REST else self.part


def archive_folder(run: Run) -> str:
    """The archive's folder in the output container."""
    return f"{run.asked.experiment}/{run.name}"


def outputs(run: Run) -> Iterator[Output]:
    """All outputs to be archived or reported, in the order of the manifest."""
    how = workload(run)
    for job in how.jobs(run).values():  # one that was never submitted has no logs
        folder = how.job_folder(run, job)
        yield Output("logs", f"logs/{folder}", job=job, part=LOGS)
        yield Output("outputs", f"outputs/{folder}", job=job, part=OUTPUTS)
        yield Output("mlflow", f"mlflow/{folder}", job=job, part=REST)
    declared = run.asked.request.outputs
    for name, output in declared.items():
        folder = "" if name == LEFT_OUTPUT else _folder(name, "models" in declared)
        asset = ":".join(part for part in (output.asset, output.asset_version) if part)
        yield Output(name, folder, output.path, output.kind == FILE, asset=asset)


def _folder(name: str, has_models: bool) -> str:
    if name in ("models", "metrics"):
        return f"{name}/"
    return "models/" if name == "model" and not has_models else f"named-outputs/{name}/"
