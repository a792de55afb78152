"""Access the parts of a pipeline's document. Pure.

https://learn.microsoft.com/azure/machine-learning/reference-yaml-job-pipeline
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shared.jobs.problem import Problem
from shared.jobs.spec import COMMAND, PIPELINE

SWEEP = "sweep"
PARALLEL = "parallel"  # runs a script on mini-batches of its input; only steps are of this kind
JOBS = "jobs"
_PARENT_INPUT = re.compile(r"\$\{\{\s*parent\.inputs\.([\w-]+)\s*\}\}")
DEEPEST = 10  # pipelines within pipelines
Json = dict[str, Any]


def read_pipeline(document: Mapping[str, Any]) -> tuple[Json, tuple[Problem, ...]]:
    """The document with a pipeline's settings moved to the keys of other jobs.

    These are its cluster, and the number of nodes of its largest step.
    """
    document, problems = _of_component(document)
    if problems:
        return {}, problems
    jobs, settings = document.get(JOBS), document.get("settings")
    if not isinstance(jobs, Mapping) or not jobs:
        return {}, (Problem(JOBS, "must be a mapping from names to steps; a pipeline has at least one step."),)
    if not isinstance(settings, Mapping | None):
        return {}, (Problem("settings", f"must be a mapping, it is a {type(settings).__name__}."),)
    rest = dict(settings or {})
    compute = document.get("compute") or rest.get("default_compute")
    rest.pop("default_compute", None)
    jobs = with_bound_resources(jobs, mapping(document.get("inputs")))
    widest = max(map(_nodes, jobs.values()))
    made = {
        **document,
        JOBS: jobs,
        "resources": {"instance_count": widest},
        **({"compute": compute} if compute else {}),
    }
    return {**made, "settings": rest} if rest else {k: v for k, v in made.items() if k != "settings"}, ()


def _of_component(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[Problem, ...]]:
    """The pipeline that runs a pipeline component, as a pipeline with the component's steps: the component's
    defaults for the inputs, and its types of the outputs.

    https://github.com/Azure/azureml-examples/tree/main/cli/endpoints/batch/deploy-pipelines has four.
    """
    if (component := document.get("component")) is None:
        return document, ()
    if JOBS in document:
        return document, (Problem("component", "is not allowed beside jobs; keep only one of them."),)
    if not isinstance(component, Mapping) or not isinstance(component.get(JOBS), Mapping):
        words = (
            "must be the file of a pipeline component; name a registered one as a step: jobs: {run: {component: ...}}."
        )
        return document, (Problem("component", words),)
    given = mapping(document.get("inputs"))
    declared = mapping(component.get("inputs"))
    defaults = {name: each["default"] for name, each in declared.items() if "default" in mapping(each)}
    inputs = {**defaults, **given}
    needed = [name for name, each in declared.items() if not _is_given(inputs.get(name)) and not _optional(each)]
    if needed:
        return document, (
            Problem(f"inputs.{needed[0]}", "has no value or path, and the component needs it; write one."),
        )
    outputs = {
        name: {**mapping(each), **mapping(mapping(document.get("outputs")).get(name))}
        for name, each in mapping(component.get("outputs")).items()
    }
    rest = {key: value for key, value in document.items() if key != "component"}
    return {**rest, JOBS: component[JOBS], "inputs": inputs, "outputs": outputs}, ()


def _is_given(value: Any) -> bool:
    return value is not None and (not isinstance(value, Mapping) or bool(value.get("path")))


def _optional(declared: Any) -> bool:
    return str(mapping(declared).get("optional", False)).lower() == "true"


def kind_of(body: Mapping[str, Any]) -> str:
    """The kind of a step, from the step itself or from its component."""
    component = mapping(body.get("component"))
    kind = body.get("type") or component.get("type") or (SWEEP if "search_space" in body else COMMAND)
    return str(kind)


def holder_of(body: Mapping[str, Any]) -> Any:
    """The part with the step's command: its component, the trial of a sweep, or the step itself."""
    return body.get("component") or body.get("trial") or body


def with_bound_resources(jobs: Mapping[str, Any], values: Mapping[str, Any]) -> Json:
    """The steps with their clusters and numbers of nodes filled in, if these are bound to inputs of the pipeline."""
    return {name: _filled(body, values) if isinstance(body, Mapping) else body for name, body in jobs.items()}


def _filled(body: Mapping[str, Any], values: Mapping[str, Any]) -> Json:
    made = {**body, **({"compute": compute} if (compute := _value(body.get("compute"), values)) else {})}
    if nodes := _value((resources := mapping(body.get("resources"))).get("instance_count"), values):
        made["resources"] = {**resources, "instance_count": nodes}
    if isinstance(within := mapping(component := body.get("component")).get(JOBS), Mapping):
        declared = mapping(component).get("inputs")
        below = {name: mapping(each).get("default") for name, each in mapping(declared).items()}
        below |= {name: _value(given, values) for name, given in mapping(body.get("inputs")).items()}
        made["component"] = {**mapping(component), JOBS: with_bound_resources(within, below)}
    return made


def _value(said: Any, values: Mapping[str, Any]) -> Any:
    """The value; for ${{parent.inputs.NAME}}, the value of this input."""
    bound = _PARENT_INPUT.fullmatch(said) if isinstance(said, str) else None
    return values.get(bound[1]) if bound else said


def on_one_cluster(jobs: Any) -> Any:
    """The steps without their own clusters: each step runs on the pipeline's cluster."""
    if not isinstance(jobs, Mapping):
        return jobs
    return {name: _without_compute(body) for name, body in jobs.items()}


def _without_compute(body: Any) -> Any:
    if not isinstance(body, Mapping):
        return body
    made = {key: value for key, value in body.items() if key != "compute"}
    if isinstance(component := body.get("component"), Mapping):
        made["component"] = {**component, **({JOBS: on_one_cluster(component[JOBS])} if JOBS in component else {})}
        made["component"].pop("compute", None)
    return made


def _nodes(body: Any) -> int:
    """The largest number of nodes of a step, including its inner steps."""
    step = mapping(body)
    holder = mapping(holder_of(step))
    if kind_of(step) == PIPELINE:
        return max(map(_nodes, mapping(holder.get(JOBS)).values()), default=1)
    given = [mapping(each.get("resources")).get("instance_count") for each in (step, holder)]
    return max((count for count in given if type(count) is int), default=1)


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
