"""Check a pipeline step by step: each step must obey the limits of a separate job. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from shared.jobs.command import LAUNCHER
from shared.jobs.limits import Limits, over_azures_limits, over_limits
from shared.jobs.location import Asset, is_of_this_machine, is_relative
from shared.jobs.problem import Problem
from shared.jobs.readers.azureml import path_of
from shared.jobs.readers.pipeline import WrittenStep, steps
from shared.jobs.readers.pipeline_document import DEEPEST, PARALLEL, SWEEP
from shared.jobs.readers.place_text import PLACE_FORM
from shared.jobs.spec import COMMAND, PIPELINE, JobSpec, Layer
from shared.jobs.torchrun import lonely_nodes
from shared.jobs.upload import unfit_code
from shared.kernel.names import NAME

MOST_STEPS = 100
_INSTEAD = {
    "spark": "make it a command step whose environment has pyspark",
    "automl": "make it a command step that trains",
    "data_transfer": "make it a command step that copies",
    "import": "give the data as an input of the pipeline",
}


def pipeline_faults(job: JobSpec, limits: Limits) -> Iterator[Problem]:
    """All problems of the pipeline's steps."""
    all_steps = steps(job)
    if len(all_steps) > MOST_STEPS:
        yield Problem("jobs", f"has {len(all_steps)} steps; at most {MOST_STEPS} are allowed.")
        return
    if job.sweep:
        yield Problem("sweep", "can't search over a whole pipeline; use a step of type: sweep.", "bad_sweep")
    for step in all_steps:
        for problem in _of_step(step, limits):
            place = f"jobs.{step.name}"
            yield Problem(f"{place}.{path_of(problem.path)}" if problem.path else place, problem.message, problem.code)
    yield from _of_the_graph({step.name: step for step in all_steps})


def _of_step(step: WrittenStep, limits: Limits) -> Iterator[Problem]:
    yield from step.problems
    if step.name.count(".") > DEEPEST:
        yield Problem("", f"lies in more than {DEEPEST} pipelines within pipelines.")
    if not NAME.fullmatch(step.name.rpartition(".")[2]):
        yield Problem("", "use letters, digits, dashes and underscores in a step's name.", "bad_name")
    if step.problems:
        return
    if step.kind not in (COMMAND, SWEEP, PARALLEL, PIPELINE):
        instead = f"; {_INSTEAD[step.kind]}" if step.kind in _INSTEAD else ""
        yield Problem(
            "type", f"is {step.kind[:40]!r}; a step is a command, a sweep, a parallel job or a pipeline{instead}."
        )
        return
    yield from _of_component(step, limits)
    yield from unfit_code(step.job.code, limits.allows_code)
    yield from over_limits(Layer(step.job), step.job, limits)
    yield from over_azures_limits(step.job)
    if lonely := lonely_nodes(step.job):
        yield lonely
    if step.job.is_elastic:
        yield Problem(
            "command", f"starts {LAUNCHER}, which is not possible in a step; submit that training as a run of its own."
        )
    for name, value in step.job.data.items():
        if is_relative(value.path) or is_of_this_machine(value.path):
            yield Problem(f"inputs.{name}.path", f"{value.path!r} is on your machine; use {PLACE_FORM}.")


def _of_component(step: WrittenStep, limits: Limits) -> Iterator[Problem]:
    if step.component and not isinstance(step.component, Asset):
        yield Problem("component", f"{step.component!r} is a file that was not sent with the job.")
    if step.component and limits.environments is not None:
        yield Problem("component", "is registered, so its environment can't be checked; write it inline on this route.")
    where, runs = ("task.", "task.entry_script") if step.kind == PARALLEL else ("", "command")
    if not step.is_pipeline and not step.component and not step.job.command:
        yield Problem(runs, "is missing, and the step names no component.")
    elif not step.is_pipeline and not step.component and not step.job.environment:
        yield Problem(f"{where}environment", "is missing; each step, or its component, needs its own.")


def _of_the_graph(by_name: Mapping[str, WrittenStep]) -> Iterator[Problem]:
    """Steps in a cycle, and steps with a missing predecessor."""
    graph: dict[str, set[str]] = {}
    for name, step in by_name.items():
        above = name.rpartition(".")[0]
        needs = {f"{above}.{other}" if above else other for other in step.needs}
        for other in sorted(needs - by_name.keys()):
            beside = (each for each in by_name if each.rpartition(".")[0] == above)
            yield Problem(f"jobs.{name}.inputs", f"need step {other!r}; there are {', '.join(beside)}.")
        graph[name] = needs & by_name.keys()
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as exc:
        circle = " -> ".join(exc.args[1])
        yield Problem("jobs", f"wait for each other in a circle: {circle}.")
