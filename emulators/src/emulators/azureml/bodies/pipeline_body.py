"""Parses a pipeline job's REST body: the steps, and the outputs passed between steps. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from emulators.azureml.bodies.job_body import JOB_NAME, NAME, check_facts, outputs_of, version_of
from emulators.azureml.kernel.checks import mapping
from emulators.azureml.kernel.errors import BadRequest, among
from emulators.azureml.kernel.models import Json
from emulators.azureml.kernel.sources import AssetRef

IF_ELSE = "if_else"
KINDS = ("command", "parallel", "pipeline", "sweep")
INSTEAD = {
    "spark": "make it a command step whose environment has pyspark",
    "automl": "make it a command step that trains",
    "data_transfer": "make it a command step that copies",
    "import": "give the data as an input of the pipeline",
    "do_while": "make it one command step that loops; Azure ML's control flow is a private preview",
    "parallel_for": "make it a step of type parallel; Azure ML's control flow is a private preview",
}
PARENT_INPUT = re.compile(r"\$\{\{\s*parent\.inputs\.([\w.-]+?)\s*\}\}")
PARENT_OUTPUT = re.compile(r"\$\{\{\s*parent\.outputs\.([\w.-]+?)\s*\}\}")
STEP = re.compile(r"\$\{\{\s*parent\.jobs\.([\w-]+)\s*\}\}")
STEP_OUTPUT = re.compile(r"\$\{\{\s*parent\.jobs\.([\w-]+)\.outputs\.([\w.-]+?)\s*\}\}")
BINDING = re.compile(r"\$\{\{\s*parent\.")


@dataclass(frozen=True)
class FromInput:
    """An input of the pipeline."""

    name: str


@dataclass(frozen=True)
class FromStep:
    """An output of another step."""

    step: str
    output: str


@dataclass(frozen=True)
class Step:
    """A step as the pipeline defines it. `inputs` are bindings or REST bodies. `outputs` are names of the
    pipeline's outputs, or REST bodies. `body` is the whole step."""

    name: str
    kind: str
    component: AssetRef
    inputs: Mapping[str, FromInput | FromStep | Json]
    modes: Mapping[str, str]  # of bound inputs
    outputs: Mapping[str, str | Json]
    body: Json

    @property
    def needs(self) -> set[str]:
        """Return the names of the steps whose outputs this step uses."""
        return {given.step for given in self.inputs.values() if isinstance(given, FromStep)}


@dataclass(frozen=True)
class Condition:
    """A node of type if_else: some steps run only if its value is true, others only if it is false. Azure ML has it as
    a private preview (azure-ai-ml, entities/_builders/condition_node.py)."""

    name: str
    value: FromInput | FromStep | bool
    blocks: Mapping[bool, tuple[str, ...]]  # names of steps

    def skipped(self, value: bool) -> tuple[str, ...]:
        """Return the steps that do not run with this value."""
        return self.blocks[not value]


@dataclass(frozen=True)
class PipelineSpec:
    """A pipeline. `inputs` and `outputs` are the given REST bodies."""

    steps: Mapping[str, Step]
    conditions: tuple[Condition, ...]
    inputs: Json
    outputs: Json
    compute: str | None
    datastore: str | None
    continues: bool  # with the steps that do not depend on a failed step
    reuses: bool  # outputs of earlier steps with the same component and inputs

    def needs(self, step: str) -> set[str]:
        """Return the names of the steps that end before this step starts."""
        asked = {each.value.step for each in self.conditions_of(step) if isinstance(each.value, FromStep)}
        return self.steps[step].needs | asked

    def conditions_of(self, step: str) -> Iterator[Condition]:
        """Yield the conditions that decide whether this step runs."""
        return (each for each in self.conditions if any(step in block for block in each.blocks.values()))


def parse(name: str, properties: Json) -> PipelineSpec:
    """Read the `properties` of a pipeline job. Raises BadRequest with the error and an allowed value."""
    if not JOB_NAME.fullmatch(name):
        raise BadRequest(f"Job name {name!r}: use letters, digits, '-' and '_', at most 255 of them.")
    check_facts(properties)
    outputs_of(name, properties)
    settings, jobs = mapping(properties, "settings"), mapping(properties, "jobs")
    if not jobs:
        raise BadRequest("The pipeline has no steps: its jobs are empty.")
    conditions = [name for name in jobs if mapping(jobs, name).get("type") == IF_ELSE]
    spec = PipelineSpec(
        steps={step: _step(step, mapping(jobs, step)) for step in jobs if step not in conditions},
        conditions=tuple(_condition(name, mapping(jobs, name)) for name in conditions),
        inputs=mapping(properties, "inputs"),
        outputs=mapping(properties, "outputs"),
        compute=properties.get("computeId") or settings.get("default_compute"),
        datastore=last_word(settings.get("default_datastore")),
        continues=_flag(settings, "continue_on_step_failure"),
        reuses=not _flag(settings, "force_rerun"),
    )
    _check_order(spec)
    return spec


def _flag(settings: Json, key: str) -> bool:
    return str(settings.get(key) or False).lower() == "true"


def last_word(reference: Any) -> str | None:
    """Return the name in an ARM id or in azureml:NAME."""
    return str(reference).rpartition("/")[2].removeprefix("azureml:") if reference else None


def _step(name: str, body: Json) -> Step:
    what = f"Step {name!r}"
    if not NAME.fullmatch(name):
        raise BadRequest(f"{what:.90}: use letters, digits, '-' and '_' in a step's name.")
    kind = str(body.get("type") or "command")
    if kind not in KINDS:
        instead = f": {INSTEAD[kind]}" if kind in INSTEAD else ""
        raise BadRequest(f"{what}: a step of type {kind!r} is not supported here; supported: {among(KINDS)}{instead}.")
    holder = mapping(body, "trial") if kind == "sweep" else body
    if not (component := holder.get("componentId")):
        raise BadRequest(f"{what} names no component: its componentId is {component!r}.")
    inputs = mapping(body, "inputs")
    return Step(
        name=name,
        kind=kind,
        component=version_of(component, "components", f"{what}: componentId"),
        inputs={key: _given(f"{what}, input {key!r}", value) for key, value in inputs.items() if value is not None},
        modes={key: v["mode"] for key, v in inputs.items() if isinstance(v, dict) and isinstance(v.get("mode"), str)},
        outputs={
            key: _output_place(f"{what}, output {key!r}", value) for key, value in mapping(body, "outputs").items()
        },
        body=body,
    )


def _condition(name: str, body: Json) -> Condition:
    what, said = f"Step {name!r}", body.get("condition")
    value = said if isinstance(said, bool) else _given(f"{what}, the condition", said)
    if not isinstance(value, bool | FromInput | FromStep):
        raise BadRequest(f"{what}: its condition is {said!r:.80}; write true, false, or a binding to a value.")
    return Condition(
        name, value, {True: _block(what, body.get("true_block")), False: _block(what, body.get("false_block"))}
    )


def _block(what: str, said: Any) -> tuple[str, ...]:
    names = [STEP.fullmatch(str(each)) for each in (said if isinstance(said, list) else [said] if said else [])]
    if not all(names):
        raise BadRequest(f"{what}: a block is {said!r:.80}; name steps as ${{{{parent.jobs.STEP}}}}.")
    return tuple(found[1] for found in names if found)


def _given(what: str, value: Any) -> FromInput | FromStep | Json:
    body = value if isinstance(value, dict) else {"value": value, "job_input_type": "literal"}
    text = str(next((body[key] for key in ("value", "uri", "path") if body.get(key) is not None), ""))
    if found := PARENT_INPUT.fullmatch(text):
        return FromInput(found[1])
    if found := STEP_OUTPUT.fullmatch(text):
        return FromStep(found[1], found[2])
    if BINDING.search(text):
        raise BadRequest(
            f"{what} is {text[:200]!r}; a binding stands alone: ${{{{parent.inputs.NAME}}}} or "
            "${{parent.jobs.STEP.outputs.NAME}}."
        )
    return camelled(body)


def _output_place(what: str, value: Any) -> str | Json:
    body = value if isinstance(value, dict) else {}
    text = str(body.get("value") or body.get("uri") or body.get("path") or "")
    if found := PARENT_OUTPUT.fullmatch(text):
        return found[1]
    if BINDING.search(text):
        raise BadRequest(f"{what} is {text[:200]!r}; an output goes to ${{{{parent.outputs.NAME}}}}, or to a path.")
    return camelled({key: each for key, each in body.items() if not (key == "type" and each == "literal")})


def camelled(body: Json) -> Json:
    """Return the body with camel-case keys, as Resource Manager writes them. MLClient sends YAML's keys inside
    pipelines."""
    return {_camel(key): value for key, value in body.items()}


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _check_order(spec: PipelineSpec) -> None:
    for condition in spec.conditions:
        asked = [condition.value.step] if isinstance(condition.value, FromStep) else []
        if unknown := {*asked, *condition.blocks[True], *condition.blocks[False]} - set(spec.steps):
            raise BadRequest(f"Step {condition.name!r} names {among(unknown)}; the pipeline has: {among(spec.steps)}.")
    for step in spec.steps.values():
        for what, bad in _unknown(spec, step):
            raise BadRequest(f"Step {step.name!r}: {bad}; the pipeline has: {among(what)}.")
    try:
        TopologicalSorter({step: spec.needs(step) for step in spec.steps}).prepare()
    except CycleError as error:
        raise BadRequest(f"The steps wait for each other in a circle: {' -> '.join(error.args[1])}.") from None


def _unknown(spec: PipelineSpec, step: Step) -> Iterator[tuple[list[str], str]]:
    for key, given in step.inputs.items():
        if isinstance(given, FromStep) and given.step not in spec.steps:
            yield list(spec.steps), f"input {key!r} comes from step {given.step!r}, which is not there"
        if isinstance(given, FromInput) and given.name not in spec.inputs:
            yield list(spec.inputs), f"input {key!r} comes from the input {given.name!r}, which is not there"
    for key, taken in step.outputs.items():
        if isinstance(taken, str) and taken not in spec.outputs:
            yield list(spec.outputs), f"output {key!r} goes to the output {taken!r}, which is not there"
