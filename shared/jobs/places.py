"""Assign the places of a job's data and outputs. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from shared.jobs.command import Reference, ReferenceGroup
from shared.jobs.data import Data
from shared.jobs.location import OUTPUT_STORE, Location, Pattern, Placeholder, Where, is_relative
from shared.jobs.order import JobOrder
from shared.jobs.problem import Problem
from shared.jobs.spec import (
    FILE,
    FOLDER,
    FROM_MODEL,
    FROM_MODEL_TAG,
    DataInput,
    JobOutput,
    JobSpec,
    Value,
    output_path,
)

_TAG_LIMIT = 256  # characters of a tag's value; Azure ML would take 1,000


def put_in_place(order: JobOrder, job: JobSpec) -> tuple[JobSpec, list[Problem]]:
    """The job with data, starting model, output folders and tags; and the problems found."""
    job = replace(job, inputs=_inputs(order, job.inputs))
    problems: list[Problem] = []
    if order.from_model:
        job, problems = starting_from(job, order.from_model)
    tags = {name: str(value)[:_TAG_LIMIT] for name, value in {**job.tags, **order.tags}.items()}
    return replace(job, outputs=places_of(order.run, job.outputs), tags=tags), problems


def _inputs(order: JobOrder, inputs: Mapping[str, Value | DataInput]) -> dict[str, Value | DataInput]:
    """Point the input `data` at the data, and each path relative to the drop into the drop."""
    inputs, given = dict(inputs), order.own.data
    own_path = "data" in given and given["data"].path
    if order.data and (order.data.asked or ("data" in inputs and not own_path)):
        inputs["data"] = _data_input(order.data, inputs.get("data"))
    for name, value in given.items():
        if order.root and isinstance(value.path, str) and is_relative(value.path):
            inputs[name] = replace(value, path=_inside(order.root, value.path))
    return inputs


def _data_input(data: Data, declared: Value | DataInput | None) -> DataInput:
    template = declared if isinstance(declared, DataInput) else DataInput()
    kind = {True: FILE, False: FOLDER, None: template.kind or FOLDER}[data.single_file]
    path = data.path.path.rstrip("/")
    return replace(template, kind=kind, path=replace(data.path, path=f"{path}/" if kind == FOLDER else path))


def _inside(root: Data, below: str) -> Location:
    if root.single_file:
        return root.path
    parts = [part for part in below.split("/") if part not in ("", ".")]
    inside = "/".join(parts) + ("/" if parts and below.endswith("/") else "")
    return replace(root.path, path=f"{root.path.path.rstrip('/')}/{inside}")


def starting_from(job: JobSpec, folder: Where) -> tuple[JobSpec, list[Problem]]:
    """The job with the model's folder as an input, and with the flag for this input in the command."""
    if FROM_MODEL in job.inputs:  # the job already starts from another model
        return replace(job, inputs={**job.inputs, FROM_MODEL: DataInput(folder, FOLDER)}), []
    flag = job.tags.get(FROM_MODEL_TAG, "")
    if not re.fullmatch(r"--[a-z][a-z0-9-]*", flag):
        why = f"can't be used: the trainer's job has no tag {FROM_MODEL_TAG} with the flag that takes a model's folder."
        return job, [Problem("from_run", why, "no_start")]
    inputs = {**job.inputs, FROM_MODEL: DataInput(folder, FOLDER)}
    command = job.command.followed_by(f"{flag} ", Reference(ReferenceGroup.INPUT, FROM_MODEL))
    return replace(job, inputs=inputs, command=command), []


def places_of(run: str, outputs: Mapping[str, JobOutput]) -> dict[str, JobOutput]:
    """Every output with a place: the output's own path, else a folder (or a file) of the run."""
    return {name: _placed(run, name, output) for name, output in outputs.items()}


def _placed(run: str, name: str, output: JobOutput) -> JobOutput:
    if not output.path:
        return replace(output, path=output_path(run, name, output.kind == FILE))
    if not isinstance(output.path, Pattern):
        return output
    values = {Placeholder.RUN: run, Placeholder.OUTPUT: name, Placeholder.DEFAULT_STORE: OUTPUT_STORE}
    return replace(output, path=output.path.filled(values))
