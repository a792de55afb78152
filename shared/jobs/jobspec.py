"""From a drop and its route to exactly the job that will be sent. Pure.

`build` makes the request: an Azure ML command job (Microsoft's YAML schema) as a plain dict, with all but the ids of
code and environment. `resolve` fills those in. A job file in the drop is laid over the route's template: its keys
win, inputs, outputs and environment variables are merged by name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from shared.drops.model import SUCCESS_MARKER, DropKey
from shared.jobs.model import Problem
from shared.jobs.routes_file import NAME, Route
from shared.kernel.names import path_problem

DROPS_DATASTORE = "drops"
OUTPUT_DATASTORE = "workspaceblobstore"
JOB_FILE_LIMIT = 32 * 1024  # bytes; as JSON in a table row it may grow sixfold
SCHEMA = "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json"
TRAINERS_ENVIRONMENT = (
    "azureml:trainyard@latest"  # in a template: the environment that trainers/environment.yaml describes
)
MERGED = ("inputs", "outputs", "environment_variables", "tags", "resources", "limits", "distribution")
OURS = ("name", "type", "$schema")  # a job file may repeat them, but does not decide them


@dataclass(frozen=True)
class JobFile:
    """A drop's job file as parsed: its content, and the line (from 1) of each key by its path, `limits.timeout`."""

    name: str
    content: dict[str, Any]
    lines: dict[str, int]

    def where(self, path: str) -> str:
        """The place of a key, or of its nearest parent that the file has: `job.yaml line 7`."""
        parts = path.split(".")
        for length in range(len(parts), 0, -1):
            if line := self.lines.get(".".join(parts[:length])):
                return f"{self.name} line {line}"
        return self.name

    def explain(self, problems: Iterable[Problem]) -> str:
        """All problems as text, one a line."""
        return "\n".join(f"{self.where(p.path)}: {p.path}: {p.message}" for p in problems)


class BrokenJobFile(ValueError):
    """A job file that can't be read. The message says where and why."""


def read_job_file(name: str, data: bytes) -> JobFile:
    """Parse a job file (YAML, or JSON as a part of it). Raises BrokenJobFile with the line.

    Anchors and aliases are refused: a few lines of them expand to gigabytes.
    """
    try:
        text = data.decode("utf-8-sig")
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader)):
            raise BrokenJobFile(f"{name} uses YAML aliases (*name); write the values out.")
        node = yaml.compose(text, yaml.SafeLoader)
        content = yaml.safe_load(text)
    except UnicodeDecodeError as exc:
        raise BrokenJobFile(f"{name} is not UTF-8 text: byte {exc.start} can't be read.") from exc
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise BrokenJobFile(f"{name} line {line}: no valid YAML: {exc.problem}.") from exc
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        raise BrokenJobFile(f"{name} is no valid YAML: {exc}.") from exc
    _check_plain(name, content)
    if not isinstance(content, dict) or not isinstance(node, yaml.MappingNode):
        raise BrokenJobFile(
            f"{name} line 1: expected the keys of an Azure ML command job, found {type(content).__name__}."
        )
    return JobFile(name, {str(key): value for key, value in content.items()}, dict(_lines(node)))


def _check_plain(name: str, content: Any) -> None:
    """Raise BrokenJobFile for what YAML can hold and JSON can't: dates, bytes, infinities."""
    try:
        json.dumps(content, allow_nan=False)
    except (TypeError, ValueError) as exc:
        raise BrokenJobFile(f"{name} holds a value that is neither text nor number: {exc}. Put it in quotes.") from exc


def _lines(node: yaml.MappingNode, prefix: str = "") -> Iterator[tuple[str, int]]:
    for key, value in node.value:
        path = f"{prefix}{key.value}"
        yield path, key.start_mark.line + 1
        if isinstance(value, yaml.MappingNode):
            yield from _lines(value, f"{path}.")


@dataclass(frozen=True)
class JobOrder:
    """What a job is built from."""

    run: str
    drop: DropKey
    single_file: bool
    fingerprint: str
    route: Route
    job_file: JobFile | None = None


def build(order: JobOrder) -> dict[str, Any]:
    """The job, but for the ids of code and environment. The same order gives the same job."""
    overlay = order.job_file.content if order.job_file else {}
    job = _defaults(order)
    base = {**order.route.template, **_template_edge(order)}
    for key, value in {**base, **overlay}.items():
        if key in OURS:
            continue
        merge = key in MERGED and isinstance(value, dict) and isinstance(base.get(key, {}), dict)
        job[key] = {**base.get(key, {}), **value} if merge else value
    if "inputs" in job:
        job["inputs"] = _inputs(order, job["inputs"])
    if "outputs" in job:
        job["outputs"] = own_outputs(order.run, job["outputs"])
    job["tags"] = {**mapping(job.get("tags")), **_tags(order)}
    return job


def _defaults(order: JobOrder) -> dict[str, Any]:
    return {
        "$schema": SCHEMA,
        "type": "command",
        "name": order.run,
        "display_name": str(order.drop),
        "description": f"Trained from drop {order.drop}.",
    }


def _template_edge(order: JobOrder) -> dict[str, Any]:
    """What the route decides over its template, and a job file may decide over the route."""
    route = order.route
    return {
        "experiment_name": route.experiment,
        "compute": f"azureml:{route.cluster}",
        "resources": {**mapping(route.template.get("resources")), "instance_count": route.nodes},
        "limits": {"timeout": int(route.timeout_seconds)},
    }


def _inputs(order: JobOrder, inputs: Any) -> Any:
    """Point the input `data`, and every path that is relative to the drop, at the drop in its datastore."""
    if not isinstance(inputs, dict):
        return inputs
    given = mapping(order.job_file.content.get("inputs")) if order.job_file else {}
    placed = dict(inputs)
    if "data" in placed and not (isinstance(given.get("data"), dict) and "path" in given["data"]):
        kind = "uri_file" if order.single_file else "uri_folder"
        placed["data"] = {**mapping(placed["data"]), "type": kind, "path": _drop_path(order)}
    for name, value in given.items():
        if isinstance(value, dict) and is_relative(value.get("path")):
            placed[name] = {**value, "path": _drop_path(order, value["path"])}
    return placed


def _drop_path(order: JobOrder, below: str = "") -> str:
    root = f"azureml://datastores/{DROPS_DATASTORE}/paths/{order.drop}"
    if order.single_file:
        return root
    parts = [part for part in PurePosixPath(below).parts if part != "."]
    return f"{root}/" + "/".join(parts) + ("/" if parts and below.endswith("/") else "")


def is_relative(path: Any) -> bool:
    return isinstance(path, str) and ":" not in path and not path.startswith("/")


def own_outputs(run: str, outputs: Any) -> Any:
    """Give every named output that has no path of its own a folder of the run's own."""
    if not isinstance(outputs, dict):
        return outputs
    return {name: {"path": output_path(run, str(name)), **mapping(value)} for name, value in outputs.items()}


def output_path(run: str, name: str) -> str:
    return f"azureml://datastores/{OUTPUT_DATASTORE}/paths/trainyard/{run}/{name}/"


def _tags(order: JobOrder) -> dict[str, str]:
    return {
        "trainyard.drop": str(order.drop)[:256],  # Azure ML's limit for a tag's value
        "trainyard.route": order.route.name,
        "trainyard.fingerprint": order.fingerprint,
    }


def mapping(value: Any) -> dict[str, Any]:
    """A copy of the value if it is a mapping, else an empty one."""
    return dict(value) if isinstance(value, dict) else {}


def forbidden(job: dict[str, Any], job_file: JobFile, route: Route) -> list[Problem]:
    """What this job file may not do on this route, whatever Azure ML's schema says."""
    if not route.job_file.allowed:
        return [
            Problem(
                "", f"route {route.name!r} takes no job files. Remove it, and close the drop with {SUCCESS_MARKER}."
            )
        ]
    limits = over_limit(job, route.max_nodes, route.timeout_seconds)
    return [*_forbidden_environment(job_file.content, route), *limits, *unfit(job, job_file.content)]


def over_limit(job: dict[str, Any], most_nodes: int, most_seconds: float) -> Iterator[Problem]:
    """What an administrator bounds, because it is paid for: nodes and seconds."""
    count, timeout = mapping(job.get("resources")).get("instance_count", 1), mapping(job.get("limits")).get("timeout")
    if type(count) is not int or not 1 <= count <= most_nodes:
        yield Problem("resources.instance_count", f"is {count!r}; use a whole number from 1 to {most_nodes}.")
    if type(timeout) is int and not 1 <= timeout <= most_seconds:
        yield Problem("limits.timeout", f"is {timeout}; this route allows 1 to {most_seconds:g} seconds.")


def _forbidden_environment(content: dict[str, Any], route: Route) -> Iterator[Problem]:
    environments = route.job_file.environments
    if environments is not None and "environment" in content and content["environment"] not in environments:
        yield Problem("environment", f"choose one of {', '.join(environments) or 'none'} on this route.")


def unfit(job: dict[str, Any], content: dict[str, Any]) -> Iterator[Problem]:
    """What nobody may put into a job: files of this machine, outputs elsewhere, names that break a path or a filter.

    `content` is what someone wrote, `job` what was built from it.
    """
    yield from _unfit_values(job, content)
    yield from _unfit_paths(content)


def _unfit_values(job: dict[str, Any], content: dict[str, Any]) -> Iterator[Problem]:
    if content.get("type", "command") != "command":
        yield Problem("type", f"is {content['type']!r}; only command jobs are run.")
    if "code" in content and not str(content["code"]).startswith("azureml:"):
        yield Problem("code", "must be a registered asset, azureml:<name>:<version>; leave it out for the trainers.")
    for key, name in (("compute", cluster(job)), ("experiment_name", str(job.get("experiment_name")))):
        if not NAME.fullmatch(name):
            yield Problem(key, f"is {name[:80]!r}; use letters, digits, dashes and underscores.")


def _unfit_paths(content: dict[str, Any]) -> Iterator[Problem]:
    for name, value in mapping(content.get("inputs")).items():
        path = value.get("path") if isinstance(value, dict) else None
        if isinstance(path, str) and (problem := _path_fault(path)):
            yield Problem(f"inputs.{name}.path", problem)
    for name, value in mapping(content.get("outputs")).items():
        if isinstance(value, dict) and "path" in value:
            yield Problem(f"outputs.{name}.path", "can't be chosen; every run has a folder of its own. Leave it out.")
        if not NAME.fullmatch(str(name)):
            yield Problem(f"outputs.{name}", "use letters, digits, dashes and underscores in its name.")


def _path_fault(path: str) -> str | None:
    if path.startswith(("/", "file:")):
        return f"{path!r} is on your machine; use a path inside the drop, or azureml:..."
    below = path.removeprefix("./").strip("/")
    return path_problem(below) if is_relative(path) and below else None


def nodes(job: dict[str, Any]) -> int:
    """How many nodes the job takes."""
    count = mapping(job.get("resources")).get("instance_count", 1)
    return count if isinstance(count, int) else 1


def cluster(job: dict[str, Any]) -> str:
    return str(job.get("compute", "")).removeprefix("azureml:")


def resolve(job: dict[str, Any], code: str | None, environment: str | None, code_digest: str) -> dict[str, Any]:
    """The job with the ids filled in: code where it names none, environment where it names the trainers' own."""
    resolved = dict(job)
    if code is not None and not str(job.get("code", "")).startswith("azureml:"):
        resolved["code"] = code
        resolved["tags"] = {**mapping(job.get("tags")), "trainyard.code": code_digest}
    if environment is not None and uses_own_environment(job):
        resolved["environment"] = environment
    return resolved


def uses_own_code(job: dict[str, Any]) -> bool:
    """Whether the job runs the trainers/ snapshot: its code is a folder, not a registered asset."""
    return "code" in job and not str(job["code"]).startswith("azureml:")


def uses_own_environment(job: dict[str, Any]) -> bool:
    return job.get("environment") == TRAINERS_ENVIRONMENT


def digest_files(folder: Path) -> str:
    """A hash over the names and contents of the snapshot's files: the code asset's version."""
    digest = hashlib.sha256()
    for file in snapshot_files(folder):
        digest.update(f"{file.relative_to(folder).as_posix()}\0{file.stat().st_size}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def digest_environment(trainers: Path) -> str:
    """A hash over the files that describe the nodes' environment."""
    digest = hashlib.sha256()
    for name in ("environment.yaml", "conda.yaml"):
        digest.update((trainers / name).read_bytes())
    return digest.hexdigest()


def snapshot_files(folder: Path) -> list[Path]:
    """The files that travel to the nodes: all but caches and hidden ones, by name."""
    files = (p for p in folder.rglob("*") if p.is_file())
    return sorted(p for p in files if not any(s.startswith((".", "__pycache__")) for s in p.relative_to(folder).parts))
