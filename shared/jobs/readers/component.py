"""Convert a command component with its inputs into a command job. Pure.

https://learn.microsoft.com/azure/machine-learning/reference-yaml-component-command
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from posixpath import normpath
from typing import Any

from shared.jobs.location import is_relative
from shared.jobs.readers.place_text import has_expression

_DATA = ("uri_folder", "uri_file", "mltable", "mlflow_model", "custom_model", "triton_model")
_OPTIONAL = re.compile(r"\$\[\[(.*?)\]\]", re.DOTALL)
_INPUT = re.compile(r"\$\{\{\s*inputs\.([\w-]+)\s*\}\}")
_LOCAL = ("file:", "./", "../")
Json = dict[str, Any]


def is_file(named: str) -> bool:
    """Whether the name is a component's file, not a registered component."""
    return named.startswith(_LOCAL) or named.endswith((".yml", ".yaml"))


def from_folder(said: Mapping[str, Any], folder: str) -> Json:
    """A component from a file in this folder.

    The relative paths of the component and of its steps get the folder as a prefix.
    """
    made = dict(said)
    for key in ("code", "component", "trial", "environment"):
        if isinstance(named := said.get(key), str) and (is_file(named) or (key == "code" and is_relative(named))):
            joined = normpath(f"{folder}/{named.removeprefix('file:')}".lstrip("/"))
            made[key] = joined if key == "code" else f"file:{joined}"
    if isinstance(environment := said.get("environment"), Mapping):
        made["environment"] = _described_from(environment, folder)
    for key in ("jobs", "inputs"):
        if isinstance(inner := said.get(key), Mapping):
            made[key] = {
                name: _inner_from(key, each, folder) if isinstance(each, Mapping) else each
                for name, each in inner.items()
            }
    for key in ("component", "trial", "task"):
        if isinstance(within := said.get(key), Mapping):
            made[key] = from_folder(within, folder)
    return made


def _inner_from(key: str, each: Mapping[str, Any], folder: str) -> Json:
    if key == "jobs":
        return from_folder(each, folder)
    path = each.get("path")
    moved = isinstance(path, str) and is_relative(path) and not has_expression(path)
    return {**each, "path": normpath(f"{folder}/{path}".lstrip("/"))} if moved else dict(each)


def _described_from(environment: Mapping[str, Any], folder: str) -> Json:
    made, build = dict(environment), environment.get("build")
    if isinstance(conda := environment.get("conda_file"), str) and is_relative(conda):
        made["conda_file"] = normpath(f"{folder}/{conda}".lstrip("/"))
    if isinstance(build, Mapping) and isinstance(path := build.get("path"), str) and is_relative(path):
        made["build"] = {**build, "path": normpath(f"{folder}/{path}".lstrip("/"))}
    return made


def is_component(trial: Mapping[str, Any]) -> bool:
    """Whether the trial of a sweep is a component: only components declare inputs or outputs."""
    return "inputs" in trial or "outputs" in trial or trial.get("type") == "command"


def as_job(component: Mapping[str, Any], inputs: Mapping[str, Any], searched: Collection[str]) -> tuple[Json, Json]:
    """(the component's fields of a command job, the complete inputs). Raises ValueError for a missing input.

    Searched inputs are left to the search. An optional part of the command, in $[[...]], stays if its input has a
    value.
    """
    declared = component.get("inputs") or {}
    given = {name: inputs.get(name, _default(declared[name])) for name in declared if name not in searched}
    for name, value in given.items():
        optional = isinstance(declared[name], Mapping) and declared[name].get("optional")
        if value is None and not optional:
            raise ValueError(f"inputs.{name} is missing, which the component needs.")
    values = {name: value for name, value in {**inputs, **given}.items() if value is not None}
    command = _OPTIONAL.sub(
        lambda part: part[1] if all(n in values or n in searched for n in _INPUT.findall(part[1])) else "",
        str(component.get("command") or ""),
    )
    keys = ("code", "environment", "environment_variables", "distribution", "resources")
    job = {key: component[key] for key in keys if component.get(key) is not None} | {"command": command}
    return job | ({"outputs": dict(component["outputs"])} if component.get("outputs") else {}), values


def _default(declared: Any) -> Any:
    """The value of a missing input: the input's default; data has no default."""
    if not isinstance(declared, Mapping):
        return declared
    return None if declared.get("type") in _DATA else declared.get("default")
