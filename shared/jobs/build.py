"""The one builder of jobs: from what was asked, by a drop or over HTTP, to exactly the job that will be sent. Pure.

Four layers, each over the one before: the template, the route's defaults, what someone wrote (a drop's job file, or the
whole job of a request), and the single values that a request names. Mappings such as inputs are merged by name; what a
layer sets to null is switched off. Then data and outputs get their places, and the result is held against the limits.

What the layers name ends in table rows, blob paths and the command line of the nodes, so nothing passes unchecked.
Problems name places in a JobSpec; readers.azureml.path_of says what the schema calls them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from shared.jobs.data import Data
from shared.jobs.limits import Limits, over_limits
from shared.jobs.model import Problem
from shared.jobs.parameters import Parameters, all_converted, bad_values, parameters, unknown_names
from shared.jobs.spec import (
    FILE,
    FOLDER,
    FROM_MODEL,
    FROM_MODEL_TAG,
    DataInput,
    JobSpec,
    Layer,
    Value,
    is_relative,
    over,
    values_it_lacks,
)
from shared.jobs.upload import is_folder
from shared.jobs.written_outputs import places_of, unfit_kind, unfit_output
from shared.kernel.names import NAME, path_problem

PROCESSES = "PET_NPROC_PER_NODE"  # torchrun's own variable
MOST_MEMBERS = 100  # jobs of an elastic run
SERVERLESS = "serverless"  # the compute that Azure ML itself gives a job
_ALONE = "queue_settings"  # what only a job on that has

# Azure ML puts literal inputs and the paths of files into the command as they are, and a shell reads that: these need
# no quotes anywhere.
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./][A-Za-z0-9_@%+=:,./-]*")
_CODE_ID = re.compile(r"azureml:(?:[\w.-]+:[\w.-]+|/subscriptions/[\w./()-]+/codes/[\w.-]+/versions/[\w.-]+)")
_TAG_LIMIT = 256  # characters of a tag's value, as Azure ML has it


@dataclass(frozen=True)
class Values:
    """Single values of a job: a route's defaults, or what a request names. None and 0 are left alone."""

    experiment: str = ""
    cluster: str = ""
    nodes: int = 0
    min_nodes: int = 0  # of an elastic run; 0 where nobody says
    timeout_seconds: float = 0.0
    processes: int = 0  # on each node
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JobOrder:
    """What a job is built from.

    `written` is what someone wrote; `template` and `defaults` are the administrator's. `data` is where the input `data`
    is to point, and `root` the drop that relative paths of `written` lie in ('' if there is none).
    `parameters` describes the template's literal inputs.
    """

    run: str
    title: str
    template: JobSpec
    limits: Limits
    defaults: Values = Values()
    written: Layer | None = None
    asked: Values = Values()
    data: Data | None = None
    root: Data | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    parameters: Parameters = field(default_factory=dict)
    from_model: str = ""  # the folder of the model to start from

    @property
    def own(self) -> JobSpec:
        """What of the job someone wrote."""
        return self.written.job if self.written else JobSpec()

    @property
    def is_whole(self) -> bool:
        """Whether what someone wrote is a whole job: it brings its own command, or there is nothing below it."""
        return self.template == JobSpec() or bool(self.own.command)


@dataclass(frozen=True)
class Built:
    """The job, but for the ids of code and environment, and all that is wrong with it. None if it can't be read."""

    job: JobSpec | None
    problems: tuple[Problem, ...]


def build(order: JobOrder) -> Built:
    """The same order gives the same job. A job with problems is never sent."""
    if order.written and order.written.problems:
        return Built(None, order.written.problems)
    order = _on_its_cluster(order)
    merged, known = _merged(order), _known_parameters(order)
    problems = [*_unfit(order.own), *_bad_parameters(order, known)]
    job = replace(merged.job, inputs=all_converted(known, _inputs(order, merged.job.inputs)))
    if order.from_model:
        job, fault = _starting_from(job, order.from_model)
        problems += fault
    job = replace(job, outputs=places_of(order.run, job.outputs), tags=_tags(job, order.tags))
    merged = merged.with_job(job)
    problems += [*_check(order, merged.job), *over_limits(merged, order.own, order.limits)]
    return Built(merged.job, tuple(_distinct(problems)))


def _tags(job: JobSpec, more: Mapping[str, str]) -> dict[str, str]:
    return {name: str(value)[:_TAG_LIMIT] for name, value in {**job.tags, **more}.items()}


# --- layers ----------------------------------------------------------------------------------------------------------


def _merged(order: JobOrder) -> Layer:
    bottom = Layer(JobSpec(title=order.title))
    layers = (
        Layer(order.template),
        _edge(order.defaults),
        _processes(order),
        order.written or Layer(),
        _edge(order.asked),
    )
    merged = reduce(over, layers, bottom)
    # Whoever writes a job may repeat its name and kind, but does not decide them.
    return merged.with_job(replace(merged.job, name=order.run, kind=JobSpec.kind))


def _edge(values: Values) -> Layer:
    return Layer(
        JobSpec(
            experiment=values.experiment,
            cluster=values.cluster,
            nodes=values.nodes,
            timeout_seconds=int(values.timeout_seconds),
            inputs=dict(values.parameters),
        )
    )


def _processes(order: JobOrder) -> Layer:
    """How many processes each node starts, as Azure ML is told it, or the launcher of an elastic job."""
    if order.defaults.processes and order.template.is_elastic:
        return Layer(JobSpec(variables={PROCESSES: str(order.defaults.processes)}))
    return Layer(JobSpec(processes=order.defaults.processes))


def _on_its_cluster(order: JobOrder) -> JobOrder:
    """A whole job that was written for serverless compute, on a cluster: without what only that one has."""
    serverless = order.is_whole and order.own.cluster in ("", SERVERLESS)
    if not (order.written and serverless and (order.asked.cluster or order.defaults.cluster)):
        return order
    kept = order.template != JobSpec() and _ALONE in order.limits.allow  # whoever allowed it on the route meant it
    restricted = {name: value for name, value in order.own.restricted.items() if kept or name != _ALONE}
    own = replace(order.own, cluster="", machine="", restricted=restricted)
    return replace(order, written=replace(order.written, job=own, off=order.written.off - {"cluster", "machine"}))


# --- inputs ----------------------------------------------------------------------------------------------------------


def _inputs(order: JobOrder, inputs: Mapping[str, Value | DataInput]) -> dict[str, Value | DataInput]:
    """Point the input `data` at the data, and every path that is relative to the drop into the drop."""
    inputs, given = dict(inputs), order.own.data
    own_path = "data" in given and given["data"].path
    if order.data and (order.data.asked or ("data" in inputs and not own_path)):
        inputs["data"] = _data_input(order.data, inputs.get("data"))
    for name, value in given.items():
        if order.root and is_relative(value.path):
            inputs[name] = replace(value, path=_inside(order.root, value.path))
    return inputs


def _data_input(data: Data, declared: Value | DataInput | None) -> DataInput:
    template = declared if isinstance(declared, DataInput) else DataInput()
    kind = {True: FILE, False: FOLDER, None: template.kind or FOLDER}[data.single_file]
    path = data.path.rstrip("/")
    return replace(template, kind=kind, path=f"{path}/" if kind == FOLDER else path)


def _inside(root: Data, below: str) -> str:
    if root.single_file:
        return root.path
    parts = [part for part in below.split("/") if part not in ("", ".")]
    return f"{root.path.rstrip('/')}/" + "/".join(parts) + ("/" if parts and below.endswith("/") else "")


def _starting_from(job: JobSpec, folder: str) -> tuple[JobSpec, list[Problem]]:
    """The job with that model's folder as an input, and the flag behind its command that says so to the script."""
    flag = job.tags.get(FROM_MODEL_TAG, "")
    if not re.fullmatch(r"--[a-z][a-z0-9-]*", flag):
        why = f"can't be used: the trainer's job has no tag {FROM_MODEL_TAG} with the flag that takes a model's folder."
        return job, [Problem("from_run", why, "no_start")]
    inputs = {**job.inputs, FROM_MODEL: DataInput(folder, FOLDER)}
    command = f"{job.command.strip()} {flag} ${{{{inputs.{FROM_MODEL}}}}}"
    return replace(job, inputs=inputs, command=command), []


# --- checks ----------------------------------------------------------------------------------------------------------


def _known_parameters(order: JobOrder) -> Parameters:
    """Those of the template; of a job whose command someone wrote, all of its literal inputs."""
    if not order.is_whole:
        return order.parameters or parameters(order.template, {}, "the template")
    below = over(Layer(order.template), _edge(order.defaults))
    return parameters(over(below, order.written or Layer()).job, {}, "the job")


def _bad_parameters(order: JobOrder, known: Parameters) -> Iterator[Problem]:
    """Parameters that the job has not, that can't have this value, or that a shell would read as more than a word."""
    for at, values in (("inputs", order.own.values), ("parameters", order.asked.parameters)):
        yield from unknown_names(known, values, at)
        yield from bad_values(known, values, at)
    yield from unquoted(order.asked.parameters)


def unquoted(values: Mapping[str, Any]) -> Iterator[Problem]:
    """Texts that a shell would read as more than a word."""
    for name, value in values.items():
        if isinstance(value, str) and not _PLAIN.fullmatch(value):
            yield Problem(
                f"parameters.{name}",
                f"is {value[:80]!r}. It becomes a part of a command, so it may hold letters, digits and "
                "_ @ % + = : , . / - only, and begin with no dash.",
                "bad_parameter",
            )


def _unfit(own: JobSpec) -> Iterator[Problem]:
    """What nobody may write into a job: files of this machine, outputs elsewhere, names that break a path."""
    yield from unfit_kind(own)
    if own.code and not (_CODE_ID.fullmatch(own.code) or is_folder(own.code)):
        yield Problem(
            "code",
            "must be a registered asset, azureml:<name>:<version>, or a folder that was sent: `trainyard submit "
            "job.yml` sends the folder that it names. Leave it out for the trainers.",
        )
    for name, value in own.inputs.items():
        yield from _unfit_input(name, value)
    for name, output in own.outputs.items():
        yield from unfit_output(name, output)


def _unfit_input(name: str, value: Value | DataInput) -> Iterator[Problem]:
    if not NAME.fullmatch(name):
        yield Problem(f"inputs.{name}", "use letters, digits, dashes and underscores in its name.")
    path = value.path if isinstance(value, DataInput) else ""
    if path.startswith(("/", "file:")):
        yield Problem(f"inputs.{name}.path", f"{path!r} is on your machine; use a path in the drop, or azureml:...")
    elif is_relative(path) and (below := path.removeprefix("./").strip("/")) and (fault := path_problem(below)):
        yield Problem(f"inputs.{name}.path", fault)


def _check(order: JobOrder, job: JobSpec) -> Iterator[Problem]:
    """What is wrong with the job as it would be sent."""
    if not job.cluster:
        yield Problem("cluster", "is missing: say where to train, nothing else names a cluster.", "cluster_missing")
    for field_name, name in (("cluster", job.cluster), ("experiment", job.experiment)):
        if name and not NAME.fullmatch(name):
            yield Problem(field_name, f"is {name[:80]!r}; use letters, digits, dashes and underscores.", "bad_name")
    if "data" in job.data and order.data is None and not order.written:
        yield Problem("data", "is missing: say which data to train on.", "data_missing")
    for name, value in job.data.items():
        yield from _check_path(order, name, value)
    if lacking := values_it_lacks(job):
        asked = ", ".join(f"${{{{{name}}}}}" for name in lacking)
        yield Problem("command", f"uses {asked}, which the job does not have among its inputs and outputs.")
    yield from _check_members(order, job)


def _check_path(order: JobOrder, name: str, value: DataInput) -> Iterator[Problem]:
    """A path that is relative to nothing, and one that would reach the command unquoted.

    Of a mounted folder the command gets a path of the node's; of a file also the file's own name; with mode direct all.
    """
    path = value.path
    if order.root is None and is_relative(path):
        yield Problem(f"inputs.{name}.path", "has no drop to be relative to; use azureml://...")
    told = path if value.mode == "direct" else path.rpartition("/")[2] if value.kind == FILE else ""
    if told and not _PLAIN.fullmatch(told):
        yield Problem(
            f"inputs.{name}.path",
            f"the command gets the name {told[:80]!r}, which a shell would read as more than a word. Rename it with "
            "letters, digits and _ @ % + = : , . - only.",
            "bad_name",
        )


def _check_members(order: JobOrder, job: JobSpec) -> Iterator[Problem]:
    """Whether the job can run on a changing number of nodes, if that is asked for."""
    fewest, most = order.asked.min_nodes or order.defaults.min_nodes, job.node_count
    if not job.is_elastic:
        if order.asked.min_nodes:
            why = "is a range, but the job does not start elastic.launch; give one number of nodes."
            yield Problem("nodes", why, "bad_nodes")
        return
    if most > MOST_MEMBERS:
        yield Problem("nodes", f"are {most}; an elastic run has at most {MOST_MEMBERS}.", "bad_nodes")
    if fewest > most:
        yield Problem("nodes", f"are to be at least {fewest}, and at most {most}.", "bad_nodes")


def _distinct(problems: list[Problem]) -> list[Problem]:
    """Each path once, with what was found first."""
    return list({problem.path: problem for problem in reversed(problems)}.values())[::-1]
