"""Load a job from a dict into the SDK's job, and collect the problems that the SDK's schema finds.

The SDK reads local files wherever a job names them: code, inputs, conda files, `file:` references. Anyone who may
upload a drop can send a job, so all such references are refused.
"""

from __future__ import annotations

import io
import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from shared.adapters.azureml.workspace import causes, own_errors, sdk
from shared.jobs.problem import Problem

_REMOTE = re.compile(r"azureml:|(?:https?|wasbs?|abfss?|adl)://", re.IGNORECASE)
_TEXTS = ("command", "description", "display_name", "tags", "properties", "environment_variables")
_SHORT_CODE = re.compile(r"azureml:(?P<name>[^/:@]+):(?P<version>[^/:@]+)")
UNRESOLVED = "/subscriptions/0/resourceGroups/r/providers/Microsoft.MachineLearningServices/workspaces/w"
MOST_KEYS = 500  # per mapping; a larger mapping is refused as a whole
_MESSAGE_LIMIT = 300  # characters; some of the schema's messages fill a page

Job = dict[str, Any]


def load(job: Job, workspace_id: str) -> Any:
    """Return the SDK's job. The SDK's own errors pass through; call `local_files` first."""
    import yaml

    made = {**job, **({"code": full_code(str(job["code"]), workspace_id)} if job.get("code") else {})}
    with TemporaryDirectory() as folder:  # the base of relative paths
        made = _with_pipelines_as_files(made, Path(folder))
        return sdk().load_job(io.StringIO(yaml.safe_dump(made)), relative_origin=f"{folder}/job.yaml")


def _with_pipelines_as_files(job: Job, folder: Path) -> Job:
    """Write each nested pipeline to a file and return a job with references to these files: the SDK accepts no other
    form.
    """
    import yaml

    if not isinstance(steps := job.get("jobs"), dict):
        return job
    made = {}
    for name, step in steps.items():
        component = _mapping(_mapping(step).get("component"))
        if component.get("type") != "pipeline":
            made[name] = step
            continue
        file = folder / f"{uuid.uuid4().hex}.yml"
        file.write_text(yaml.safe_dump(_with_pipelines_as_files(component, folder)), "utf-8")
        made[name] = {**step, "component": f"./{file.name}"}
    return {**job, "jobs": made}


def problems(job: Job) -> list[Problem]:
    """Return every problem found by the schema. The job's `code` may still be an unregistered folder."""
    if crowded := list(_crowded(job, "")):  # the schema takes a second per 500 unknown keys
        return crowded
    if file_problems := list(local_files({**job, "code": ""})):
        return file_problems
    code = {"code": f"azureml:{UNRESOLVED}/codes/c/versions/1"} if job.get("code") else {}
    try:
        load({**job, **code, **_environment_at_an_address(job)}, UNRESOLVED)
    except _refusals() as exc:
        return _explained(exc)
    return []


def misfits(job: Job) -> list[Problem]:
    """Return the problems of a pipeline's bindings, which the SDK finds only when it sends the job.

    A missing cluster is no misfit: a route or a request may still name the cluster. The job must obey the schema.
    """
    try:
        found = load(job, UNRESOLVED)._customized_validate().error_messages
    except _refusals() as exc:
        return _explained(exc)
    return [Problem(path.removesuffix(".None"), str(why)) for path, why in found.items() if "compute" not in path]


def _crowded(node: Any, path: str) -> Iterator[Problem]:
    """Yield mappings with far more keys than any real job has. Mappings of user-chosen names are skipped."""
    if isinstance(node, dict):
        if len(node) > MOST_KEYS:
            yield Problem(
                path, f"has {len(node):,} keys, as {str(next(iter(node)))[:80]!r}; at most {MOST_KEYS:,} are allowed."
            )
            return
        for key, value in node.items():
            if path or key not in _TEXTS:
                yield from _crowded(value, f"{path}.{key}".lstrip("."))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _crowded(value, f"{path}.{index}")


def _refusals() -> tuple[type[Exception], ...]:
    # The built-in errors come from the SDK's own code, for a value whose type its schema does not foresee.
    return *own_errors(), ValueError, TypeError, AttributeError, KeyError, IndexError


def local_files(job: Job) -> Iterator[Problem]:
    """Yield every place where the job names a file of the submitting machine."""
    if (code := job.get("code")) and not str(code).startswith("azureml:"):
        yield Problem("code", f"{code!r} is not registered code; use azureml:<name>:<version>.")
    for name, value in _mapping(job.get("inputs")).items():
        path = _mapping(value).get("path")
        if path is not None and not _REMOTE.match(str(path)):
            yield Problem(f"inputs.{name}.path", f"{path!r} is a local path; use azureml:// or https://.")
    environment = _mapping(job.get("environment"))
    for key in ("conda_file", "build"):
        named = _mapping(environment.get(key)).get("path", "") if key == "build" else environment.get(key)
        if key in environment and isinstance(named, str) and not named.startswith("azureml://"):
            yield Problem(f"environment.{key}", "names local files; register the environment, or write conda inline.")
    rest = {key: value for key, value in job.items() if key not in ("inputs", *_TEXTS)}
    yield from _file_references(rest, "")


def _environment_at_an_address(job: Job) -> Job:
    """Return the environment with its uploaded build context at a URL instead of an azureml:// path.

    The context's path becomes a URL before Azure ML sees it, but the schema accepts only URLs and local folders.
    """
    environment = _mapping(job.get("environment"))
    build = _mapping(environment.get("build"))
    if not str(build.get("path", "")).startswith("azureml://"):
        return {}
    return {"environment": {**environment, "build": {**build, "path": "https://account.blob.core.windows.net/sent/"}}}


def _file_references(node: Any, path: str) -> Iterator[Problem]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _file_references(value, f"{path}.{key}".lstrip("."))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _file_references(value, f"{path}.{index}")
    elif isinstance(node, str) and node.lower().startswith("file:"):
        yield Problem(path, f"{node!r} is a local file.")


def full_code(code: str, workspace_id: str) -> str:
    """Return code by its full id: the SDK would look for azureml:<name>:<version> on the local disk."""
    short = _SHORT_CODE.fullmatch(code)
    return f"azureml:{workspace_id}/codes/{short['name']}/versions/{short['version']}" if short else code


def _explained(exc: Exception) -> list[Problem]:
    """Return the schema's findings: the first ValidationError of the chain has them as nested dicts and lists."""
    for cause in reversed(list(causes(exc))):
        if isinstance(messages := getattr(cause, "messages", None), dict):
            merged: dict[str, list[str]] = {}
            for path, message in _findings(messages, ""):
                if message not in merged.setdefault(path, []):
                    merged[path].append(message)
            shown = {path: texts for path, texts in merged.items() if not _is_other_type(path, texts, merged)}
            return [Problem(path, "; or: ".join(texts)[:_MESSAGE_LIMIT]) for path, texts in shown.items()]
    first = list(causes(exc))[-1]
    return [Problem("", f"Azure ML's schema can't read this job: {type(first).__name__}: {first}"[:_MESSAGE_LIMIT])]


def _is_other_type(path: str, texts: list[str], merged: Mapping[str, list[str]]) -> bool:
    """Return whether the findings only say that a mapping is no number or text, while others say what is wrong in
    the mapping."""
    return any(other.startswith(f"{path}.") for other in merged) and all(
        text.startswith("Not a valid") for text in texts
    )


def _findings(node: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield (path, message) pairs. A list holds messages, or one dict per alternative of a union."""
    if isinstance(node, dict):
        for key, value in node.items():
            # Marshmallow puts these keys between a key and its problem.
            below = path if key in ("_schema", "value", "null", None) else f"{path}.{key}".lstrip(".")
            yield from _findings(value, below)
    elif isinstance(node, list):
        for item in node:
            yield from _findings(item, path)
    else:
        yield path, str(node).strip().partition("\n")[0]


def _mapping(value: Any) -> Job:
    return value if isinstance(value, dict) else {}
