"""The job model, independent of any compute backend. Pure.

Readers (shared/jobs/readers, shared/jobs/batchai) build a JobSpec from a trainer's template, from Azure ML's YAML and
JSON, or from a Batch AI document. One writer, shared/adapters/azureml/document.py, converts a JobSpec to Azure ML's
job, which is also the stored form. Fields that this package does not interpret stay in `rest`, which only the reader
and the writer open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from shared.jobs.command import Command
from shared.jobs.location import OUTPUT_STORE, Asset, Location, Pattern, Where
from shared.jobs.problem import Problem

if TYPE_CHECKING:
    from shared.jobs.search import Sweep

TRAINERS_ENVIRONMENT = Asset("trainyard@latest")  # the environment described in trainers/environment.yaml
LEFT_OUTPUT = "checkpoints"  # the output that is not archived: it is large, and useful to this run only
FROM_MODEL_TAG = "trainyard.from_model"  # in a template: the flag by which its script starts from a model's folder
FROM_MODEL = "from_model"  # the input with that folder
HOUR_PROPERTY = "trainyard.hour"  # the hour in which the job's run was created; Azure ML lists jobs by it
COMMAND = "command"  # the kind of job that runs one command on its nodes
PIPELINE = "pipeline"  # the kind of job whose steps are such jobs; the steps are in `rest`, see readers/pipeline.py
FOLDER, FILE = "folder", "file"  # kinds of data

Value = str | int | float  # bool among them
Opaque = Mapping[str, Any]


@dataclass(frozen=True)
class DataInput:
    """A data input of a job. `kind` is FOLDER, FILE or another Azure ML kind, '' if not given.

    `mode` says how the data reaches the node: ro_mount, download, direct.
    """

    path: Where = ""
    kind: str = ""
    mode: str = ""
    rest: Opaque = field(default_factory=dict)


@dataclass(frozen=True)
class JobOutput:
    """An output of a job. Without a `path`, the output is a folder of the run; see places.py."""

    path: Where | Pattern = ""
    kind: str = ""
    mode: str = ""
    asset: str = ""  # name and version under which the output is registered
    asset_version: str = ""
    rest: Opaque = field(default_factory=dict)


@dataclass(frozen=True)
class Environment:
    """An environment described in the job itself.

    `conda` is the content of a conda file, or the file's path until it is read. `context` is the build context's
    folder.
    """

    image: str = ""
    conda: Opaque | str = ""
    context: Where = ""
    rest: Opaque = field(default_factory=dict)

    def __str__(self) -> str:
        if self.context:
            return "a build context of its own"
        image = self.image or "an image of its own"
        return f"{image} with a conda file" if self.conda else image


@dataclass(frozen=True)
class JobSpec:
    """A job. An empty text and the number 0 mean "not set", and Azure ML's own default applies.

    `kind` is COMMAND, or PIPELINE, whose steps are in `rest`; other kinds are rejected. `restricted` are fields with
    effects beyond the job's own run, by the names under which a route may allow them.
    """

    name: str = ""
    kind: str = COMMAND
    title: str = ""
    description: str = ""
    experiment: str = ""
    command: Command = field(default_factory=Command)
    code: Where = ""  # registered, an uploaded folder, or a folder beside the job
    environment: str | Asset | Environment = ""
    cluster: str = ""
    machine: str = ""  # the VM size, on serverless compute
    nodes: int = 0
    processes: int = 0  # on each node
    distribution: str = ""  # pytorch, mpi, tensorflow, ray
    workers: int = 0  # of TensorFlow
    parameter_servers: int = 0
    launcher: Opaque = field(default_factory=dict)  # further fields of the distribution
    timeout_seconds: int = 0
    shared_memory: str = ""
    inputs: Mapping[str, Value | DataInput] = field(default_factory=dict)
    outputs: Mapping[str, JobOutput] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)  # environment variables of the processes
    tags: Mapping[str, str] = field(default_factory=dict)
    properties: Opaque = field(default_factory=dict)
    restricted: Opaque = field(default_factory=dict)
    sweep: Sweep | None = None  # a sweep with trials of this job; None for a single job
    rest: Opaque = field(default_factory=dict)

    @property
    def is_elastic(self) -> bool:
        """Whether the run consists of several single-node jobs, which find each other through the rendezvous."""
        return self.command.elastic

    @property
    def has_commands(self) -> bool:
        """Whether the job or one of its steps has a command."""
        return bool(self.command) or self.kind == PIPELINE

    @property
    def node_count(self) -> int:
        return self.nodes or 1

    @property
    def data(self) -> Mapping[str, DataInput]:
        """The data inputs, by name."""
        return {name: value for name, value in self.inputs.items() if isinstance(value, DataInput)}

    @property
    def values(self) -> dict[str, Value]:
        """The literal inputs: the job's parameters."""
        return {name: value for name, value in self.inputs.items() if not isinstance(value, DataInput)}


@dataclass(frozen=True)
class Layer:
    """A job, or a part of a job, to be merged over other layers. `off` are fields to remove from the layers below.

    `unread` are invalid values of number fields, by field: a job with such a value is never submitted. `problems` are
    parts that could not be read.
    """

    job: JobSpec = JobSpec()
    off: frozenset[str] = frozenset()
    unread: Opaque = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def with_job(self, job: JobSpec) -> Layer:
        return replace(self, job=job)


def uses_own_code(job: JobSpec) -> bool:
    """Whether the job's code must still be registered: the trainers' snapshot, or an uploaded folder."""
    return bool(job.code) and not isinstance(job.code, Asset)


def uses_own_environment(job: JobSpec) -> bool:
    return job.environment == TRAINERS_ENVIRONMENT


def output_path(run: str, name: str, is_file: bool = False) -> Location:
    """The folder (or file) of an output of the run without its own path."""
    return Location(OUTPUT_STORE, f"trainyard/{run}/{name}" + ("" if is_file else "/"))


def again(job: JobSpec, old: str, new: str, tag: str = "trainyard.retry_of", shared: tuple[str, ...] = ()) -> JobSpec:
    """This job under another run's name, with new output folders except for shared outputs."""
    outputs = {name: out if name in shared else _moved(out, name, new) for name, out in job.outputs.items()}
    return replace(job, name=new, tags={**job.tags, tag: old}, outputs=outputs)


def _moved(output: JobOutput, name: str, new: str) -> JobOutput:
    """The output in the new run's folder, if it is in the folder of any run."""
    path = output.path
    if not isinstance(path, Location) or path.store != OUTPUT_STORE or path.workspace:
        return output
    if not re.fullmatch(rf"trainyard/[^/]+/{re.escape(name)}/?", path.path):
        return output
    return replace(output, path=output_path(new, name, is_file=not path.path.endswith("/")))


def on_each_node(job: JobSpec) -> JobSpec:
    """The job without a distribution, for backends with their own distribution of processes."""
    return replace(job, distribution="", processes=0, workers=0, parameter_servers=0, launcher={})
