"""A job in words of our own, and what can be asked of it. Pure.

Readers make it (shared/jobs/readers, shared/jobs/batchai): of a trainer's template, of Azure ML's YAML and JSON, of a
Batch AI document. One writer, shared/adapters/azureml/document.py, makes Azure ML's job of it, which is also the form
in which rows keep it. What nobody here interprets travels along in `rest`, which only the reader and the writer open.
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

TRAINERS_ENVIRONMENT = Asset("trainyard@latest")  # the environment that trainers/environment.yaml describes
LEFT_OUTPUT = "checkpoints"  # the output that stays where the job wrote it: large, and of use to this run only
FROM_MODEL_TAG = "trainyard.from_model"  # in a template: the flag by which its script starts from a model's folder
FROM_MODEL = "from_model"  # the input that names that folder
HOUR_PROPERTY = "trainyard.hour"  # the hour in which the job's run was made; Azure ML lists jobs by it
COMMAND = "command"  # the kind of job that runs one command on its nodes
PIPELINE = "pipeline"  # the kind that has such jobs as its steps; they are in `rest`, see readers/pipeline.py
FOLDER, FILE = "folder", "file"  # kinds of data

Value = str | int | float  # bool among them
Opaque = Mapping[str, Any]


@dataclass(frozen=True)
class DataInput:
    """Data that a job reads. `kind` is FOLDER, FILE or another of Azure ML's, '' where nobody says; `mode` says how it
    reaches the node: ro_mount, download, direct."""

    path: Where = ""
    kind: str = ""
    mode: str = ""
    rest: Opaque = field(default_factory=dict)


@dataclass(frozen=True)
class Output:
    """What a job writes. Without a `path` it goes to a folder of the run's own; see places.py."""

    path: Where | Pattern = ""
    kind: str = ""
    mode: str = ""
    asset: str = ""  # the name under which it is registered, and its version
    asset_version: str = ""
    rest: Opaque = field(default_factory=dict)


@dataclass(frozen=True)
class Environment:
    """An environment that the job describes itself. `conda` is what a conda file says, or its path until it is read;
    `context` is the folder that an image is built from."""

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
    """A job. Text that is '' and a number that is 0 are not said, and Azure ML's own default holds.

    `kind` is COMMAND, or PIPELINE, whose steps are in `rest`; any other is refused. `restricted` are the parts that
    reach beyond the job's own run, by the names under which a route may allow them.
    """

    name: str = ""
    kind: str = COMMAND
    title: str = ""
    description: str = ""
    experiment: str = ""
    command: Command = field(default_factory=Command)
    code: Where = ""  # registered, a folder that was sent, or one beside the job
    environment: str | Asset | Environment = ""
    cluster: str = ""
    machine: str = ""  # the VM size, on serverless compute
    nodes: int = 0
    processes: int = 0  # on each node
    distribution: str = ""  # pytorch, mpi, tensorflow, ray
    workers: int = 0  # of TensorFlow
    parameter_servers: int = 0
    launcher: Opaque = field(default_factory=dict)  # what else its distribution says
    timeout_seconds: int = 0
    shared_memory: str = ""
    inputs: Mapping[str, Value | DataInput] = field(default_factory=dict)
    outputs: Mapping[str, Output] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)  # of its processes' environment
    tags: Mapping[str, str] = field(default_factory=dict)
    properties: Opaque = field(default_factory=dict)
    restricted: Opaque = field(default_factory=dict)
    sweep: Sweep | None = None  # over trials of this job; None for the job alone
    rest: Opaque = field(default_factory=dict)

    @property
    def is_elastic(self) -> bool:
        """Whether the run is several such jobs, one for each node, that meet by themselves."""
        return self.command.elastic

    @property
    def has_commands(self) -> bool:
        """Whether it says what is to run, itself or in its steps."""
        return bool(self.command) or self.kind == PIPELINE

    @property
    def node_count(self) -> int:
        return self.nodes or 1

    @property
    def data(self) -> Mapping[str, DataInput]:
        """The inputs that are data."""
        return {name: value for name, value in self.inputs.items() if isinstance(value, DataInput)}

    @property
    def values(self) -> dict[str, Value]:
        """The inputs that are values: the job's parameters."""
        return {name: value for name, value in self.inputs.items() if not isinstance(value, DataInput)}


@dataclass(frozen=True)
class Layer:
    """A job, or a part of one, that lies over others. `off` names what it switches off of those below.

    `unread` has what someone wrote where a number belongs, by the field that it was meant for: no job with it is sent.
    `problems` are what could not be read at all.
    """

    job: JobSpec = JobSpec()
    off: frozenset[str] = frozenset()
    unread: Opaque = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def with_job(self, job: JobSpec) -> Layer:
        return replace(self, job=job)


def uses_own_code(job: JobSpec) -> bool:
    """Whether the job's code is still to be registered: the trainers/ snapshot, or a folder that was sent."""
    return bool(job.code) and not isinstance(job.code, Asset)


def uses_own_environment(job: JobSpec) -> bool:
    return job.environment == TRAINERS_ENVIRONMENT


def output_path(run: str, name: str, is_file: bool = False) -> Location:
    """The folder, or the file, of a run's output that has no path of its own."""
    return Location(OUTPUT_STORE, f"trainyard/{run}/{name}" + ("" if is_file else "/"))


def again(job: JobSpec, old: str, new: str, tag: str = "trainyard.retry_of", shared: tuple[str, ...] = ()) -> JobSpec:
    """The same job under another run's name, with output folders of its own but for those that they share."""
    outputs = {name: out if name in shared else _moved(out, name, new) for name, out in job.outputs.items()}
    return replace(job, name=new, tags={**job.tags, tag: old}, outputs=outputs)


def _moved(output: Output, name: str, new: str) -> Output:
    """The output in the new run's folder, if it was in the folder of any run: one that goes on shares another's."""
    path = output.path
    if not isinstance(path, Location) or path.store != OUTPUT_STORE or path.workspace:
        return output
    if not re.fullmatch(rf"trainyard/[^/]+/{re.escape(name)}/?", path.path):
        return output
    return replace(output, path=output_path(new, name, is_file=not path.path.endswith("/")))


def on_each_node(job: JobSpec) -> JobSpec:
    """The job without a distribution: what starts it elsewhere spreads it itself."""
    return replace(job, distribution="", processes=0, workers=0, parameter_servers=0, launcher={})
