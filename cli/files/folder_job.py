"""The job for a folder of code, which `submit ./folder --command ...` makes and `--save` writes to a file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import typer
import yaml

from ..errors import CliError
from .job_form import SCHEMA, is_remote, place, reference, registered

DISTRIBUTIONS = ("pytorch", "mpi", "tensorflow", "ray")
COUNTED = DISTRIBUTIONS[:3]  # distributions that start several processes of the command on a node
# {data} becomes an input, {lr} an input with a value, any other {name} an output; {{x}} and ${x} stay unchanged.
_NAME = re.compile(r"(?<![\w${])\{([A-Za-z]\w*)\}(?!\})")
_HALF_NAME = re.compile(r"(?<![\w${])\{[A-Za-z]\w*(?=[^}]*$)")  # a brace that is never closed
# A run's tags, as the API takes them; a job's may have any name.
TAG = re.compile(r"(?!trainyard\.)[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
TAG_RULE = "use up to 100 letters, digits, dots, dashes and underscores, and do not begin with 'trainyard.'"
# The files of Python projects, and what tells them from the settings of tools.
PROJECTS = {
    "pyproject.toml": re.compile(r"^\[(project|build-system|tool\.poetry)\b", re.MULTILINE),
    "setup.cfg": re.compile(r"^\[(metadata|options)\]", re.MULTILINE),
    "setup.py": re.compile(r"\bsetup\("),
}
MOST_TAGS, LONGEST_TAG = 15, 256
Job = dict[str, Any]


def job_of(command: str, parameters: Job, has_data: bool, environment: Any, spread: Job | None = None) -> Job:
    """Return the job that runs this command in a folder. Raises BadParameter if the command has {data} but no data
    is given."""
    if half := _HALF_NAME.search(command):
        raise typer.BadParameter(f"--command has {half[0]!r} without a closing brace; write {half[0]}}}.")
    names = list(dict.fromkeys(_NAME.findall(command)))
    inputs: Job = {"data": {"type": "uri_folder"}} if has_data else {}
    if "data" in names and not has_data:
        raise typer.BadParameter("The command has {data}; name the data with --data.")
    inputs |= parameters
    outputs = {name: {"type": "uri_folder"} for name in names if name not in inputs}
    text = _NAME.sub(lambda m: reference("inputs" if m[1] in inputs else "outputs", m[1]), command)
    job: Job = {"$schema": SCHEMA, "type": "command", "code": ".", "command": text, "environment": environment}
    parts = {"inputs": inputs, "outputs": outputs, "distribution": spread}
    return job | {name: part for name, part in parts.items() if part}


def with_own_packages(job: Job, folder: Path) -> Job:
    """Return the job with the packages of the folder on Python's path, if the folder is a Python project. The READMEs
    of such folders begin with `pip install -e .`, and a job has the files only."""
    if not any((folder / name).is_file() and sign.search(_text(folder / name)) for name, sign in PROJECTS.items()):
        return job
    has_src = (folder / "src").is_dir() and not (folder / "src" / "__init__.py").exists()
    return {**job, "environment_variables": {"PYTHONPATH": ".:src" if has_src else "."}}


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""


def distribution(kind: str, processes: int | None, nodes: int) -> Job:
    """Return the `distribution` of a job on this number of nodes; empty for an empty `kind`. Raises BadParameter
    for an unknown kind, or for processes that the kind does not count."""
    if kind and kind not in DISTRIBUTIONS:
        raise typer.BadParameter(f"--distribution is {kind!r}; choose {', '.join(DISTRIBUTIONS)}.")
    if processes and kind not in COUNTED:
        raise typer.BadParameter(f"--processes needs --distribution {', '.join(COUNTED)}.")
    if kind == "tensorflow":
        return {"type": kind, "worker_count": nodes * (processes or 1)}
    if kind in COUNTED:
        return {"type": kind, "process_count_per_instance": processes or 1}
    return {"type": kind} if kind else {}


def save(job: Job, request: Job, folder: Path, file: Path) -> None:
    """Write the job and the settings of the request to a job file: `submit FILE` then makes an equal run. Raises
    CliError for an unwritable file.
    """
    content = with_request(job, request)
    content["code"] = _seen_from(file, folder)
    conda = content["environment"].get("conda_file") if isinstance(content["environment"], dict) else None
    if isinstance(conda, str):
        content["environment"] = {**content["environment"], "conda_file": _seen_from(file, folder / conda)}
    try:
        file.write_text(yaml.safe_dump(content, sort_keys=False, width=120), "utf-8")
    except OSError as exc:
        raise CliError(f"{file} can't be written: {exc.strerror}.") from exc


def with_request(job: Job, request: Job) -> Job:
    """Return the job with the request's data, nodes, cluster, experiment, timeout, sweep and tags, in the fields of a
    job file.
    """
    parts: Job = {}
    if data := request.get("data"):
        path = data if is_remote(data) else place(data)
        parts["inputs"] = {**job.get("inputs", {}), "data": {"type": "uri_folder", "path": path}}
    if cluster := request.get("cluster"):
        parts["compute"] = registered(cluster)
    if isinstance(nodes := request.get("nodes"), int):
        parts["resources"] = {"instance_count": nodes}
    if timeout := request.get("timeout_seconds"):
        parts["limits"] = {"timeout": timeout}
    if experiment := request.get("experiment"):
        parts["experiment_name"] = experiment
    if sweep := request.get("sweep"):
        parts["sweep"] = sweep
    return {**job, **parts, **({"tags": request["tags"]} if request.get("tags") else {})}


def tags_of(job: Job) -> dict[str, str]:
    """Return the tags of a job file for the run, to find the run by them."""
    tags = job.get("tags")
    texts = {str(name): str(value) for name, value in (tags if isinstance(tags, dict) else {}).items()}
    return dict([pair for pair in texts.items() if TAG.fullmatch(pair[0]) and len(pair[1]) <= LONGEST_TAG][:MOST_TAGS])


def _seen_from(file: Path, target: Path) -> str:
    path = Path(os.path.relpath(target.resolve(), file.resolve().parent)).as_posix()
    return path if path.startswith(".") else f"./{path}"
