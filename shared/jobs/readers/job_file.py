"""The job file of a drop: its owner's settings over the route's template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.jobs.data_rule import problem_of
from shared.jobs.problem import Problem
from shared.jobs.readers.azureml import path_of
from shared.kernel.errors import BadInput
from shared.kernel.parsing import Lines, read_json, read_yaml

JOB_FILE_LIMIT = 32 * 1024  # bytes; as JSON in a table row it may grow sixfold


@dataclass(frozen=True)
class JobFile:
    """A parsed job file of a drop.

    It has the document, and the line (from 1) of each key by the key's path, such as `limits.timeout`. `data` declares
    the kind of the drop's data (shared/jobs/data_rule.py); it is a key of the file, and not of the document.
    """

    name: str
    document: dict[str, Any]
    lines: Lines
    data: Mapping[str, Any] = field(default_factory=dict)

    def where(self, path: str) -> str:
        """The place of a key, or of its nearest existing parent: `job.yaml line 7`."""
        parts = path.split(".")
        for length in range(len(parts), 0, -1):
            if line := self.lines.get(".".join(parts[:length])):
                return f"{self.name} line {line}"
        return self.name

    def explain(self, problems: Iterable[Problem]) -> str:
        """Every problem as text, one per line."""
        places = ((path_of(problem.path), problem.message) for problem in problems)
        return "\n".join(f"{self.where(path)}: {path}: {message}" for path, message in places)


def job_file_of(name: str, content: dict[str, Any], lines: Lines) -> JobFile:
    """Return the job file with this content. Raises BrokenJobFile for an unreadable declaration of data."""
    if "data" not in content:
        return JobFile(name, content, lines)
    document = {key: value for key, value in content.items() if key != "data"}
    job_file = JobFile(name, document, lines, content["data"] or {})
    if job_file.data and (said := problem_of(job_file.data, of_uploader=True)):
        raise BrokenJobFile(f"{job_file.where('data')}: data: {said}.")
    return job_file


class BrokenJobFile(BadInput):
    """A job file that can't be read. The message gives the place and the reason."""


def read_job_file(name: str, data: bytes) -> JobFile:
    """Parse a job file, as YAML or JSON. Raises BrokenJobFile with the line.

    JSON is parsed as YAML, which gives line numbers and accepts trailing commas. YAML forbids tabs, so a JSON file with
    tabs is parsed as JSON, without line numbers.
    """
    try:
        content, lines = read_yaml(data, name)
    except BadInput as exc:
        if not (name.endswith(".json") and b"\t" in data):
            raise BrokenJobFile(str(exc)) from exc
        content, lines = _tabbed(name, data)
    if not isinstance(content, dict):
        raise BrokenJobFile(
            f"{name} line 1: expected the keys of an Azure ML command job, found {type(content).__name__}."
        )
    return job_file_of(name, content, lines)


def _tabbed(name: str, data: bytes) -> tuple[Any, Lines]:
    try:
        return read_json(data.removeprefix(b"\xef\xbb\xbf"), name), {}
    except BadInput as exc:
        raise BrokenJobFile(str(exc)) from exc
