"""Parses a command job's REST body into the checked value that all later code uses. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from emulators.azureml.bodies import distribution
from emulators.azureml.bodies.distribution import Distribution
from emulators.azureml.kernel import checks
from emulators.azureml.kernel.checks import mapping
from emulators.azureml.kernel.config import DEFAULT_DATASTORE
from emulators.azureml.kernel.errors import BadRequest, among
from emulators.azureml.kernel.models import Json, compute_name
from emulators.azureml.kernel.service_limits import check_run
from emulators.azureml.kernel.sources import AssetRef, Location, Source, asset, location, source

JOB_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,254}")
NAME = re.compile(r"\w[\w.-]{0,254}")  # of inputs and outputs, which become names of folders
PLACEHOLDER = re.compile(r"\$\{\{\s*(inputs|outputs)\.([\w.-]+?)\s*\}\}")
OPTIONAL = re.compile(r"\$\[\[(.*?)\]\]", re.DOTALL)
EXPRESSION = re.compile(r"\$\{\{\s*(\w+)\s*\}\}")
DEFAULT_FILE = "azureml://datastores/${{default_datastore}}/paths/azureml/${{name}}/${{output_name}}"
DEFAULT_FOLDER = f"{DEFAULT_FILE}/"
FOLDER_TYPES = frozenset({"uri_folder", "custom_model", "mlflow_model", "mltable", "triton_model"})
OF_A_PARALLEL_STEP = "isParallelStep"  # our own key, which only the job of such a step has
DIRECT = "Direct"  # the job gets the address itself
DATA_TYPES = FOLDER_TYPES | {"uri_file"}


@dataclass(frozen=True)
class Input:
    name: str
    kind: str  # literal, or one of DATA_TYPES
    literal: str = ""
    source: Source | None = None
    direct: bool = False
    copied: bool = False  # to the node's own disk, where the job may write; otherwise mounted, read-only


@dataclass(frozen=True)
class Output:
    name: str
    kind: str
    location: Location
    mounted: bool  # a mount shows existing files, and deletes in storage what is deleted here
    direct: bool = False
    asset: tuple[str, str] | None = None  # name and version ('' for the next) under which it is registered


@dataclass(frozen=True)
class JobSpec:
    """A command job in its final form. `timeout` limits the processes of one attempt, in seconds."""

    command: str
    code: AssetRef | None
    environment: AssetRef
    cluster: str
    nodes: int
    distribution: Distribution
    variables: Mapping[str, str]
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    timeout: float | None

    @property
    def world_size(self) -> int:
        return self.distribution.world_size

    @property
    def distributed(self) -> bool:
        return self.distribution.kind not in ("none", distribution.PARALLEL)


def parse(name: str, properties: Json) -> JobSpec:
    """Read the `properties` of a job's body. Raises BadRequest with the error and an allowed value."""
    if not JOB_NAME.fullmatch(name):
        raise BadRequest(f"Job name {name!r}: use letters, digits, '-' and '_', at most 255 of them.")
    check_facts(properties)
    _check_names(properties)
    inputs = tuple(_input(key, value) for key, value in mapping(properties, "inputs").items())
    outputs = outputs_of(name, properties)
    nodes = checks.int32(mapping(properties, "resources"), "instanceCount", 1, 1)
    return JobSpec(
        command=_command(properties, inputs, outputs),
        code=version_of(properties["codeId"], "codes", "codeId") if properties.get("codeId") else None,
        environment=version_of(checks.text(properties, "environmentId"), "environments", "environmentId"),
        cluster=_cluster(properties),
        nodes=nodes,
        distribution=_distribution(properties, nodes),
        variables=dict(_variables(mapping(properties, "environmentVariables"))),
        inputs=inputs,
        outputs=outputs,
        timeout=checks.duration(mapping(properties, "limits"), "timeout", "limits."),
    )


def _distribution(properties: Json, nodes: int) -> Distribution:
    if checks.flag(properties, OF_A_PARALLEL_STEP):
        return Distribution(distribution.PARALLEL, nodes)
    return distribution.read(mapping(properties, "distribution"), nodes)


def _cluster(properties: Json) -> str:
    checks.optional_text(properties, "computeId")
    return compute_name(properties)


def outputs_of(name: str, properties: Json) -> tuple[Output, ...]:
    """Return the outputs of a job of any kind."""
    return tuple(_output(name, key, value) for key, value in mapping(properties, "outputs").items())


def _check_names(properties: Json) -> None:
    for group in ("inputs", "outputs"):
        for name in mapping(properties, group):
            if not NAME.fullmatch(name):
                raise BadRequest(f"The name of {group} {name!r:.80}; use letters, digits, '-', '_' and '.'.")


def _variables(given: Json) -> Iterator[tuple[str, str]]:
    """Return the variables as strings. MLClient sends numbers and booleans of YAML unchanged, and they become 1 or
    True. A null is not a variable."""
    for key, value in given.items():
        if not isinstance(value, str | int | float | None):
            raise BadRequest(f"environmentVariables.{key} is {value!r:.80}; write a text, a number, true or false.")
        if not key or {"=", "\0"} & set(key) or "\0" in str(value):
            raise BadRequest(f"environmentVariables {key!r:.80}: no process can have a variable of that name or value.")
        if value is not None:
            yield key, str(value)


def check_facts(properties: Json) -> None:
    """Check the properties that appear in lists and do not affect the job. Raises BadRequest."""
    for key in ("tags", "properties"):
        checks.texts(properties, key)
    for key in ("displayName", "experimentName", "description"):
        checks.optional_text(properties, key)
    check_run(properties)
    services = mapping(properties, "services")
    for name in services:
        checks.int32(mapping(services, name), "port", 0, 0)


def version_of(value: Any, kind: str, key: str) -> AssetRef:
    """Return the version of this kind in a Resource Manager id, a short id, or a registry's id."""
    found = asset(str(value), kind)
    if found and found.kind == kind:
        return found
    raise BadRequest(
        f"{key} {value!r} is neither an ARM id (.../versions/VERSION), azureml:NAME:VERSION, nor "
        f"azureml://registries/REGISTRY/{kind}/NAME/versions/VERSION."
    )


def resolve(command: str, values: Mapping[str, str]) -> str:
    """Return the command with its placeholders replaced, as text, by `values` (`inputs.data` -> a path).

    A section in `$[[ ]]` is optional: it goes when one of its placeholders has no value.
    """

    def optional(match: re.Match[str]) -> str:
        return match[1] if all(f"{a}.{b}" in values for a, b in PLACEHOLDER.findall(match[1])) else ""

    return PLACEHOLDER.sub(lambda match: values[f"{match[1]}.{match[2]}"], _with_options(optional, command))


def _with_options(replace: Callable[[re.Match[str]], str], command: str) -> str:
    """Return the command with the optional sections replaced. Text after the last end of a section is not searched,
    because each unclosed beginning would be searched up to the command's end."""
    end = command.rfind("]]") + 2
    return OPTIONAL.sub(replace, command[:end]) + command[end:] if end > 1 else command


def _command(properties: Json, inputs: tuple[Input, ...], outputs: tuple[Output, ...]) -> str:
    command = checks.text(properties, "command")
    known = {f"inputs.{i.name}" for i in inputs} | {f"outputs.{o.name}" for o in outputs}
    for group, key in PLACEHOLDER.findall(_with_options(lambda _: "", command)):
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
    mode = checks.optional_text(body, "mode")
    address = source(body.get("uri"), f"Input {name!r}", kind)
    return Input(name, kind, source=address, direct=mode == DIRECT, copied=mode in ("Download", "EvalDownload"))


def _output(job: str, name: str, body: Any) -> Output:
    body = body if isinstance(body, dict) else {}  # null is an output with all defaults
    kind = checks.optional_text(body, "jobOutputType") or "uri_folder"
    if kind not in DATA_TYPES:
        raise BadRequest(f"Output {name!r}: jobOutputType {kind!r}; choose {among(DATA_TYPES)}.")
    uri = _filled(str(body.get("uri") or (DEFAULT_FILE if kind == "uri_file" else DEFAULT_FOLDER)), job, name)
    mode, name_of = body.get("mode"), checks.optional_text(body, "assetName")
    asset = (name_of, checks.optional_text(body, "assetVersion") or "") if name_of else None
    place = location(uri, f"Output {name!r}")
    return Output(name, kind, place, mounted=mode not in ("Upload", DIRECT), direct=mode == DIRECT, asset=asset)


def _filled(uri: str, job: str, output: str) -> str:
    """Return the address of an output with its expressions replaced: ${{default_datastore}}, ${{name}},
    ${{output_name}}.

    https://learn.microsoft.com/azure/machine-learning/reference-yaml-job-command#job-outputs
    """
    values = {"default_datastore": DEFAULT_DATASTORE, "name": job, "output_name": output}

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            raise BadRequest(f"Output {output!r}: its path uses {found[0]}; there are: {among(values)}.")
        return values[found[1]]

    return EXPRESSION.sub(value, uri)
