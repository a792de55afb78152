"""What a job's REST body asks for, checked: the value that everything after submission works with. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from emulators.azureml import checks
from emulators.azureml.checks import mapping
from emulators.azureml.errors import BadRequest, among
from emulators.azureml.models import Json

JOB_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,254}")
PLACEHOLDER = re.compile(r"\$\{\{\s*(inputs|outputs)\.([\w.-]+?)\s*\}\}")
OPTIONAL = re.compile(r"\$\[\[(.*?)\]\]", re.DOTALL)
ASSET_ID = re.compile(
    r"(?:.*/)?(?P<kind>codes|environments)/(?P<name>[^/]+)/versions/(?P<version>[^/]+)", re.IGNORECASE
)
DATASTORE_URI = re.compile(
    r"azureml://(?:subscriptions/[^/]+/resource[gG]roups/[^/]+/(?:providers/[^/]+/)?workspaces/[^/]+/)?"
    r"datastores/(?P<datastore>[^/]+)/(?:paths/)?(?P<path>.*)"
)
FOLDER_TYPES = frozenset({"uri_folder", "custom_model", "mlflow_model", "mltable"})
DATA_TYPES = FOLDER_TYPES | {"uri_file"}


@dataclass(frozen=True)
class Location:
    """A place in a datastore; `path` is a blob's name or a folder's prefix."""

    datastore: str
    path: str

    def __str__(self) -> str:
        return f"azureml://datastores/{self.datastore}/paths/{self.path}"


@dataclass(frozen=True)
class Input:
    name: str
    kind: str  # literal, or one of DATA_TYPES
    literal: str = ""
    location: Location | None = None


@dataclass(frozen=True)
class Output:
    name: str
    kind: str
    location: Location
    mounted: bool  # a mount shows what is at the location already, and deletes there what is deleted here


@dataclass(frozen=True)
class JobSpec:
    """A job as it will run. `processes` is per node; `timeout` is in seconds, of one attempt's processes."""

    command: str
    code: tuple[str, str] | None  # name and version
    environment: tuple[str, str]
    cluster: str
    nodes: int
    processes: int
    distributed: bool
    variables: Mapping[str, str]
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    timeout: float | None

    @property
    def world_size(self) -> int:
        return self.nodes * self.processes


def parse(name: str, properties: Json) -> JobSpec:
    """Read the `properties` of a job's body. Raises BadRequest saying what is wrong and what would do."""
    if not JOB_NAME.fullmatch(name):
        raise BadRequest(f"Job name {name!r}: use letters, digits, '-' and '_', at most 255 of them.")
    if (kind := properties.get("jobType")) != "Command":
        raise BadRequest(f"jobType {kind!r} is not supported here; supported: Command.")
    check_facts(properties)
    inputs = tuple(_input(key, value) for key, value in mapping(properties, "inputs").items())
    outputs = tuple(_output(name, key, value) for key, value in mapping(properties, "outputs").items())
    processes = _processes(mapping(properties, "distribution"))
    return JobSpec(
        command=_command(properties, inputs, outputs),
        code=asset_id(properties["codeId"], "codeId") if properties.get("codeId") else None,
        environment=asset_id(checks.text(properties, "environmentId"), "environmentId"),
        cluster=checks.text(properties, "computeId").rsplit("/", 1)[-1].lower(),
        nodes=checks.int32(mapping(properties, "resources"), "instanceCount", 1, 1),
        processes=processes or 1,
        distributed=processes is not None,
        variables={key: str(value) for key, value in mapping(properties, "environmentVariables").items()},
        inputs=inputs,
        outputs=outputs,
        timeout=checks.duration(mapping(properties, "limits"), "timeout", "limits."),
    )


def check_facts(properties: Json) -> None:
    """What has no part in how a job runs, but is shown in lists: it must be readable there."""
    for key in ("tags", "properties"):
        checks.texts(properties, key)
    for key in ("displayName", "experimentName", "description"):
        checks.optional_text(properties, key)
    services = mapping(properties, "services")
    for name in services:
        checks.int32(mapping(services, name), "port", 0, 0)


def asset_id(value: Any, key: str) -> tuple[str, str]:
    """Name and version of an asset's ARM id, or of `azureml:NAME:VERSION`."""
    if match := ASSET_ID.fullmatch(str(value)):
        return match["name"], match["version"]
    scheme, _, rest = str(value).partition(":")
    name, _, version = rest.rpartition(":")
    if scheme == "azureml" and name and version:
        return name, version
    raise BadRequest(f"{key} {value!r} is neither an ARM id (.../versions/VERSION) nor azureml:NAME:VERSION.")


def location(uri: Any, what: str) -> Location:
    match = DATASTORE_URI.fullmatch(str(uri))
    if not match:
        raise BadRequest(f"{what}: {uri!r} is not a path in a datastore; write azureml://datastores/NAME/paths/PATH.")
    return Location(match["datastore"], match["path"])


def resolve(command: str, values: Mapping[str, str]) -> str:
    """The command with its placeholders replaced, as text, by `values` (`inputs.data` -> a path).

    A section in `$[[ ]]` is optional: it goes when one of its placeholders has no value.
    """

    def optional(match: re.Match[str]) -> str:
        return match[1] if all(f"{a}.{b}" in values for a, b in PLACEHOLDER.findall(match[1])) else ""

    return PLACEHOLDER.sub(lambda match: values[f"{match[1]}.{match[2]}"], OPTIONAL.sub(optional, command))


def _command(properties: Json, inputs: tuple[Input, ...], outputs: tuple[Output, ...]) -> str:
    command = checks.text(properties, "command")
    known = {f"inputs.{i.name}" for i in inputs} | {f"outputs.{o.name}" for o in outputs}
    for group, key in PLACEHOLDER.findall(OPTIONAL.sub("", command)):
        if f"{group}.{key}" not in known:
            raise BadRequest(f"The command uses ${{{{{group}.{key}}}}}, which the job lacks; it has: {among(known)}.")
    return command


def _input(name: str, body: Any) -> Input:
    body = body if isinstance(body, dict) else {}
    kind = checks.optional_text(body, "jobInputType")
    if kind == "literal":
        return Input(name, "literal", literal=str(body.get("value", "")))
    if kind not in DATA_TYPES:
        raise BadRequest(f"Input {name!r}: jobInputType {kind!r}; choose literal, {among(DATA_TYPES)}.")
    return Input(name, kind, location=location(body.get("uri"), f"Input {name!r}"))


def _output(job: str, name: str, body: Any) -> Output:
    body = body if isinstance(body, dict) else {}  # null is an output with all of its defaults
    kind = checks.optional_text(body, "jobOutputType") or "uri_folder"
    if kind not in DATA_TYPES:
        raise BadRequest(f"Output {name!r}: jobOutputType {kind!r}; choose {among(DATA_TYPES)}.")
    uri = body.get("uri") or f"azureml://datastores/workspaceblobstore/paths/azureml/{job}/{name}/"
    return Output(name, kind, location(uri, f"Output {name!r}"), mounted=body.get("mode") != "Upload")


def _processes(distribution: Json) -> int | None:
    if not distribution:
        return None
    if (kind := distribution.get("distributionType")) != "PyTorch":
        raise BadRequest(f"distributionType {kind!r} is not supported here; supported: PyTorch, or none.")
    return checks.int32(distribution, "processCountPerInstance", 1, 1)
