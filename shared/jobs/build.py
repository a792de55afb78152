"""The one builder of jobs: from what was asked, by a drop or over HTTP, to exactly the job that will be sent. Pure.

Four layers, each over the one before: the template, the route's defaults, what someone wrote (a drop's job file, or the
whole job of a request), and the single values that a request names. Mappings such as inputs are merged by name; a key
that a layer sets to null is switched off. Then data and outputs get their places, numbers are converted, and the result
is checked against the limits.

What the layers name ends in table rows, blob paths and the command line of the nodes, so nothing passes unchecked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shared.jobs.data import Data
from shared.jobs.job import (
    FROM_MODEL,
    FROM_MODEL_TAG,
    SCHEMA,
    Job,
    cluster,
    is_elastic,
    is_relative,
    mapping,
    nodes,
    values_it_lacks,
)
from shared.jobs.limits import Limits, converted, over_limits
from shared.jobs.model import Problem
from shared.jobs.parameters import Parameters, all_converted, bad_values, parameters, unknown_names
from shared.jobs.upload import is_folder
from shared.jobs.written_outputs import places_of, unfit_kind, unfit_output
from shared.kernel.names import NAME, path_problem

MERGED = ("inputs", "outputs", "environment_variables", "tags", "properties", "resources", "limits", "distribution")
OURS = ("name", "type", "$schema")  # whoever writes a job may repeat them, but does not decide them
PROCESSES = "PET_NPROC_PER_NODE"  # torchrun's own variable
MOST_MEMBERS = 100  # jobs of an elastic run

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
    template: Job
    limits: Limits
    defaults: Values = Values()
    written: Job = field(default_factory=dict)
    asked: Values = Values()
    data: Data | None = None
    root: Data | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    parameters: Parameters = field(default_factory=dict)
    from_model: str = ""  # the folder of the model to start from


@dataclass(frozen=True)
class Built:
    """The job, but for the ids of code and environment, and all that is wrong with it."""

    job: Job
    problems: tuple[Problem, ...]


def build(order: JobOrder) -> Built:
    """The same order gives the same job. A job with problems is never sent."""
    shapes = list(_misshapen(order.written))
    if shapes:
        return Built({}, tuple(shapes))
    order = _on_its_cluster(order)
    job = _layers(order)
    known = _known_parameters(order)
    problems = [*_unfit(order.written), *_bad_parameters(order, known)]
    job["inputs"] = all_converted(known, _inputs(order, mapping(job.get("inputs"))))
    if order.from_model:
        job, fault = _starting_from(job, order.from_model)
        problems += fault
    job["outputs"] = places_of(order.run, mapping(job.get("outputs")))
    job["tags"] = {key: str(value)[:_TAG_LIMIT] for key, value in {**mapping(job.get("tags")), **order.tags}.items()}
    job = converted({key: value for key, value in job.items() if value not in (None, {})})
    return Built(
        job, tuple(_distinct([*problems, *_check(order, job), *over_limits(job, order.written, order.limits)]))
    )


# --- layers ----------------------------------------------------------------------------------------------------------


def _layers(order: JobOrder) -> Job:
    job: Job = {"$schema": SCHEMA, "type": "command", "name": order.run, "display_name": order.title}
    for layer in (order.template, _edge(order.defaults), _processes(order), order.written, _edge(order.asked)):
        job = _over(job, {key: value for key, value in layer.items() if key not in OURS})
    return job


def _over(below: Job, above: Job) -> Job:
    """The job with another layer on it. Null switches off what lies below."""
    merged = dict(below)
    for key, value in above.items():
        both = key in MERGED and isinstance(value, dict) and isinstance(below.get(key), dict)
        merged[key] = {**below[key], **value} if both else value
    return merged


def _edge(values: Values) -> Job:
    edge: Job = {}
    if values.experiment:
        edge["experiment_name"] = values.experiment
    if values.cluster:
        edge["compute"] = f"azureml:{values.cluster}"
    if values.nodes:
        edge["resources"] = {"instance_count": values.nodes}
    if values.timeout_seconds:
        edge["limits"] = {"timeout": int(values.timeout_seconds)}
    if values.parameters:
        edge["inputs"] = dict(values.parameters)
    return edge


def _processes(order: JobOrder) -> Job:
    """How many processes each node starts, as Azure ML is told it, or the launcher of an elastic job."""
    if not order.defaults.processes:
        return {}
    if is_elastic(order.template):
        return {"environment_variables": {PROCESSES: str(order.defaults.processes)}}
    return {"distribution": {"process_count_per_instance": order.defaults.processes}}


def _on_its_cluster(order: JobOrder) -> JobOrder:
    """A whole job that was written for serverless compute, on a cluster: without the keys that only that one has."""
    whole = not order.template or "command" in order.written
    serverless = whole and order.written.get("compute") in (None, "serverless", "azureml:serverless")
    if not (serverless and (order.asked.cluster or order.defaults.cluster)):
        return order
    kept = order.template and "queue_settings" in order.limits.allow  # whoever allowed it on the route meant it
    left_out = ("compute",) if kept else ("compute", "queue_settings")
    written = {key: value for key, value in order.written.items() if key not in left_out}
    if resources := mapping(written.get("resources")):
        written["resources"] = {key: value for key, value in resources.items() if key != "instance_type"}
    return replace(order, written=written)


# --- inputs ----------------------------------------------------------------------------------------------------------


def _inputs(order: JobOrder, inputs: Job) -> Job:
    """Point the input `data` at the data, and every path that is relative to the drop into the drop."""
    given = mapping(order.written.get("inputs"))
    own_path = isinstance(given.get("data"), dict) and "path" in given["data"]
    if order.data and (order.data.asked or ("data" in inputs and not own_path)):
        inputs["data"] = _data_input(order.data, mapping(inputs.get("data")))
    for name, value in given.items():
        if order.root and isinstance(value, dict) and is_relative(value.get("path")):
            inputs[name] = {**value, "path": _inside(order.root, value["path"])}
    return inputs


def _data_input(data: Data, template: Job) -> Job:
    kind = {True: "uri_file", False: "uri_folder", None: template.get("type", "uri_folder")}[data.single_file]
    path = data.path.rstrip("/")
    return {**template, "type": kind, "path": f"{path}/" if kind == "uri_folder" else path}


def _inside(root: Data, below: str) -> str:
    if root.single_file:
        return root.path
    parts = [part for part in below.split("/") if part not in ("", ".")]
    return f"{root.path.rstrip('/')}/" + "/".join(parts) + ("/" if parts and below.endswith("/") else "")


def _starting_from(job: Job, folder: str) -> tuple[Job, list[Problem]]:
    """The job with that model's folder as an input, and the flag behind its command that says so to the script."""
    flag = str(mapping(job.get("tags")).get(FROM_MODEL_TAG, ""))
    if not re.fullmatch(r"--[a-z][a-z0-9-]*", flag):
        why = f"can't be used: the trainer's job has no tag {FROM_MODEL_TAG} with the flag that takes a model's folder."
        return job, [Problem("from_run", why, "no_start")]
    inputs = {**mapping(job.get("inputs")), FROM_MODEL: {"type": "uri_folder", "path": folder}}
    return {
        **job,
        "inputs": inputs,
        "command": f"{str(job['command']).strip()} {flag} ${{{{inputs.{FROM_MODEL}}}}}",
    }, []


# --- checks ----------------------------------------------------------------------------------------------------------


def _misshapen(written: Job) -> Iterator[Problem]:
    for key in MERGED:
        value = written.get(key)
        if value is not None and not isinstance(value, dict):
            yield Problem(key, f"must be a mapping, it is a {type(value).__name__}.")
    for part in ("tags", "environment_variables"):
        for name, value in mapping(written.get(part)).items():
            if not isinstance(value, str | int | float):
                yield Problem(f"{part}.{name}", f"must be text, it is a {type(value).__name__}.")


def _known_parameters(order: JobOrder) -> Parameters:
    """Those of the template; of a job whose command someone wrote, all of its literal inputs."""
    if order.template and "command" not in order.written:
        return order.parameters or parameters(order.template, None, "the template")
    return parameters(_over(_over(order.template, _edge(order.defaults)), order.written), None, "the job")


def _bad_parameters(order: JobOrder, known: Parameters) -> Iterator[Problem]:
    """Parameters that the job has not, that can't have this value, or that a shell would read as more than a word."""
    given = mapping(order.written.get("inputs"))
    written = {name: value for name, value in given.items() if isinstance(value, str | int | float)}
    for at, values in (("inputs", written), ("parameters", order.asked.parameters)):
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


def _unfit(written: Job) -> Iterator[Problem]:
    """What nobody may write into a job: files of this machine, outputs elsewhere, names that break a path."""
    yield from unfit_kind(written)
    if written.get("code") and not (_CODE_ID.fullmatch(str(written["code"])) or is_folder(written["code"])):
        yield Problem(
            "code",
            "must be a registered asset, azureml:<name>:<version>, or a folder that was sent: `trainyard submit "
            "job.yml` sends the folder that it names. Leave it out for the trainers.",
        )
    for name, value in mapping(written.get("inputs")).items():
        yield from _unfit_input(name, value)
    for name, value in mapping(written.get("outputs")).items():
        yield from unfit_output(name, value)


def _unfit_input(name: str, value: Any) -> Iterator[Problem]:
    if not NAME.fullmatch(name):
        yield Problem(f"inputs.{name}", "use letters, digits, dashes and underscores in its name.")
    if isinstance(value, list) or value is None:
        yield Problem(f"inputs.{name}", "must be a value, or a mapping with type and path.")
    path = value.get("path") if isinstance(value, dict) else None
    if isinstance(path, str):
        if path.startswith(("/", "file:")):
            yield Problem(f"inputs.{name}.path", f"{path!r} is on your machine; use a path in the drop, or azureml:...")
        elif is_relative(path) and (below := path.removeprefix("./").strip("/")) and (fault := path_problem(below)):
            yield Problem(f"inputs.{name}.path", fault)


def _check(order: JobOrder, job: Job) -> Iterator[Problem]:
    """What is wrong with the job as it would be sent."""
    if not cluster(job):
        yield Problem("compute", "is missing: say where to train, nothing else names a cluster.", "cluster_missing")
    for key, name in (("compute", cluster(job)), ("experiment_name", str(job.get("experiment_name")))):
        if name and not NAME.fullmatch(name):
            yield Problem(key, f"is {name[:80]!r}; use letters, digits, dashes and underscores.", "bad_name")
    inputs = mapping(job.get("inputs"))
    if isinstance(inputs.get("data"), dict) and order.data is None and not order.written:
        yield Problem("data", "is missing: say which data to train on.", "data_missing")
    for name, value in inputs.items():
        yield from _check_path(order, name, value)
    if lacking := values_it_lacks(job):
        asked = ", ".join(f"${{{{{name}}}}}" for name in lacking)
        yield Problem("command", f"uses {asked}, which the job does not have among its inputs and outputs.")
    yield from _check_members(order, job)


def _check_path(order: JobOrder, name: str, value: Any) -> Iterator[Problem]:
    """A path that is relative to nothing, and one that would reach the command unquoted.

    Of a mounted folder the command gets a path of the node's; of a file also the file's own name; with mode direct all.
    """
    path = str(value.get("path", "")) if isinstance(value, dict) else ""
    if not path:
        return
    if order.root is None and is_relative(path):
        yield Problem(f"inputs.{name}.path", "has no drop to be relative to; use azureml://...")
    direct = value.get("mode") == "direct"
    told = path if direct else path.rpartition("/")[2] if value.get("type") == "uri_file" else ""
    if told and not _PLAIN.fullmatch(told):
        yield Problem(
            f"inputs.{name}.path",
            f"the command gets the name {told[:80]!r}, which a shell would read as more than a word. Rename it with "
            "letters, digits and _ @ % + = : , . - only.",
            "bad_name",
        )


def _check_members(order: JobOrder, job: Job) -> Iterator[Problem]:
    """Whether the job can run on a changing number of nodes, if that is asked for."""
    fewest, most = order.asked.min_nodes or order.defaults.min_nodes, nodes(job)
    if not is_elastic(job):
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
