"""Translates a document without a system; each mount is assumed to be at the given place."""

from __future__ import annotations

import json
from typing import Any

from shared.adapters.azureml.document import document
from shared.jobs.batchai.job import BatchJob, Beside, read_job
from shared.jobs.batchai.translate import SPEC, MountSource, shortened, translate
from shared.jobs.build import build
from shared.jobs.limits import DAY, Limits
from shared.jobs.order import JobOrder
from shared.jobs.readers.azureml import read_layer
from shared.jobs.spec import JobSpec

Json = dict[str, Any]


def translated(content: Json, beside: Beside | None = None) -> tuple[Json, BatchJob]:
    beside = beside or Beside(account="ours")
    job = read_job(content, beside)
    shortened(job, DAY)
    sources = {use.mount: MountSource(f"azureml://datastores/files/paths/{use.mount.path}/") for use in job.uses}
    return document(translate(job, sources, beside.environment, beside.files).job), job


def spec_of(job: Json) -> Json:
    """The launcher's instructions."""
    found: Json = json.loads(job["environment_variables"][SPEC])
    return found


def built(job: Json) -> tuple[Json, list[str]]:
    """The job as it would be sent, and the builder's problems with it."""
    written = read_layer({"compute": "azureml:cpu", "experiment_name": "e", **job})
    order = JobOrder("run-0", "title", JobSpec(code=".."), Limits(max_nodes=100, max_processes=64), written=written)
    made = build(order)
    assert made.job
    return document(made.job), [f"{p.path} {p.message}" for p in made.problems]
