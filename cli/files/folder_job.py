"""A job file for a folder of code: what `submit ./folder --command ...` makes, and `--save` writes down."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import typer
import yaml

from ..errors import CliError
from .job_upload import is_remote

SCHEMA = "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json"
IMAGE = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"
PYTHON = "3.11"
# {data} becomes an input, {lr} one that has a value, any other {name} an output; {{x}} and ${x} are left alone.
_NAME = re.compile(r"(?<![\w${])\{([A-Za-z]\w*)\}(?!\})")
Job = dict[str, Any]


def job_of(command: str, parameters: Job, has_data: bool, env: str) -> Job:
    """The job that runs this command in a folder. Raises BadParameter for an environment that can't be read."""
    names = list(dict.fromkeys(_NAME.findall(command)))
    inputs: Job = {"data": {"type": "uri_folder"}} if has_data else {}
    if "data" in names and not has_data:
        raise typer.BadParameter("The command has {data}; say which data with --data.")
    inputs |= parameters
    outputs = {name: {"type": "uri_folder"} for name in names if name not in inputs}
    text = _NAME.sub(lambda m: f"${{{{{'inputs' if m[1] in inputs else 'outputs'}.{m[1]}}}}}", command)
    job: Job = {"$schema": SCHEMA, "type": "command", "code": ".", "command": text, "environment": environment(env)}
    return job | ({"inputs": inputs} if inputs else {}) | ({"outputs": outputs} if outputs else {})


def environment(env: str) -> Any:
    """`pandas,scikit-learn`, a requirements.txt or conda file, or the name of an environment that is registered."""
    if is_remote(env) or env.lower().startswith("azureml"):
        return env
    if env.endswith((".yml", ".yaml")):
        return {"image": IMAGE, "conda_file": env}
    if env.endswith(".txt"):
        try:
            lines = Path(os.environ.get("TRAINYARD_CWD", "."), env).read_text("utf-8").splitlines()
        except OSError as exc:
            raise CliError(f"--env {env} can't be read: {exc.strerror}.") from exc
        packages = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    else:
        packages = [package.strip() for package in env.split(",") if package.strip()]
    dependencies: list[Any] = [f"python={PYTHON}", "pip"]
    return {"image": IMAGE, "conda_file": {"dependencies": [*dependencies, *([{"pip": packages}] if packages else [])]}}


def save(job: Job, folder: Path, file: Path) -> None:
    """Write the job down, so that `submit FILE` runs the same again."""
    code = os.path.relpath(folder.resolve(), file.resolve().parent)
    content = {**job, "code": code if code.startswith(".") else f"./{code}"}
    try:
        file.write_text(yaml.safe_dump(content, sort_keys=False, width=120), "utf-8")
    except OSError as exc:
        raise CliError(f"{file} can't be written: {exc.strerror}.") from exc
