"""What someone gives on the command line: parameters, and what of a drop's folder says how it is to be trained."""

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
    """`epochs=5` as {"epochs": 5}: a value that is a JSON literal is that, all others are text."""
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
    """The name and content of the drop's job file, with the given parameters as its inputs; None for neither.

    Beside an archive it names the archive as the data. Raises CliError for a file that can't be read.
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
    """A file that holds this job file; none where there is none."""
    if job is None:
        yield None
        return
    name, content = job
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, name)
        file.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
        yield file


def with_job_file(items: list[Item], drop: str, file: Path | None) -> list[Item]:
    """The files to upload with this job file among them, instead of the folder's own."""
    if file is None:
        return items
    blob = f"{drop}/{file.name}"
    return [*(item for item in items if item.blob != blob), Item(file, blob, file.stat().st_size)]


def check_route(api: Api, route: str, job: dict[str, Any] | None) -> bool:
    """Whether drops of this route become runs. Raises the API's words if one with this job file can't."""
    return bool(api.post("routes", route, "check", body={"job": job}, repeats=True).get("trains", True))
