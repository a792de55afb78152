"""Upload of the local files that the steps of a pipeline or the trial of a sweep name. Local components are read
into the job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..api.client import Api
from ..errors import CliError
from .job_form import is_remote
from .job_upload import Job, Say, local, read_yaml, with_everything_sent

DEEPEST = 10  # pipelines within pipelines
_LOCAL = ("file:", "./", "../")


def with_job_sent(api: Api, job: Job, base: Path, say: Say) -> Job:
    """Return a job of any kind with the job's local files uploaded. Raises CliError as both functions do."""
    send = with_components_sent if {"jobs", "trial", "component"} & set(job) else with_everything_sent
    return send(api, job, base, say)


def with_components_sent(api: Api, job: Job, base: Path, say: Say) -> Job:
    """Return the pipeline or sweep with its components read in, and with their code, environments and data uploaded.

    Paths in a component are relative to the component's file. Raises CliError for a path that does not exist.
    """
    sending = _Sending(api, say)
    made = sending.job(job, base, 0)
    properties = {**sending.commits, **(made.get("properties") or {})}
    return {**made, "properties": properties} if properties else made


class _Sending:
    def __init__(self, api: Api, say: Say) -> None:
        self._api, self._say = api, say
        self.commits: Job = {}  # the origin of the code, stated on the whole job, because steps can't state it

    def job(self, job: Job, base: Path, depth: int) -> Job:
        """Return a pipeline, sweep, component or step with the local files uploaded. Raises CliError for more than
        DEEPEST nested pipelines.
        """
        if depth > DEEPEST:
            raise CliError(f"The pipeline has more than {DEEPEST} levels of pipelines within pipelines.")
        made = with_everything_sent(self._api, job, base, self._say)
        self.commits |= made.get("properties") or {}
        made = {**made, "properties": job["properties"]} if "properties" in job else _without(made, "properties")
        for key in ("trial", "component", "task"):
            if isinstance(named := made.get(key), str) and _is_file(named):
                file = local(base, named)
                made[key] = self.job(read_yaml(file, key), file.parent, depth + 1)
            elif isinstance(named, dict):
                made[key] = self.job(named, base, depth + 1)
        if isinstance(steps := made.get("jobs"), dict):
            made["jobs"] = {name: self._step(step, base, depth) for name, step in steps.items()}
        return made

    def _step(self, step: Any, base: Path, depth: int) -> Any:
        return self.job(step, base, depth) if isinstance(step, dict) else step


def _without(job: Job, key: str) -> Job:
    return {name: value for name, value in job.items() if name != key}


def _is_file(named: str) -> bool:
    return not is_remote(named) and (named.startswith(_LOCAL) or named.endswith((".yml", ".yaml")))
