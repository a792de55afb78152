"""Parameters from the command line, and the job file with which a drop's folder is trained."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from ..api.client import Api
from . import job_file as job_files
from .drop_upload import JOB_FILES, Item


def parameters(texts: list[str] | None) -> dict[str, Any]:
    """Parse NAME=VALUE parameters: `epochs=5` becomes {"epochs": 5}. A value that is a JSON number or boolean is
    parsed, any other value is text. Raises BadParameter for text without NAME and =.
    """
    return dict(_parameter(text) for text in texts or [])


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"-p takes NAME=VALUE, such as epochs=5; {text!r} has no value.")
    try:
        literal = json.loads(value)
    except ValueError:
        return name, value
    number = isinstance(literal, int | bool) or (isinstance(literal, float) and math.isfinite(literal))
    return name, literal if number else value


def job_file(source: Path, parameters: dict[str, Any], nodes: int = 0) -> tuple[str, dict[str, Any]] | None:
    """Return the name and content of the drop's job file, with the given parameters as inputs and the given number of
    nodes. Returns None if the folder has no job file and neither is given.

    The job file of an archive names the archive as its data. Raises CliError for a job file that can't be read.
    """
    name_of_file = next((name for name in JOB_FILES if (source / name).is_file()), "") if source.is_dir() else ""
    content = job_files.load(source / name_of_file) if name_of_file else {}
    if not parameters and not nodes:
        return (name_of_file, content) if name_of_file else None
    own = {"data": {"type": "uri_file", "path": source.name}} if source.is_file() else _mapping(content.get("inputs"))
    content = {**content, "inputs": {**own, **parameters}}
    if nodes:
        content["resources"] = {**_mapping(content.get("resources")), "instance_count": nodes}
    return name_of_file or "job.json", content


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


@contextmanager
def written(job: tuple[str, dict[str, Any]] | None) -> Iterator[Path | None]:
    """Yield a temporary file of this job file, or None without a job file."""
    if job is None:
        yield None
        return
    name, content = job
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, name)
        file.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
        yield file


def with_job_file(items: list[Item], drop: str, file: Path | None) -> list[Item]:
    """Return the items to upload with this job file in place of the folder's own."""
    if file is None:
        return items
    blob = f"{drop}/{file.name}"
    return [*(item for item in items if item.blob != blob), Item(file, blob, file.stat().st_size)]


def check_route(api: Api, route: str, job: dict[str, Any] | None) -> dict[str, Any]:
    """Return the rules for a drop of this route: `trains`, whether it becomes a run, and `data`, how its data is
    checked. Raises CliError, with the API's message, if a drop with this job file can't become a run.
    """
    return dict(api.post("routes", route, "check", body={"job": job}, repeats=True))
