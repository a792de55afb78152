"""Azure ML's side of the job tests: makes jobs run and end, for the fake and for the real service."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from emulators.process import wait_for
from shared.adapters.azureml.document import document
from shared.adapters.azureml.jobs import AzureMLJobs
from shared.jobs.model import ENDED, JobState, JobStatus
from shared.jobs.ports import Jobs
from shared.jobs.readers.azureml import SCHEMA, read_job
from shared.jobs.spec import JobSpec
from tests.fakes.ports import FakeJobs

WAITING = """
import pathlib, sys, time
gate = pathlib.Path(sys.argv[1])
deadline = time.monotonic() + 60
while not gate.exists() and time.monotonic() < deadline:
    time.sleep(0.02)
code = int(gate.read_text() or "9")
print("the end of the story", file=sys.stderr)
sys.exit(code)
"""


class Side(Protocol):
    """Azure ML's side of a test: makes jobs run and end."""

    @property
    def jobs(self) -> Jobs: ...

    def job(self, name: str) -> JobSpec: ...

    def run(self, name: str) -> None: ...

    def end(self, name: str, exit_code: int = 0) -> None: ...

    def until(self, name: str, *states: JobState) -> JobStatus: ...

    def run_steps(self, name: str) -> JobStatus: ...


def pipeline_of(name: str) -> JobSpec:
    """A step followed by a nested pipeline, in which one step fails and another depends on the failed one."""

    def step(command: str, needs: str = "") -> dict[str, Any]:
        said = {"type": "command", "command": command, "environment": "azureml:AzureML-local:1"}
        data = {"data": {"type": "uri_folder", "path": needs}} if needs else {}
        return {**said, "inputs": data, "outputs": {"out": {"type": "uri_folder"}}}

    inner = {"train": step("exit 3"), "test": step("echo", "${{parent.jobs.train.outputs.out}}")}
    component = {"type": "pipeline", "name": "inner", "version": "1", "jobs": inner}
    jobs = {"prepare": step("echo 1 > ${{outputs.out}}/1"), "inner": {"type": "pipeline", "component": component}}
    keys = ("$schema", "name", "display_name", "compute", "experiment_name", "tags")
    return read_job({**{key: job_of(name, "")[key] for key in keys}, "type": "pipeline", "jobs": jobs})


def job_of(name: str, command: str) -> dict[str, Any]:
    return {
        "$schema": SCHEMA,
        "type": "command",
        "name": name,
        "display_name": f"drops/{name}",
        "command": command,
        "environment": "azureml:AzureML-local:1",
        "compute": "azureml:cpu-cluster",
        "experiment_name": "digits",
        "limits": {"timeout": 60},
        "resources": {"instance_count": 1},
        "inputs": {"data": {"type": "uri_folder", "path": "azureml://datastores/drops/paths/a/"}, "epochs": 2},
        "outputs": {"models": {"type": "uri_folder", "path": f"azureml://datastores/workspaceblobstore/paths/{name}/"}},
        "tags": {"trainyard.drop": name},
    }


def with_keys(job: JobSpec, **keys: Any) -> JobSpec:
    """The job with some keys of Azure ML's schema replaced."""
    return read_job({**document(job), **keys})


@dataclass
class FakeSide:
    jobs: FakeJobs

    def job(self, name: str) -> JobSpec:
        return read_job(job_of(name, "train"))

    def run(self, name: str) -> None:
        self.jobs.set(name, "Running")

    def end(self, name: str, exit_code: int = 0) -> None:
        self.jobs.set(
            name, "Failed" if exit_code else "Completed", f"exited with status code {exit_code}" if exit_code else ""
        )

    def until(self, name: str, *states: JobState) -> JobStatus:
        status = self.jobs.status(name)
        assert status is not None
        assert status.state in states
        return status

    def run_steps(self, name: str) -> JobStatus:
        for step, raw in (("prepare", "Completed"), ("inner", "Failed"), ("inner.train", "Failed")):
            self.jobs.set_step(name, step, raw, "exited with status code 3" if raw == "Failed" else "")
        self.end(name, exit_code=3)
        return self.until(name, JobState.FAILED)


@dataclass
class RealSide:
    jobs: AzureMLJobs
    folder: Path

    def job(self, name: str) -> JobSpec:
        script = self.folder / "waiting.py"
        script.write_text(WAITING)
        return read_job(job_of(name, f"python {script} {self.folder / name}"))

    def run(self, name: str) -> None:
        self.until(name, JobState.RUNNING)

    def end(self, name: str, exit_code: int = 0) -> None:
        partial = self.folder / f"{name}.partial"
        partial.write_text(str(exit_code))
        partial.rename(self.folder / name)

    def until(self, name: str, *states: JobState) -> JobStatus:
        def reached() -> JobStatus | None:
            status = self.jobs.status(name)
            assert status is not None
            assert status.state in states or status.state not in ENDED, status
            return status if status.state in states else None

        found: JobStatus = wait_for(reached, 60, f"{name} to be {' or '.join(states)}", every=0.1)
        return found

    def run_steps(self, name: str) -> JobStatus:
        return self.until(name, JobState.FAILED)


def snapshot(tmp_path: Path) -> Path:
    folder = tmp_path / "trainers"
    for name, text in {
        "train.py": "import lib.helper; print('helper says', lib.helper.WORD)",
        "lib/helper.py": "WORD = 'übung'",
        "__pycache__/x.pyc": "no",
        ".git/config": "no",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


def environment(tmp_path: Path) -> Path:
    (tmp_path / "conda.yaml").write_text("dependencies: [python=3.11]\n")
    file = tmp_path / "environment.yaml"
    file.write_text(
        "name: trainyard\nimage: mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04\nconda_file: conda.yaml\n"
    )
    return file
