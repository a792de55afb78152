"""Read Azure ML's job schema, as YAML or JSON, into a Layer. Pure.

The tables map the schema's keys to fields of a JobSpec, for this reader and for the writer
(shared/adapters/azureml/document.py). Keys without a field stay in `rest`, by their path, and the schema validates them
when the job is written. https://learn.microsoft.com/azure/machine-learning/reference-yaml-job-command
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shared.jobs.location import Asset
from shared.jobs.problem import Problem
from shared.jobs.readers.expressions import read_command
from shared.jobs.readers.pipeline_document import read_pipeline
from shared.jobs.readers.place_text import SCHEME, place_text, read_asset, read_output_place, read_place
from shared.jobs.spec import FILE, FOLDER, PIPELINE, DataInput, Environment, JobOutput, JobSpec, Layer

if TYPE_CHECKING:
    from shared.jobs.search import Sweep

SCHEMA = "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json"
TEXTS = {
    "name": "name",
    "type": "kind",
    "display_name": "title",
    "description": "description",
    "experiment_name": "experiment",
    "command": "command",
    "code": "code",
    "compute": "cluster",
    "resources.instance_type": "machine",
    "resources.shm_size": "shared_memory",
    "distribution.type": "distribution",
}
NUMBERS = {
    "resources.instance_count": "nodes",
    "distribution.process_count_per_instance": "processes",
    "distribution.worker_count": "workers",
    "distribution.parameter_server_count": "parameter_servers",
    "limits.timeout": "timeout_seconds",
}
RESTRICTED = {  # by path: the name under which a route allows the key
    "services": "services",
    "identity": "identity",
    "queue_settings": "queue_settings",
    "resources.docker_args": "docker_args",
}
MAPPINGS = {
    "inputs": "inputs",
    "outputs": "outputs",
    "environment_variables": "variables",
    "tags": "tags",
    "properties": "properties",
}
GROUPS = ("resources", "limits", "distribution")
LAUNCHER = "distribution."
KINDS = {"uri_folder": FOLDER, "uri_file": FILE}
COMPUTE = SCHEME  # before a cluster's name
_ENVIRONMENT = "environment"
_OF_A_KIND = {"jobs": PIPELINE, "search_space": "sweep"}  # keys that only this kind of job has
_PATHS = {field: path for path, field in (TEXTS | NUMBERS | RESTRICTED | MAPPINGS).items() if field not in GROUPS} | {
    "environment.conda": "environment.conda_file",
    "environment.context": "environment.build.path",
}
_READERS: dict[str, Callable[[str], Any]] = {"command": read_command, "code": read_place}
Json = dict[str, Any]


def path_of(place: str) -> str:
    """The schema's name of a place in a JobSpec: `nodes` is resources.instance_count. Other names stay unchanged."""
    field, dot, below = place.partition(".")
    return _PATHS.get(place) or f"{_PATHS.get(field, field)}{dot}{below}"


def read_job(document: Mapping[str, Any]) -> JobSpec:
    """The job in a document of a known format. Raises ValueError."""
    layer = read_layer(document)
    if layer.problems or layer.unread:
        raise ValueError("; ".join(f"{p.path} {p.message}" for p in layer.problems) or str(dict(layer.unread)))
    return layer.job


def read_layer(document: Mapping[str, Any]) -> Layer:
    """The user's document as a layer over a template. Parts that can't be read become problems, by document key.

    A key with null or an empty text removes the value of the layers below. A number may be given as text.
    """
    document, sweep, problems = _sweep(document)
    if problems := (*problems, *_problems(document)):
        return Layer(problems=problems)
    flat = _flat(document)
    off = _switched_off(flat)
    fields: Json = {"kind": _kind(document)}
    for path, field in TEXTS.items():
        if path != "type" and (text := flat.pop(path, None)) is not None:
            fields[field] = _READERS.get(field, str)(str(text))
    fields["cluster"] = fields.get("cluster", "").removeprefix(COMPUTE)
    unread = _numbers(flat, fields)
    fields["restricted"] = {field: flat.pop(path, None) for path, field in RESTRICTED.items() if _is_said(flat, path)}
    fields["inputs"] = {name: _input(value) for name, value in (flat.pop("inputs", None) or {}).items()}
    fields["outputs"] = {name: _output(value) for name, value in (flat.pop("outputs", None) or {}).items()}
    for path in ("environment_variables", "tags"):
        given = (flat.pop(path, None) or {}).items()
        fields[MAPPINGS[path]] = {str(name): "" if value is None else str(value) for name, value in given}
    fields["properties"] = flat.pop("properties", None) or {}
    fields["environment"] = read_environment(flat.pop(_ENVIRONMENT, None) or "")
    for path in ("$schema", "type", "sweep", *(NUMBERS | RESTRICTED)):
        flat.pop(path, None)
    of_launcher = [path for path in flat if path.startswith(LAUNCHER)]
    fields["launcher"] = {path.removeprefix(LAUNCHER): flat.pop(path) for path in of_launcher}
    return Layer(JobSpec(**fields, sweep=sweep, rest=flat), off, unread)


def _sweep(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sweep | None, tuple[Problem, ...]]:
    """The job of a sweep's trials, and the sweep; any other job unchanged, without a sweep."""
    if _kind(document) == PIPELINE:
        pipeline, problems = read_pipeline(document)
        return pipeline, None, problems
    if _kind(document) != "sweep" and document.get("sweep") is None:
        return document, None, ()
    from shared.jobs.readers import sweep as sweeps

    if _kind(document) == "sweep":
        return sweeps.read_published(document)
    inputs, sweep, problems = sweeps.read_short(document["sweep"], _mapping(document, "inputs"))
    if sweep and document.get("command"):  # a whole job: no layer below it has these inputs
        inputs = {**sweeps.placeholders(sweep), **inputs}
    return {**document, "inputs": inputs}, sweep, problems


def read_environment(described: Any) -> str | Asset | Environment:
    """A registered environment, the job's own environment, or the name of a file beside the job."""
    if not isinstance(described, Mapping):
        return read_asset(str(described))
    rest = {key: value for key, value in described.items() if value is not None and key != "$schema"}
    image, conda, build = rest.pop("image", ""), rest.pop("conda_file", ""), rest.pop("build", None)
    context = ""
    if isinstance(build, Mapping):
        context = str(build.get("path") or "")
        rest |= {f"build.{key}": value for key, value in build.items() if key != "path" and value is not None}
    return Environment(str(image), conda if isinstance(conda, Mapping) else str(conda), read_place(context), rest)


def environment_document(environment: str | Asset | Environment) -> Any:
    """The environment in the schema's form; reading the form gives an equal environment."""
    if not isinstance(environment, Environment):
        return place_text(environment)
    described: Json = {"image": environment.image, "conda_file": environment.conda}
    described = {key: dict(value) if isinstance(value, Mapping) else value for key, value in described.items() if value}
    build: Json = {"path": place_text(environment.context)} if environment.context else {}
    for path, value in environment.rest.items():
        if path.startswith("build."):
            build[path.removeprefix("build.")] = value
        else:
            described[path] = value
    return {**described, "build": build} if build else described


def _flat(document: Mapping[str, Any]) -> Json:
    """The document with the keys of groups by their paths. A group that is null stays unchanged."""
    flat: Json = {}
    for key, value in document.items():
        if key in GROUPS and isinstance(value, Mapping):
            flat |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            flat[str(key)] = value
    return flat


def _is_said(flat: Json, path: str) -> bool:
    """Whether the document has this key, or null for the key's whole group."""
    return path in flat or path.partition(".")[0] in flat


def _switched_off(flat: Json) -> frozenset[str]:
    nulls = {path: None for path, value in flat.items() if value is None or value == ""}
    paths = TEXTS | NUMBERS | MAPPINGS | {_ENVIRONMENT: _ENVIRONMENT, f"{LAUNCHER}*": "launcher", "sweep": "sweep"}
    return frozenset(field for path, field in paths.items() if _is_said(nulls, path))


def _kind(document: Mapping[str, Any]) -> str:
    kind = document.get("type") or next((kind for key, kind in _OF_A_KIND.items() if key in document), None)
    return str(kind or JobSpec.kind)


def _numbers(flat: Json, fields: Json) -> Json:
    """Store the numbers in `fields`, and return the other values."""
    unread: Json = {}
    for path, field in NUMBERS.items():
        value = whole(flat.pop(path, None))
        if value is None:
            continue
        if type(value) is int and value > 0:
            fields[field] = value
        else:
            unread[field] = value
    return unread


def whole(value: Any) -> Any:
    """The value as a whole number, if a text or a float is one; otherwise unchanged."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 20:
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _input(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    kind, path, mode, rest = _data(value)
    return DataInput(read_place(path), kind, mode, rest)


def _output(value: Any) -> JobOutput:
    kind, path, mode, rest = _data(value or {})
    return JobOutput(read_output_place(path), kind, mode, str(rest.pop("name", "")), str(rest.pop("version", "")), rest)


def _data(value: Mapping[str, Any]) -> tuple[str, str, str, Json]:
    rest = {key: inner for key, inner in value.items() if inner is not None}
    kind, path, mode = (str(rest.pop(key, "")) for key in ("type", "path", "mode"))
    return KINDS.get(kind, kind), path, mode, rest


# --- what can't be read -----------------------------------------------------------------------------------------------


def _problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    for key in (*MAPPINGS, *GROUPS):
        if not isinstance(document.get(key, {}), Mapping | None):
            yield Problem(key, f"must be a mapping, it is a {type(document[key]).__name__}.")
    for part in ("tags", "environment_variables"):
        for name, value in _mapping(document, part).items():
            if not isinstance(value, str | int | float | None):
                yield Problem(f"{part}.{name}", f"must be text, it is a {type(value).__name__}.")
    flat = _flat(document)
    for path in TEXTS:
        yield from _not_text(path, flat.get(path))
    if not isinstance(flat.get(_ENVIRONMENT, ""), Mapping):
        yield from _not_text(_ENVIRONMENT, flat.get(_ENVIRONMENT))
    for name, value in _mapping(document, "inputs").items():
        yield from _unreadable_input(f"inputs.{name}", value)
    for name, value in _mapping(document, "outputs").items():
        if not isinstance(value, Mapping | None):
            yield Problem(f"outputs.{name}", f"must be a mapping, it is a {type(value).__name__}.")
        yield from _unreadable_data(f"outputs.{name}", value)


def _unreadable_input(path: str, value: Any) -> Iterator[Problem]:
    if isinstance(value, list) or value is None:
        yield Problem(path, "must be a value, or a mapping with type and path.")
    yield from _unreadable_data(path, value)


def _unreadable_data(path: str, value: Any) -> Iterator[Problem]:
    for key in ("type", "path", "mode"):
        if isinstance(value, Mapping):
            yield from _not_text(f"{path}.{key}", value.get(key))


def _not_text(path: str, value: Any) -> Iterator[Problem]:
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        yield Problem(path, f"must be text, it is a {type(value).__name__}.")


def _mapping(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    return value if isinstance(value, Mapping) else {}
