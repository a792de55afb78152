"""Outputs that someone wrote into a job: where they go, and what is refused; and what is no command job. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from shared.jobs.model import Problem
from shared.jobs.spec import COMMAND, DROPS_DATASTORE, FILE, OUTPUT_DATASTORE, JobSpec, Output, output_path
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
    "parallel": "Submit a command job on several nodes.",
    "spark": "Submit a command job; there are no Spark clusters.",
}


def places_of(run: str, outputs: Mapping[str, Output]) -> dict[str, Output]:
    """Every output with its place: the path that it names, else a folder (or a file) of the run's own."""
    return {name: _placed(run, name, output) for name, output in outputs.items()}


def _placed(run: str, name: str, output: Output) -> Output:
    if not output.path:
        return replace(output, path=output_path(run, name, output.kind == FILE))
    known = {"name": run, "output_name": name, "default_datastore": OUTPUT_DATASTORE}
    return replace(output, path=re.sub(r"\$\{\{\s*(\w+)\s*\}\}", lambda m: known.get(m[1], m[0]), output.path))


def unfit_output(name: str, output: Output) -> Iterator[Problem]:
    """What nobody may write of an output."""
    if not NAME.fullmatch(name):
        yield Problem(f"outputs.{name}", "use letters, digits, dashes and underscores in its name.")
    if output.path and (fault := _unfit_path(name, output)):
        yield Problem(f"outputs.{name}.path", fault)


def _unfit_path(name: str, output: Output) -> str | None:
    """Why an output can't lie where it says: in a datastore, but not where drops or other runs have theirs."""
    path = _placed("run", name, output).path
    chosen = _CHOSEN.fullmatch(path)
    if chosen is None or "${{" in path:
        return "must lie in a datastore: azureml://datastores/<datastore>/paths/<folder>/. Or leave it out."
    if fault := path_problem(chosen[2].strip("/")):
        return fault
    if chosen[1] == DROPS_DATASTORE:
        return "lies among the drops, where each file may start a run. Choose another datastore, or leave it out."
    if chosen[1] == OUTPUT_DATASTORE and f"{chosen[2]}/".startswith(_OURS):
        return "lies where other runs have theirs. Choose another folder, or leave it out."
    return None


def unfit_kind(job: JobSpec) -> Iterator[Problem]:
    """What is another kind of job."""
    if job.kind != COMMAND:
        instead = _OTHER_KINDS.get(job.kind, "")
        yield Problem("kind", f"is {job.kind[:40]!r}; only command jobs are run. {instead}".rstrip())
