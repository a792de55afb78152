"""The REST body of a step's job: the step's component with the values that the pipeline binds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from emulators.azureml.bodies import component_body, parallel_body
from emulators.azureml.bodies.component_body import Component, ComponentInput
from emulators.azureml.bodies.job_body import DIRECT, OF_A_PARALLEL_STEP
from emulators.azureml.bodies.pipeline_body import PARENT_INPUT, FromInput, FromStep, PipelineSpec, Step, camelled
from emulators.azureml.bodies.sweep_body import NUMBERS
from emulators.azureml.kernel.checks import mapping
from emulators.azureml.kernel.errors import ArmError, BadRequest, among
from emulators.azureml.kernel.models import Asset, Json
from emulators.azureml.kernel.sources import ARTIFACTS, AssetRef

OutputOf = Callable[[str, str], Json]  # a step and its output -> an input's body
PARALLEL = "parallel"
OUTPUT_FOLDER = "azureml://datastores/{}/paths/azureml/${{{{name}}}}/${{{{output_name}}}}"


@dataclass(frozen=True)
class Pipeline:
    """A pipeline that is running or being checked. `shared` has the properties for the steps' jobs."""

    name: str
    spec: PipelineSpec
    shared: Json


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Add the step's name to a BadRequest raised in the block."""
    try:
        yield
    except BadRequest as error:
        raise BadRequest(f"{what}{error.message}") from error


class Steps:
    """Makes the bodies. `find` returns a component's version."""

    def __init__(self, find: Callable[[AssetRef], Asset]) -> None:
        self._find = find

    def component(self, step: Step) -> Component:
        """Return the component of a step. Raises BadRequest if it does not exist, or if its kind differs from the
        step's."""
        try:
            found = component_body.parse(self._find(step.component).properties["componentSpec"])
        except ArmError as error:
            raise BadRequest(f"Step {step.name!r}: {error.message}") from error
        runs = "command" if step.kind == "sweep" else step.kind
        if found.kind != runs:
            raise BadRequest(
                f"Step {step.name!r}: component {step.component} is of type {found.kind!r}, which a step of type "
                f"{step.kind!r} can't run here; it runs components of type {runs}."
            )
        return found

    def body(self, pipeline: Pipeline, step: Step, output_of: OutputOf) -> Json:
        """Return the `properties` of the step's job. Raises BadRequest for values that the component does not have,
        and for missing values."""
        component = self.component(step)
        inputs = dict(_inputs(pipeline.spec, step, component, output_of))
        outputs = dict(_outputs(pipeline.spec, step, component))
        made = {
            **pipeline.shared,
            "displayName": step.body.get("display_name") or step.name,
            "inputs": inputs,
            "outputs": outputs,
        }
        if step.kind == PARALLEL:
            with naming(f"Step {step.name!r}: "):
                return {**made, **_parallel(pipeline.spec, step, component, inputs)}
        return {**made, **RUNS[step.kind](pipeline.spec, step, component)}


def fingerprint(step: Step, component: Component, body: Json) -> str | None:
    """Return a hash of a step's computation: the component, the settings and the inputs. Returns None if the
    component is not deterministic."""
    if step.kind not in ("command", PARALLEL) or not component.deterministic:
        return None
    said = {key: value for key, value in component.body.items() if key not in ("name", "version", "_source", "$schema")}
    ran = {
        key: body.get(key)
        for key in ("command", "inputs", "outputs", "distribution", "resources", "environmentVariables")
    }
    return hashlib.sha256(json.dumps([said, ran], sort_keys=True).encode()).hexdigest()[:32]


def _inputs(spec: PipelineSpec, step: Step, component: Component, output_of: OutputOf) -> Iterator[tuple[str, Json]]:
    searched = mapping(step.body, "search_space")
    if unknown := set(step.inputs) - set(component.inputs):
        raise BadRequest(
            f"Step {step.name!r} gives its component {among(unknown)}, which it has not; it has: "
            f"{among(component.inputs)}."
        )
    for name, declared in component.inputs.items():
        found = _input(spec, step, declared, output_of)
        if found is not None:
            yield name, found
        elif name not in searched and not declared.optional:
            raise BadRequest(f"Step {step.name!r} gives no {name!r}, which its component {step.component} needs.")


def _input(spec: PipelineSpec, step: Step, declared: ComponentInput, output_of: OutputOf) -> Json | None:
    given = step.inputs.get(declared.name)
    match given:
        case FromInput(name):
            found = spec.inputs.get(name)
        case FromStep(other, output):
            found = output_of(other, output)
        case _:
            found = given
    if found is None or (found.get("value") is None and found.get("uri") is None):
        found = None if declared.default is None else {"value": declared.default}
    if found is None:
        return None
    if declared.is_literal:
        if found.get("value") is None:
            raise BadRequest(
                f"Step {step.name!r}: input {declared.name!r} is a {declared.kind}, and what is bound to it are data."
            )
        return {"jobInputType": "literal", "value": str(found["value"])}
    if found.get("uri") is None:
        raise BadRequest(
            f"Step {step.name!r}: input {declared.name!r} is {declared.kind}, and what is bound to it is the text "
            f"{str(found['value'])[:80]!r}."
        )
    mode = step.modes.get(declared.name) or found.get("mode") or declared.mode
    given_kind = found.get("jobInputType", "uri_folder")
    a_file = declared.kind == "uri_folder" and given_kind == "uri_file"  # as published components declare
    kind = given_kind if declared.kind == "path" or a_file else declared.kind
    return {"jobInputType": kind, "uri": found["uri"], **({"mode": _mode(mode)} if mode else {})}


def _outputs(spec: PipelineSpec, step: Step, component: Component) -> Iterator[tuple[str, Json]]:
    if unknown := set(step.outputs) - set(component.outputs):
        raise BadRequest(
            f"Step {step.name!r} takes {among(unknown)} of its component, which it has not; it has: "
            f"{among(component.outputs)}."
        )
    for name, declared in component.outputs.items():
        taken = step.outputs.get(name)
        given = spec.outputs.get(taken) or {} if isinstance(taken, str) else taken or {}
        mode = given.get("mode") or declared.mode
        kind = declared.stored_as
        uri = given.get("uri") or (_default_place(spec, kind) if name != ARTIFACTS else None)
        names = {key: given[key] for key in ("assetName", "assetVersion") if given.get(key) and not _is_name(taken)}
        place = {"uri": uri} if uri else {}
        yield name, {"jobOutputType": kind, **place, **({"mode": _mode(mode)} if mode else {}), **names}


def _is_name(taken: str | Json | None) -> bool:
    """Return whether the output is bound to an output of the pipeline, which the pipeline registers."""
    return isinstance(taken, str)


def _default_place(spec: PipelineSpec, kind: str) -> str | None:
    if not spec.datastore:
        return None
    return OUTPUT_FOLDER.format(spec.datastore) + ("" if kind == "uri_file" else "/")


def _mode(mode: Any) -> str:
    """Return Resource Manager's name of a data mode, which is in lower case in YAML."""
    words = {"ro_mount": "ReadOnlyMount", "rw_mount": "ReadWriteMount", "upload": "Upload", "download": "Download",
             "direct": "Direct", "mount": "ReadWriteMount"}  # fmt: skip
    return words.get(str(mode).lower(), str(mode))


def _command(spec: PipelineSpec, step: Step, component: Component) -> Json:
    return {
        "jobType": "Command",
        **_trial(step, component),
        "limits": _limits(step.body.get("limits") or component.body.get("limits")),
        **_compute(spec, step, component),
    }


def _trial(step: Step, component: Component) -> Json:
    """Return the code, command and environment of a step: its own settings, otherwise the component's."""
    said = component.body
    spread = mapping(step.body, "distribution") or mapping(said, "distribution")
    resources = {**mapping(said, "resources"), **mapping(step.body, "resources")}
    variables = {**mapping(said, "environment_variables"), **mapping(step.body, "environment_variables")}
    return {
        "command": said.get("command"),
        "codeId": _reference(said.get("code")),
        "environmentId": _reference(step.body.get("environment") or said.get("environment")),
        "environmentVariables": variables,
        "distribution": _distribution(spread) if spread else None,
        "resources": camelled({key: value for key, value in resources.items() if value is not None}),
    }


def _parallel(spec: PipelineSpec, step: Step, component: Component, inputs: Json) -> Json:
    """Return the job of a parallel step: the driver, which runs the mini-batches. The driver reads the split input
    itself, so this input is downloaded even in the mode direct. Raises BadRequest."""
    said, work = component.body, parallel_body.task(step.body, component.body)
    split = inputs.get(parallel_body.input_name(step.body, said)) or {}
    if split.get("mode") == DIRECT:
        split["mode"] = "ReadOnlyMount"
    return {
        "jobType": "Command",
        OF_A_PARALLEL_STEP: True,
        "command": parallel_body.command(step.body, said, inputs),
        "codeId": _reference(work.get("code")),
        "environmentId": _reference(work.get("environment")),
        "environmentVariables": {
            **mapping(said, "environment_variables"),
            **mapping(step.body, "environment_variables"),
        },
        "resources": camelled(parallel_body.resources(step.body, said)),
        "limits": _limits(step.body.get("limits")),
        **_compute(spec, step, component),
    }


def _reference(said: Any) -> str | None:
    """Return a component's reference to an asset. An ARM id may be prefixed with azureml:."""
    text = str(said) if said else ""
    return (
        text.removeprefix("azureml:")
        if text.startswith("azureml:/") and not text.startswith("azureml://")
        else text or None
    )


def _distribution(said: Json) -> Json:
    kinds = {"pytorch": "PyTorch", "mpi": "Mpi", "tensorflow": "TensorFlow", "ray": "Ray"}
    kind = said.get("distribution_type") or said.get("type")
    rest = {key: value for key, value in said.items() if key not in ("type", "distribution_type")}
    return {"distributionType": kinds.get(str(kind).lower(), kind), **camelled(rest)}


def _limits(said: Any) -> Json | None:
    limits = said if isinstance(said, dict) else {}
    timeout = _duration(limits.get("timeout"))
    return {"jobLimitsType": "Command", "timeout": timeout} if timeout else None


def _duration(value: Any) -> str | None:
    """Convert seconds in YAML to an ISO 8601 duration."""
    return f"PT{value}S" if type(value) in (int, float) else value


def _compute(spec: PipelineSpec, step: Step, component: Component) -> Json:
    compute = step.body.get("computeId") or step.body.get("compute") or component.body.get("compute") or spec.compute
    if bound := PARENT_INPUT.fullmatch(str(compute)):
        compute = mapping(spec.inputs, bound[1]).get("value")
    return {"computeId": compute} if compute else {}


def _sweep(spec: PipelineSpec, step: Step, component: Component) -> Json:
    body, limits = step.body, mapping(step.body, "limits")
    sampling = body.get("sampling_algorithm")
    said = sampling if isinstance(sampling, dict) else {"type": sampling}
    rest = {key: value for key, value in said.items() if key not in ("type", "sampling_algorithm_type")}
    kind = said.get("sampling_algorithm_type") or said.get("type")
    times = {"timeout": _duration(limits.get("timeout")), "trialTimeout": _duration(limits.get("trial_timeout"))}
    return {
        "jobType": "Sweep",
        "trial": {**_trial(step, component)},
        "searchSpace": {key: _expression(value) for key, value in mapping(body, "search_space").items()},
        "samplingAlgorithm": {"samplingAlgorithmType": str(kind).capitalize(), **camelled(rest)},
        "objective": camelled(mapping(body, "objective")),
        "limits": {"jobLimitsType": "Sweep", **camelled(limits), **{k: v for k, v in times.items() if v}},
        "earlyTermination": camelled(mapping(body, "early_termination")) or None,
        **_compute(spec, step, component),
    }


def _expression(said: Any) -> Any:
    """Return a search space's expression in Resource Manager's form: the kind, then the numbers in order."""
    if not isinstance(said, dict):
        return said
    kind = str(said.get("type"))
    if kind == "choice":
        return [kind, [said.get("values")]]
    return [kind, [said[key] for key in NUMBERS.get(kind, ()) if key in said]]


def _nested(spec: PipelineSpec, step: Step, component: Component) -> Json:
    settings = {
        "default_compute": step.body.get("computeId") or spec.compute,
        "default_datastore": spec.datastore,
        "continue_on_step_failure": spec.continues,
        "force_rerun": not spec.reuses,
    }
    return {"jobType": "Pipeline", "jobs": component.body.get("jobs"), "settings": settings}


RUNS: dict[str, Callable[[PipelineSpec, Step, Component], Json]] = {
    "command": _command,
    "sweep": _sweep,
    "pipeline": _nested,
}
