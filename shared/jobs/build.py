"""The single builder of jobs: from the request, by a drop or over HTTP, to the exact job to submit. Pure.

The layers are merged, the data and outputs get their places, and the result is checked, because layers end up in table
rows, blob paths and command lines on nodes. Problems name fields of a JobSpec; path_of (in readers/azureml.py) converts
these names to the schema's keys.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shared.jobs.checks import faults
from shared.jobs.layers import known_parameters, merged, on_its_cluster
from shared.jobs.order import JobOrder
from shared.jobs.parameters import all_converted
from shared.jobs.places import put_in_place
from shared.jobs.problem import Problem
from shared.jobs.readers.sweep import placeholders
from shared.jobs.spec import JobSpec


@dataclass(frozen=True)
class Built:
    """The job without the ids of code and environment, and the job's problems. An unreadable job is None."""

    job: JobSpec | None
    problems: tuple[Problem, ...]


def build(order: JobOrder) -> Built:
    """Build the job. Equal orders give equal jobs. A job with problems is never submitted."""
    if order.written and order.written.problems:
        return Built(None, order.written.problems)
    order = on_its_cluster(order)
    layer, parameters = merged(order), known_parameters(order)
    searched = placeholders(layer.job.sweep) if layer.job.sweep else {}
    job = replace(layer.job, inputs=all_converted(parameters, {**layer.job.inputs, **searched}))
    job, problems = put_in_place(order, job)
    problems += faults(order, replace(layer, job=job), parameters)
    first_of_each_place = {problem.path: problem for problem in reversed(problems)}
    return Built(job, tuple(first_of_each_place.values())[::-1])
