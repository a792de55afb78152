"""Outputs that someone wrote into a job: where they go, and what is refused; and what is no command job. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from shared.jobs.job import DROPS_DATASTORE, OUTPUT_DATASTORE, Job, mapping, output_path
from shared.jobs.model import Problem
from shared.kernel.names import NAME, path_problem

_CHOSEN = re.compile(
    r"azureml://(?:subscriptions/[\w.-]+/resource[gG]roups/[\w.()-]+/(?:providers/[\w.]+/)?workspaces/[\w.-]+/)?"
    r"datastores/([\w-]+)/paths/(.+)"
)
_OURS = "trainyard/"  # of the workspace's own container: where runs and uploads have their folders
_OTHER_KINDS = {
    "sweep": "Submit a command job for each set of parameters, with -p NAME=VALUE.",
    "pipeline": "Submit each of its steps as a command job; azureml://jobs/<run>/outputs/<name> hands on its output.",
    "automl": "Submit a command job that trains, or a trainer.",
    "parallel": "Submit a command job with resources.instance_count.",
    "spark": "Submit a command job; there are no Spark clusters.",
}


def places_of(run: str, outputs: Job) -> Job:
    """Every output with its place: the path that it names, else a folder (or a file) of the run's own."""
    return {name: _placed(run, name, mapping(value)) for name, value in outputs.items()}


def _placed(run: str, name: str, output: Job) -> Job:
    path = output.get("path")
    if not isinstance(path, str):
        return {**output, "path": output_path(run, name, output.get("type") == "uri_file")}
    known = {"name": run, "output_name": name, "default_datastore": OUTPUT_DATASTORE}
    return {**output, "path": re.sub(r"\$\{\{\s*(\w+)\s*\}\}", lambda m: known.get(m[1], m[0]), path)}


def unfit_output(name: str, value: Any) -> Iterator[Problem]:
    """What nobody may write of an output."""
    if not NAME.fullmatch(name):
        yield Problem(f"outputs.{name}", "use letters, digits, dashes and underscores in its name.")
    if value is not None and not isinstance(value, dict):
        yield Problem(f"outputs.{name}", f"must be a mapping, it is a {type(value).__name__}.")
    if isinstance(value, dict) and value.get("path") is not None and (fault := _unfit_path(name, value)):
        yield Problem(f"outputs.{name}.path", fault)


def _unfit_path(name: str, value: Mapping[str, Any]) -> str | None:
    """Why an output can't lie where it says: in a datastore, but not where drops or other runs have theirs."""
    path = _placed("run", name, dict(value))["path"]
    found = _CHOSEN.fullmatch(path) if isinstance(path, str) else None
    if found is None or "${{" in path:
        return "must lie in a datastore: azureml://datastores/<datastore>/paths/<folder>/. Or leave it out."
    if fault := path_problem(found[2].strip("/")):
        return fault
    if found[1] == DROPS_DATASTORE:
        return "lies among the drops, where each file may start a run. Choose another datastore, or leave it out."
    if found[1] == OUTPUT_DATASTORE and f"{found[2]}/".startswith(_OURS):
        return "lies where other runs have theirs. Choose another folder, or leave it out."
    return None


def unfit_kind(written: Job) -> Iterator[Problem]:
    """What is another kind of job, by its type or by the keys that only such a job has."""
    kind = written.get("type") or ("pipeline" if "jobs" in written else "sweep" if "search_space" in written else None)
    if kind not in (None, "command"):
        instead = _OTHER_KINDS.get(str(kind), "")
        yield Problem("type", f"is {str(kind)[:40]!r}; only command jobs are run. {instead}".rstrip())
