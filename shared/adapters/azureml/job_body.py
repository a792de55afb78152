"""A command job for Resource Manager, equal to azure-ai-ml's body, without importing azure-ai-ml.

That package takes seconds to import, and 20 ms and five processes per job (it asks git for this folder's commit). So
this module writes the jobs that templates, routes and job files usually make. For any other job `job_body` returns
None, and the SDK makes the body. tests/contract/test_job_body.py compares the two bodies key by key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

_KEYS = {
    "$schema", "type", "name", "display_name", "description", "experiment_name", "command", "code", "environment",
    "compute", "inputs", "outputs", "environment_variables", "tags", "properties", "resources", "limits",
    "distribution",
}  # fmt: skip
_TEXTS = ("name", "display_name", "experiment_name", "command")  # required texts; the SDK would invent missing ones
_KINDS = ("uri_folder", "uri_file")
_MODES = {  # by the type of data
    "jobInputType": {"ro_mount": "ReadOnlyMount", "download": "Download", "direct": "Direct"},
    "jobOutputType": {"rw_mount": "ReadWriteMount", "upload": "Upload"},
}
_LAUNCHERS = {"pytorch": "PyTorch", "mpi": "Mpi"}
_PATH = re.compile(r"azureml://datastores/[\w-]+/paths/[\w./-]+", re.ASCII)
_SHORT = re.compile(r"azureml:([\w-][\w.-]*):([\w.-]+)", re.ASCII)
_FULL = re.compile(r"azureml:(/subscriptions/[\w./()-]+/(?:codes|environments)/[\w.-]+/versions/[\w.-]+)", re.ASCII)
_COMPUTE = re.compile(r"azureml:(?!local$)([\w-]+)", re.ASCII)
_VALUE_OF = re.compile(r"\$\{\{(inputs|outputs)\.([\w-]+)\}\}", re.ASCII)
_TEXT = re.compile(r"[\x20-\x7e\n\xa1-\ud7ff]*")  # characters that the SDK's YAML leaves unchanged


class _Unusual(Exception):
    """The SDK has to write this job."""


def job_body(job: Mapping[str, Any], workspace_id: str) -> Json | None:
    """Return the body of the PUT of this job, or None if part of it is not supported here."""
    try:
        return {"properties": _properties(job, workspace_id)}
    except _Unusual:
        return None


def _properties(job: Mapping[str, Any], workspace_id: str) -> Json:
    _need(set(job) <= _KEYS and job.get("type", "command") == "command")
    _need(all(_text(job.get(key)) for key in _TEXTS))
    inputs = {name: _input(value) for name, value in _mapping(job, "inputs").items()}
    outputs = {name: _output(value) for name, value in _mapping(job, "outputs").items()}
    _check_command(str(job["command"]), {"inputs": inputs, "outputs": outputs})
    body: Json = {
        "jobType": "Command",
        "displayName": job["display_name"],
        "experimentName": job["experiment_name"],
        "command": job["command"],
        "environmentId": _asset(job.get("environment"), "environments", workspace_id),
        "computeId": f"{workspace_id}/computes/{_match(_COMPUTE, job.get('compute'))[1]}",
        "isArchived": False,
        "inputs": inputs,
        "outputs": outputs,
        "environmentVariables": _texts(job, "environment_variables"),
        "tags": _texts(job, "tags"),
        "properties": _texts(job, "properties"),
    }
    return body | _optional(job, workspace_id)


def _optional(job: Mapping[str, Any], workspace_id: str) -> Json:
    body: Json = {}
    if "description" in job:
        _need(_text(job["description"]))
        body["description"] = job["description"]
    if "resources" in job:
        body["resources"] = {"instanceCount": _only(job["resources"], "instance_count"), "properties": {}}
    if "code" in job:
        body["codeId"] = _asset(job["code"], "codes", workspace_id)
    if "limits" in job:
        body["limits"] = {"timeout": _duration(_only(job["limits"], "timeout")), "jobLimitsType": "Command"}
    if "distribution" in job:
        given = job["distribution"]
        _need(isinstance(given, dict) and given.get("type") in _LAUNCHERS)
        rest = {key: value for key, value in given.items() if key != "type"}
        count = _only(rest, "process_count_per_instance")
        body["distribution"] = {"distributionType": _LAUNCHERS[given["type"]], "processCountPerInstance": count}
    return body


def _input(value: Any) -> Json:
    if isinstance(value, dict):
        _need("path" in value)
        return _data(value, "jobInputType")
    number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    _need(number or (_text(value) and "${{" not in value))
    return {"value": str(value), "jobInputType": "literal"}


def _output(value: Any) -> Json:
    return _data(value, "jobOutputType")


def _data(value: Any, key: str) -> Json:
    _need(isinstance(value, dict) and set(value) <= {"type", "path", "mode"})
    body: Json = {key: value.get("type", "uri_folder")}
    _need(body[key] in _KINDS)
    if "mode" in value:
        _need(value["mode"] in _MODES[key])
        body["mode"] = _MODES[key][value["mode"]]
    if "path" in value:
        body["uri"] = _match(_PATH, value["path"])[0]
    return body


def _check_command(command: str, names_by_group: Mapping[str, Json]) -> None:
    """Raise _Unusual for a command with a name unknown to the job (the SDK words this error), or with other
    brackets.
    """
    _need(all(name in names_by_group[group] for group, name in _VALUE_OF.findall(command)))
    rest = _VALUE_OF.sub("", command)
    _need(not any(mark in rest for mark in ("${{", "$[[", "{inputs", "{outputs", "{search_space")))


def _asset(value: Any, kind: str, workspace_id: str) -> str:
    if full_id := _FULL.fullmatch(str(value)):
        return full_id[1]
    name, version = _match(_SHORT, value).groups()
    if kind == "environments" and name.lower().startswith("azureml"):
        _need(name.startswith("AzureML-"))
        return str(value)  # one of Azure ML's own environments
    return f"{workspace_id}/{kind}/{name}/versions/{version}"


def _duration(seconds: int) -> str:
    """Return an ISO 8601 duration as the SDK writes it: 90061 s are P1DT1H1M1S."""
    days, rest = divmod(seconds, 86_400)
    parts = ((rest // 3600, "H"), (rest % 3600 // 60, "M"), (rest % 60, "S"))
    time = "".join(f"{number}{unit}" for number, unit in parts if number)
    return f"P{f'{days}D' if days else ''}{f'T{time}' if time else ''}"


def _only(value: Any, key: str) -> int:
    """Return the value of the only key of this part, a whole number of at least 1."""
    _need(isinstance(value, dict) and set(value) == {key})
    number = value[key]
    _need(type(number) is int and number > 0)
    return int(number)


def _mapping(job: Mapping[str, Any], key: str) -> Json:
    value = job.get(key, {})
    _need(isinstance(value, dict) and all(re.fullmatch(r"[A-Za-z][\w-]*", str(name), re.ASCII) for name in value))
    return dict(value)


def _texts(job: Mapping[str, Any], key: str) -> Json:
    value = job.get(key, {})
    _need(isinstance(value, dict) and all(_text(part) for pair in value.items() for part in pair))
    return dict(value)


def _text(value: Any) -> bool:
    return isinstance(value, str) and value != "" and _TEXT.fullmatch(value) is not None


def _match(pattern: re.Pattern[str], value: Any) -> re.Match[str]:
    match = pattern.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise _Unusual
    return match


def _need(usual: bool) -> None:
    if not usual:
        raise _Unusual
