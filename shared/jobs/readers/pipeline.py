"""Read a pipeline's steps: each step as a separate job, with the names of its predecessors. Pure.

The pipeline itself stays in `rest`, as it was written. `with_steps` changes only what the system must fill in: code,
environments, variables, clusters and time limits.
https://learn.microsoft.com/azure/machine-learning/reference-yaml-job-pipeline
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from shared.jobs.location import Asset
from shared.jobs.problem import Problem
from shared.jobs.readers import azureml
from shared.jobs.readers.pipeline_document import JOBS, PARALLEL, SWEEP, holder_of, kind_of, mapping
from shared.jobs.readers.place_text import has_expression, place_text, read_asset
from shared.jobs.search import MOST_TRIALS
from shared.jobs.spec import COMMAND, PIPELINE, JobSpec

_OF_COMPONENT = ("command", "code", "environment", "environment_variables", "distribution", "resources")
_OF_STEP = ("compute", "environment", "environment_variables", "distribution", "resources", "identity", "services")
_OF_TASK = ("code", "environment")
_RUNS = ("component", "trial", "command", "code")
_WITH_JOB = (COMMAND, SWEEP, PARALLEL)
_FILES = "additional_includes"  # the SDK would read these files from the local disk
_FROM = re.compile(r"\$\{\{\s*parent\.jobs\.([\w-]+)\.outputs\.")
_OLD = re.compile(r"\$\{\{\s*(?=(?:jobs|inputs|outputs)\.)")  # bindings in the syntax of 2021
_USED = re.compile(r"\$\{\{\s*(inputs|outputs|search_space)\.([\w-]+)\s*\}\}")
Change = Callable[[JobSpec], JobSpec]
Json = dict[str, Any]


@dataclass(frozen=True)
class WrittenStep:
    """One step. `job` has the fields of the step and of the step's component.

    Of a registered component, only the name is known here.
    """

    name: str  # `train`, or `outer.train` in a step that is a pipeline
    kind: str
    job: JobSpec
    needs: frozenset[str]
    component: str | Asset = ""  # a registered component, or the name of a file
    problems: tuple[Problem, ...] = ()
    trials: int = 1  # maximum number of trials of a sweep

    @property
    def is_pipeline(self) -> bool:
        """Whether the step is a pipeline. A pipeline runs no command, only inner steps."""
        return self.kind == PIPELINE


def steps(job: JobSpec) -> tuple[WrittenStep, ...]:
    """Every step of a pipeline, in file order, each followed by the inner steps; none for any other job."""
    return tuple(_steps(job.rest.get(JOBS), "")) if job.kind == PIPELINE else ()


def step_inputs(job: JobSpec) -> dict[str, dict[str, Any]]:
    """The inputs of each step of a pipeline as they are written: values, bindings, and mappings with a path."""
    return dict(_written_inputs(job.rest.get(JOBS), "")) if job.kind == PIPELINE else {}


def _written_inputs(jobs: Any, above: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, body in mapping(jobs).items():
        yield f"{above}{name}", dict(mapping(mapping(body).get("inputs")))
        yield from _written_inputs(mapping(mapping(body).get("component")).get(JOBS), f"{above}{name}.")


def with_steps(job: JobSpec, change: Change) -> JobSpec:
    """The pipeline with `change` applied to each command job; any other job unchanged."""
    if job.kind != PIPELINE:
        return job
    return replace(job, rest={**job.rest, JOBS: _changed(mapping(job.rest.get(JOBS)), change, "")})


def _steps(jobs: Any, above: str) -> Iterator[WrittenStep]:
    for name, body in mapping(jobs).items():
        yield (step := _step(f"{above}{name}", body))
        if step.is_pipeline:
            yield from _steps(mapping(body.get("component")).get(JOBS), f"{step.name}.")


def _step(name: str, body: Any) -> WrittenStep:
    if problem := _unreadable(body):
        return WrittenStep(name, "", JobSpec(), frozenset(), problems=(problem,))
    kind, holder = kind_of(body), holder_of(body)
    registered = read_asset(holder) if isinstance(holder, str) else ""
    needs = frozenset(_FROM.findall(str(body.get("inputs") or "")))
    if kind not in _WITH_JOB:
        return WrittenStep(name, kind, JobSpec(), needs, registered)
    layer = azureml.read_layer(_document(body, mapping(holder)))
    unread = (Problem(field, f"is {value!r:.40}; use a whole number from 1.") for field, value in layer.unread.items())
    lacking = _lacking(body, holder)
    problems = (*layer.problems, *unread, *([lacking] if lacking else []))
    job = replace(layer.job, name=name)
    return WrittenStep(name, kind, job, needs, registered, problems, _trials(body) if kind == SWEEP else 1)


def _trials(body: Mapping[str, Any]) -> int:
    most = mapping(body.get("limits")).get("max_total_trials")
    return most if type(most) is int else MOST_TRIALS


def _unreadable(body: Any) -> Problem | None:
    """Why this is not a valid step; None for a valid step."""
    if not isinstance(body, Mapping):
        return Problem("", f"must be a mapping, it is a {type(body).__name__}.")
    if _FILES in {**body, **mapping(holder_of(body))}:
        return Problem(_FILES, "are files beside the job; put them into the folder of its code.")
    if "/promptflow/" in str(mapping(holder_of(body)).get("$schema")):
        return Problem("component", "is a prompt flow, which Trainyard can't run; make it a command step.")
    for place, bound in _bindings(body):
        if _OLD.search(bound):
            return Problem(place, f"is {bound[:200]!r}; write {_OLD.sub('${{parent.', bound)[:200]}.")
    sources = [key for key in _RUNS if key in body]
    if len(sources) > 1 and sources[0] in ("component", "trial"):
        return Problem(sources[0], f"and {sources[1]} both define what the step runs; keep only one of them.")
    return None


def _bindings(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The bindings of the step's inputs and outputs, each with the place."""
    for group in ("inputs", "outputs"):
        for name, value in mapping(body.get(group)).items():
            yield f"{group}.{name}", str(mapping(value).get("path") if isinstance(value, Mapping) else value)


def _lacking(body: Mapping[str, Any], holder: Any) -> Problem | None:
    """A problem for an input or output in the step's command without a declaration in the step or the component."""
    if not isinstance(holder, Mapping) or not (text := _with_references(body, holder)):
        return None
    has = {
        f"{group}.{name}" for group in ("inputs", "outputs") for each in (body, holder) for name in _names(each, group)
    }
    has |= {f"{group}.{name}" for group in ("inputs", "search_space") for name in _names(body, "search_space")}
    if absent := [f"{group}.{name}" for group, name in _USED.findall(text) if f"{group}.{name}" not in has]:
        place = "task" if kind_of(body) == PARALLEL else "command"
        return Problem(place, f"uses ${{{{{absent[0]}}}}}, which the step does not have.")
    return None


def _with_references(body: Mapping[str, Any], holder: Mapping[str, Any]) -> str:
    """The text in which a step refers to its inputs and outputs: its command, or of a parallel step its task."""
    if kind_of(body) != PARALLEL:
        return str(holder.get("command") or "")
    task = _task(body, holder)
    words = (
        body.get("input_data") or holder.get("input_data"),
        task.get("program_arguments"),
        task.get("append_row_to"),
    )
    return " ".join(str(word) for word in words if word)


def _task(body: Mapping[str, Any], holder: Mapping[str, Any]) -> Json:
    """The task of a parallel step: the step's keys, which override the component's keys."""
    return {**mapping(holder.get("task")), **mapping(body.get("task"))}


def _of_task(task: Mapping[str, Any]) -> Json:
    """A task as the fields of a command job, whose command is the entry script with its arguments."""
    words = (task.get("entry_script"), task.get("program_arguments"))
    command = " ".join(str(word) for word in words if word)
    fields = {key: task[key] for key in _OF_TASK if task.get(key) is not None}
    return fields | ({"command": command} if command else {})


def _names(body: Mapping[str, Any], group: str) -> Mapping[str, Any]:
    return mapping(body.get(group))


def _document(body: Mapping[str, Any], holder: Mapping[str, Any]) -> Json:
    """The step as a separate command job, without values from other steps."""
    fields = {key: holder[key] for key in _OF_COMPONENT if holder.get(key) is not None}
    fields |= {key: body[key] for key in _OF_STEP if body.get(key) is not None}
    if kind_of(body) == PARALLEL:
        others = {key: value for key, value in fields.items() if key not in ("command", *_OF_TASK)}
        fields = others | _of_task(_task(body, holder))
    limits = mapping(body.get("limits"))
    timeout = limits.get("trial_timeout" if kind_of(body) == SWEEP else "timeout")
    own = {"limits": {"timeout": timeout}} if timeout is not None else {}
    return fields | own | {key: _data(body.get(key)) for key in ("inputs", "outputs")} | {"type": COMMAND}


def _data(given: Any) -> Json:
    """The step's own data, without bindings."""
    named = {name: value for name, value in mapping(given).items() if isinstance(value, Mapping)}
    return {
        name: value for name, value in named.items() if value.get("path") and not has_expression(str(value["path"]))
    }


def _changed(jobs: Mapping[str, Any], change: Change, above: str) -> Json:
    return {
        name: _changed_step(f"{above}{name}", body, change) if isinstance(body, Mapping) else body
        for name, body in jobs.items()
    }


def _changed_step(name: str, body: Mapping[str, Any], change: Change) -> Json:
    holder, kind = holder_of(body), kind_of(body)
    if kind == PIPELINE and isinstance(body.get("component"), Mapping):
        return {**body, "component": {**holder, JOBS: _changed(mapping(holder.get(JOBS)), change, f"{name}.")}}
    if kind not in _WITH_JOB:
        return dict(body)
    before = _step(name, body).job
    after = change(before)
    made = {**body, **_inputs(body, after)}
    if kind == PARALLEL:  # Azure ML's schema has no time limit for the whole step
        return _put_task(made, holder, _changed_values(before, after))
    if after.timeout_seconds and after.timeout_seconds != before.timeout_seconds:
        limit = "trial_timeout" if kind == SWEEP else "timeout"
        made["limits"] = {**mapping(body.get("limits")), limit: after.timeout_seconds}
    return _put(made, holder, _changed_values(before, after))


def _inputs(body: Mapping[str, Any], after: JobSpec) -> Json:
    given = mapping(body.get("inputs"))
    moved = {name: {**given[name], "path": place_text(value.path)} for name, value in after.data.items()}
    return {"inputs": {**given, **moved}} if moved else {}


def _changed_values(before: JobSpec, after: JobSpec) -> Json:
    """The changed values of code, environment and variables."""
    now: Json = {"code": place_text(after.code), "environment": azureml.environment_document(after.environment)}
    now["environment_variables"] = dict(after.variables)
    was = {"code": place_text(before.code), "environment": azureml.environment_document(before.environment)}
    was["environment_variables"] = dict(before.variables)
    return {key: value for key, value in now.items() if value != was[key]}


def _put_task(body: Json, holder: Any, changes: Json) -> Json:
    """The parallel step with these values in its task; its component's task has them if the step has no task."""
    task = {key: value for key, value in changes.items() if key in _OF_TASK}
    made = {**body, **{key: value for key, value in changes.items() if key not in task}}
    if not task or isinstance(holder, str):
        return made
    if "component" in body and not set(_OF_TASK) & set(mapping(body.get("task"))):
        return {**made, "component": {**holder, "task": {**mapping(holder.get("task")), **task}}}
    return {**made, "task": {**mapping(body.get("task")), **task}}


def _put(body: Json, holder: Any, changes: Json) -> Json:
    """The step with these keys in the right place: some keys of the step override the component's keys."""
    if not isinstance(holder, Mapping) or "command" in body:
        return {**body, **({} if isinstance(holder, str) else changes)}
    above = {key: value for key, value in changes.items() if body.get(key) is not None and key != "code"}
    place = "trial" if "trial" in body else "component"
    below = {key: value for key, value in changes.items() if key not in above}
    return {**body, **above, place: {**holder, **below}}
