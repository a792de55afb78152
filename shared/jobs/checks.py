"""Check a job: forbidden values, values that would fail on a node, and values beyond the limits. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.features import modules
from shared.jobs.command import Reference, ReferenceGroup
from shared.jobs.kinds import KINDS, kind_of
from shared.jobs.limits import over_azures_limits, over_limits
from shared.jobs.location import DROPS_STORE, OUTPUT_STORE, Location, Pattern, Where, is_of_this_machine, is_relative
from shared.jobs.order import JobOrder
from shared.jobs.parameters import PLAIN, Parameters, unfit_space, wrong_parameters
from shared.jobs.problem import Problem
from shared.jobs.readers.expressions import expression
from shared.jobs.readers.place_text import PLACE_FORM
from shared.jobs.spec import (
    FILE,
    DataInput,
    JobSpec,
    Layer,
    Value,
)
from shared.jobs.torchrun import lonely_nodes
from shared.jobs.upload import unfit_code
from shared.kernel.names import NAME, path_problem

INPUT_MODES = ("ro_mount", "download", "direct", "eval_mount", "eval_download")
_STORE = re.compile(r"[\w-]+")
_OURS = "trainyard/"  # the folder of runs and uploads in the workspace's own container
_OTHER_KINDS = {
    "automl": "Submit a command job that trains, or a trainer.",
    "parallel": "Make it a step of a pipeline: Azure ML runs parallel jobs only as steps.",
    "spark": "Submit a command job; there are no Spark clusters.",
}


def faults(order: JobOrder, layer: Layer, schemas: Parameters) -> Iterator[Problem]:
    """Every problem of the job in its final form. One place may have several problems."""
    yield from unfit_code(order.own.code, order.limits.allows_code)
    yield from wrong_parameters(schemas, order.own.values, order.asked.parameters)
    yield from unfit_space(schemas, layer.job.sweep)
    yield from _unfit(order.own, layer.job)
    yield from _check(order, layer.job)
    yield from kind_of(layer.job).part_faults(layer.job, order.limits)
    yield from over_limits(layer, order.own, order.limits)
    yield from over_azures_limits(layer.job)


def _unfit(own: JobSpec, job: JobSpec) -> Iterator[Problem]:
    """Problems with forbidden values: local files, foreign outputs, and names that break a path."""
    yield from _unfit_kind(own)
    for name, value in own.inputs.items():
        yield from _unfit_input(name, value)
    for name, output in own.outputs.items():
        yield from _unfit_output(name, output.path and job.outputs[name].path)


def _unfit_input(name: str, value: Value | DataInput) -> Iterator[Problem]:
    if not NAME.fullmatch(name):
        yield Problem(f"inputs.{name}", "use letters, digits, dashes and underscores in its name.")
    path = value.path if isinstance(value, DataInput) else ""
    if is_of_this_machine(path):
        yield Problem(f"inputs.{name}.path", f"{path!r} is on your machine; use a path in the drop, or {PLACE_FORM}.")
    elif (
        isinstance(path, str)
        and is_relative(path)
        and (below := path.removeprefix("./").strip("/"))
        and (fault := path_problem(below))
    ):
        yield Problem(f"inputs.{name}.path", fault)


def _check(order: JobOrder, job: JobSpec) -> Iterator[Problem]:
    """Problems of the job in its final form."""
    if not job.cluster:
        yield Problem("cluster", "is missing: name the cluster to train on.", "cluster_missing")
    if job.experiment and not NAME.fullmatch(job.experiment):
        words = f"is {job.experiment[:80]!r}; use letters, digits, dashes and underscores."
        yield Problem("experiment", words, "bad_name")
    if "data" in job.data and order.data is None and not order.written:
        yield Problem("data", "is missing: name the data to train on, such as drops/mnist/digits-1.", "data_missing")
    for name, value in job.data.items():
        yield from _check_path(order, name, value)
        if value.mode and value.mode not in INPUT_MODES and kind_of(job).runs_a_command:
            yield Problem(f"inputs.{name}.mode", f"is {value.mode[:40]!r}; choose one of {', '.join(INPUT_MODES)}.")
    if lacking := _values_it_lacks(job):
        missing_values = ", ".join(map(expression, lacking))
        yield Problem("command", f"uses {missing_values}, which the job does not have among its inputs and outputs.")
    for feature in modules("limits"):
        yield from feature.problems(order, job)
    if problem := lonely_nodes(job):
        yield problem


def _check_path(order: JobOrder, name: str, value: DataInput) -> Iterator[Problem]:
    """Problems of a relative path without a drop, and of a path that would enter the command unquoted.

    For a mounted folder, the command gets a path on the node; for a file, also the file's own name; with mode direct,
    the whole path.
    """
    path = str(value.path)
    if order.root is None and is_relative(value.path):
        yield Problem(f"inputs.{name}.path", f"is a relative path, but there is no drop; use {PLACE_FORM}.")
    word = path if value.mode == "direct" else path.rpartition("/")[2] if value.kind == FILE else ""
    if word and not PLAIN.fullmatch(word):
        yield Problem(
            f"inputs.{name}.path",
            f"the command gets the name {word[:80]!r}, which a shell would not read as one word. Rename it with "
            "letters, digits and _ @ % + = : , . - only.",
            "bad_name",
        )


def _values_it_lacks(job: JobSpec) -> list[Reference]:
    """References in the command to inputs and outputs unknown to the job."""
    names = {ReferenceGroup.INPUT: job.inputs, ReferenceGroup.OUTPUT: job.outputs}
    return [each for each in dict.fromkeys(job.command.required) if each.name not in names[each.group]]


def _unfit_output(name: str, path: Where | Pattern) -> Iterator[Problem]:
    """Problems of an output. `path` is its place with the run's name filled in, '' without a path."""
    if not NAME.fullmatch(name):
        yield Problem(f"outputs.{name}", "use letters, digits, dashes and underscores in its name.")
    if path and (fault := _unfit_path(path)):
        yield Problem(f"outputs.{name}.path", fault)


def _unfit_path(path: Where | Pattern) -> str | None:
    """Why an output can't be at this path: the path must be in a datastore, outside of drops and of other runs'
    folders.
    """
    if not isinstance(path, Location) or not _STORE.fullmatch(path.store) or not path.path:
        return f"must lie in a datastore: {PLACE_FORM}/. Or leave it out."
    if fault := path_problem(path.path.strip("/")):
        return fault
    if path.store == DROPS_STORE:
        return "is in the drops container, where each file may start a run. Choose another datastore, or leave it out."
    if path.store == OUTPUT_STORE and f"{path.path}/".startswith(_OURS):
        return "is in the folder of other runs. Choose another folder, or leave it out."
    return None


def _unfit_kind(job: JobSpec) -> Iterator[Problem]:
    """A problem for an unsupported kind of job."""
    if job.kind not in KINDS:
        instead = _OTHER_KINDS.get(job.kind, "")
        yield Problem(
            "kind", f"is {job.kind[:40]!r}; Trainyard runs command jobs, sweeps and pipelines. {instead}".rstrip()
        )
