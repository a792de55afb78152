"""From a request over HTTP to exactly the job that will be sent. Pure, like jobspec, which does the same for drops.

What a request names ends in table rows, blob paths and the command line of the nodes, so nothing passes unchecked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from shared.api.requests import NodeRange, RunRequest, read_name
from shared.drops.model import DropKey
from shared.jobs import jobspec
from shared.jobs.jobspec import mapping
from shared.jobs.model import Problem
from shared.jobs.routes_file import NAME, NUMBERS, Route
from shared.kernel.errors import Impossible
from shared.kernel.names import path_problem
from shared.runs.elastic import problem

RESUBMISSIONS = int(NUMBERS["resubmissions"][0])  # of a run whose job has no route

# Azure ML puts a literal input into the command as it is, and a shell reads that: these need no quotes anywhere.
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./][A-Za-z0-9_@%+=:,./-]*")
_AZUREML = re.compile(
    r"azureml://(?:subscriptions/[\w.-]+/resource[gG]roups/[\w.()-]+/workspaces/[\w.-]+/)?datastores/(\w+)/paths/(.+)"
)
_EXPERIMENT = "asked"  # of a whole job that names none


@dataclass(frozen=True)
class Data:
    """Where data are: a path as Azure ML writes it, and its place below the drops container if it is there."""

    path: str
    below_drops: str = ""

    @property
    def drop(self) -> DropKey | None:
        """The drop that the path leads to or into."""
        return DropKey.of(self.below_drops) if "/" in self.below_drops.rstrip("/") else None


@dataclass(frozen=True)
class Order:
    """What a job is built from. `basis` is a template or a whole job, `route` has its defaults if it has any."""

    run: str
    request: RunRequest
    basis: dict[str, Any]
    route: Route | None = None
    data: Data | None = None
    single_file: bool | None = None  # None where nobody looked: the basis says what it takes


def choose(what: str, name: str, choices: Iterable[str]) -> str:
    """The name, which must be one of the choices."""
    known = sorted(choices)
    if name not in known:
        raise Impossible(
            f"There is no {what} {name!r}; there are: {', '.join(known) or 'none'}.", f"unknown_{what.split()[-1]}"
        )
    return name


def read_data(text: str) -> Data:
    """`drops/<route>/<name>`, `<datastore>/<path>`, or the azureml:// path of one of these."""
    match = _AZUREML.fullmatch(text)
    datastore, _, path = (match[1], "/", match[2]) if match else text.partition("/")
    below = path.strip("/")
    fault = path_problem(below) if below else "it leads to no folder or file."
    if "${{" in text:
        fault = "Azure ML would read ${{ as an expression."
    if fault or not re.fullmatch(r"\w{1,255}", datastore, re.ASCII):
        why = fault or "it begins with no datastore's name."
        forms = "drops/<route>/<name>, <datastore>/<path> or azureml://datastores/<datastore>/paths/<path>"
        raise Impossible(f"data is {text[:120]!r}: {why} Use {forms}.", "bad_data")
    if match and "/workspaces/" in text.partition("/datastores/")[0]:
        return Data(text)
    return Data(f"azureml://datastores/{datastore}/paths/{path}", path if datastore == jobspec.DROPS_DATASTORE else "")


def build(order: Order) -> dict[str, Any]:
    """The job, but for the ids of code and environment. The same order gives the same job.

    Raises Impossible for what can't be asked of this basis.
    """
    request, route, basis = order.request, order.route, order.basis
    job: dict[str, Any] = {"display_name": _title(order), **{k: v for k, v in basis.items() if k not in jobspec.OURS}}
    job |= {"$schema": jobspec.SCHEMA, "type": "command", "name": order.run}
    job["experiment_name"] = request.experiment or (route and route.experiment) or _experiment(basis)
    job["compute"] = f"azureml:{_cluster(order)}"
    if nodes := _most_nodes(request) or (route and route.nodes):
        job["resources"] = {**mapping(basis.get("resources")), "instance_count": nodes}
    if timeout := request.timeout_seconds or (route and route.timeout_seconds):
        job["limits"] = {**mapping(basis.get("limits")), "timeout": int(timeout)}
    if inputs := _inputs(order):
        job["inputs"] = inputs
    if "outputs" in basis:
        job["outputs"] = jobspec.own_outputs(order.run, basis["outputs"])
    job["tags"] = {**mapping(basis.get("tags")), **_tags(order)}
    _check(job, order)
    return job


def bounds(request: RunRequest, route: Route | None) -> tuple[int, int]:
    """The fewest nodes of an elastic run, 0 where nobody says, and how many jobs may replace lost ones."""
    if isinstance(request.nodes, NodeRange):
        fewest = int(request.nodes.min)
    else:
        fewest = 0 if route is None or request.nodes else route.min_nodes
    asked = request.resubmissions
    return fewest, int(asked) if asked is not None else route.resubmissions if route else RESUBMISSIONS


def _most_nodes(request: RunRequest) -> int:
    nodes = request.nodes
    return int(nodes.max if isinstance(nodes, NodeRange) else nodes or 0)


def again(job: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """The same job under another run's name, with output folders of its own."""
    outputs = {name: _moved(value, name, old, new) for name, value in mapping(job.get("outputs")).items()}
    repeated = {**job, "name": new, "tags": {**mapping(job.get("tags")), "trainyard.retry_of": old}}
    return {**repeated, "outputs": outputs} if outputs else repeated


def _moved(output: Any, name: str, old: str, new: str) -> Any:
    own = isinstance(output, dict) and output.get("path") == jobspec.output_path(old, name)
    return {**output, "path": jobspec.output_path(new, name)} if own else output


def _title(order: Order) -> str:
    request = order.request
    what = request.trainer or request.template or order.run
    return f"{what}: {request.data}"[:200] if request.data else what


def _experiment(basis: dict[str, Any]) -> str:
    return str(basis.get("experiment_name") or _EXPERIMENT)


def _cluster(order: Order) -> str:
    request, route = order.request, order.route
    if name := request.cluster or (route and route.cluster) or jobspec.cluster(order.basis):
        return name
    raise Impossible("Say where to train: cluster is missing, and nothing else names one.", "cluster_missing")


def _tags(order: Order) -> dict[str, str]:
    drop = order.data.drop if order.data else None
    tags = {"trainyard.route": order.request.template or "", "trainyard.drop": str(drop or "")[:256]}
    return {name: value for name, value in tags.items() if value}


def _inputs(order: Order) -> dict[str, Any]:
    inputs = dict(mapping(order.basis.get("inputs")))
    literals = sorted(name for name, value in inputs.items() if not isinstance(value, dict))
    for name, value in order.request.parameters.items():
        choose("parameter", name, literals)
        if isinstance(value, str) and not _PLAIN.fullmatch(value):
            raise Impossible(
                f"Parameter {name} is {value[:80]!r}. It becomes a part of a command, so it may hold letters, digits "
                "and _ @ % + = : , . / - only, and begin with no dash.",
                "bad_parameter",
            )
        inputs[name] = value
    if order.data:
        inputs["data"] = _data_input(order, mapping(inputs.get("data")))
    elif isinstance(inputs.get("data"), dict) and order.request.job is None:
        raise Impossible("Say which data to train on: data is missing.", "data_missing")
    return inputs


def _data_input(order: Order, template: dict[str, Any]) -> dict[str, Any]:
    kind = {True: "uri_file", False: "uri_folder", None: template.get("type", "uri_folder")}[order.single_file]
    path = order.data.path.rstrip("/") if order.data else ""
    return {**template, "type": kind, "path": f"{path}/" if kind == "uri_folder" else path}


def _check(job: dict[str, Any], order: Order) -> None:
    """Whether a job with these values may go to the nodes."""
    read_name("experiment", job["experiment_name"])
    read_name("cluster", jobspec.cluster(job))
    if fault := problem(job, bounds(order.request, order.route)[0]):
        raise Impossible(fault, "bad_nodes")
    if order.request.job is None:
        return
    problems = list(jobspec.unfit(job, order.basis))
    for name, value in mapping(order.basis.get("inputs")).items():
        if not NAME.fullmatch(str(name)):
            problems.append(Problem(f"inputs.{name}", "use letters, digits, dashes and underscores."))
        if isinstance(value, dict) and jobspec.is_relative(value.get("path")):
            problems.append(Problem(f"inputs.{name}.path", "has no drop to be relative to; use azureml://..."))
    if problems:
        raise Impossible("; ".join(f"job.{p.path}: {p.message}" for p in problems), "bad_job")
