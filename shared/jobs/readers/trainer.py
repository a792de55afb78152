"""A trainer: a folder under trainers/ with a script, a job.yaml and, optionally, its own requirements.

job.yaml is an Azure ML command job with many optional parts: missing parts are filled in here, so that the shortest
job.yaml has only parameters. A parameter is written as in Azure ML's components, with type, range and help (`epochs:
{type: integer, default: 10, min: 1}`), or as its default value, with the rest in parameters.json beside it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from shared.jobs.command import Command, Reference, ReferenceGroup, joined
from shared.jobs.location import Asset
from shared.jobs.parameters import TYPES, Parameters, Schema, parameters
from shared.jobs.readers.azureml import path_of, read_layer
from shared.jobs.spec import FOLDER, TRAINERS_ENVIRONMENT, DataInput, Environment, JobOutput, JobSpec
from shared.kernel import yaml_files
from shared.kernel.errors import BadInput, BadSetting
from shared.kernel.names import NAME
from shared.kernel.parsing import plain

JOB_FILE = "job.yaml"
SCRIPT = "train.py"
PYTHON = "python>=3.11,<3.14"  # versions with wheels of the training packages; a local machine uses its own
_FILES = (
    "-r",
    "-c",
    "-e",
    "--requirement",
    "--constraint",
    "--editable",
    ".",
    "/",
)  # prefixes of lines that name a file
_BOUNDS = {"min": "minimum", "max": "maximum"}  # of components, and of JSON Schema
_SNAPSHOT = ".."  # a trainer's folder is inside the code snapshot


def trainer_names(trainers: Path) -> list[str]:
    """The folders of trainers/ with a job.yaml. Raises BadSetting for a name that a route can't have."""
    names = sorted(p.parent.name for p in trainers.glob(f"*/{JOB_FILE}") if not p.parent.name.startswith((".", "__")))
    for name in names:
        if not NAME.fullmatch(name):
            raise BadSetting(f"{trainers / name}: name a trainer's folder with letters, digits, dashes, underscores.")
    return names


def trainer_template(trainers: Path, name: str) -> tuple[JobSpec, Parameters]:
    """The complete job of one of `trainer_names`, and the parameters. Raises BadSetting with file, key and choices."""
    folder = trainers / name
    job, described = read_template(folder / JOB_FILE, folder / "parameters.json")
    if not job.command:
        if not (folder / SCRIPT).is_file():
            raise BadSetting(f"{folder / JOB_FILE} has no command, and there is no {SCRIPT} beside it.")
        job = _by_convention(job, name)
    environment = job.environment or _environment(trainers, folder)
    return replace(job, code=job.code or _SNAPSHOT, environment=environment), described


def has_command(job: JobSpec, template: JobSpec) -> bool:
    """Return whether the job has the command of this template, possibly followed by more arguments."""
    command = str(template.command).strip()
    return bool(command) and f"{job.command} ".startswith(f"{command} ")


def read_template(job_file: Path, schema_file: Path) -> tuple[JobSpec, Parameters]:
    """A template with plain literal inputs, and its parameters from the template and the schema file."""
    job = _job(job_file)
    typed = {
        name: _schema(f"{job_file}: inputs.{name}", value) for name, value in job.data.items() if value.kind in TYPES
    }
    job = replace(job, inputs={**job.inputs, **{name: schema["default"] for name, schema in typed.items()}})
    document = _json_object(schema_file) if schema_file.is_file() else {}
    described = document.get("properties")
    properties = {**typed, **(described if isinstance(described, dict) else {})}
    where = schema_file if set(properties) != set(typed) else job_file
    return job, parameters(job, properties, str(where))


def _job(file: Path) -> JobSpec:
    layer = read_layer(yaml_object(file))
    if layer.problems:
        raise BadSetting("; ".join(f"{file}: {problem.path} {problem.message}" for problem in layer.problems))
    for field, value in layer.unread.items():
        raise BadSetting(f"{file}: {path_of(field)} is {value!r}; use a whole number from 1.")
    return layer.job


def _schema(where: str, told: DataInput) -> Schema:
    """The schema of a parameter in the form of Azure ML's components, which looks like data with its own type."""
    if "default" not in told.rest:
        raise BadSetting(f"{where} has no default; drops that do not set it need one.")
    return {"description": "", "type": told.kind, **{_BOUNDS.get(key, key): value for key, value in told.rest.items()}}


def _by_convention(job: JobSpec, name: str) -> JobSpec:
    """The job that starts the folder's train.py, with a flag for the data, each parameter and each output."""
    inputs = {"data": DataInput(kind=FOLDER), **job.inputs}
    outputs = {**dict.fromkeys(("models", "metrics"), JobOutput(kind=FOLDER, mode="rw_mount")), **job.outputs}
    flags = [(f" --{_flag(each)} ", Reference(ReferenceGroup.INPUT, each)) for each in inputs]
    flags += [(f" --{_folder_flag(each)}-dir ", Reference(ReferenceGroup.OUTPUT, each)) for each in outputs]
    if not (job.distribution or job.processes):
        job = replace(job, distribution="pytorch", processes=1)
    command = Command(joined((f"python {name}/{SCRIPT}", *(part for flag in flags for part in flag))))
    return replace(job, command=command, inputs=inputs, outputs=outputs)


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _folder_flag(name: str) -> str:
    """The flag of an output: models becomes --model-dir, as in the existing trainers, and metrics --metrics-dir."""
    return _flag(name if name == "metrics" else name.removesuffix("s"))


def _environment(trainers: Path, folder: Path) -> Asset | Environment:
    """The trainer's own environment on the shared image if the folder has requirements, else the shared environment."""
    file = folder / "requirements.txt"
    if not file.is_file():
        return TRAINERS_ENVIRONMENT
    lines = [line.partition(" #")[0].strip() for line in file.read_text("utf-8").splitlines()]
    packages = [line for line in lines if line and not line.startswith("#")]
    for line in packages:
        if line.startswith(_FILES):
            raise BadSetting(
                f"{file}: {line!r} names a file, which the nodes do not have; list the packages themselves."
            )
    dependencies: list[Any] = [PYTHON, "pip", *([{"pip": packages}] if packages else [])]
    image = str(yaml_object(trainers / "environment.yaml").get("image"))
    return Environment(image, {"channels": ["conda-forge"], "dependencies": dependencies})


def yaml_object(file: Path) -> dict[str, Any]:
    """The mapping in a YAML file. Raises BadSetting."""
    try:
        document = yaml_files.load(file.read_text(encoding="utf-8"))
    except OSError as exc:
        raise BadSetting(f"{file} can't be read: {exc.strerror}.") from exc
    except yaml.YAMLError as exc:
        raise BadSetting(f"{file} is not valid YAML: {exc}") from exc
    if not isinstance(document, dict):
        raise BadSetting(f"{file} must contain a mapping, but it contains a {type(document).__name__}.")
    try:
        plain(document, str(file))
    except BadInput as exc:
        raise BadSetting(str(exc)) from exc
    return document


def _json_object(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise BadSetting(f"{file} can't be read as JSON: {exc}") from exc
    if not isinstance(document, dict):
        raise BadSetting(f"{file} must contain an object, but it contains a {type(document).__name__}.")
    return document
