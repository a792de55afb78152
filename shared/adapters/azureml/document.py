"""Write a JobSpec in Azure ML's job schema, for the SDK, for table rows, and for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.adapters.azureml.sweep_document import sweep_document
from shared.jobs.readers.azureml import (
    COMPUTE,
    GROUPS,
    KINDS,
    LAUNCHER,
    MAPPINGS,
    NUMBERS,
    RESTRICTED,
    SCHEMA,
    TEXTS,
    environment_document,
)
from shared.jobs.readers.expressions import command_text
from shared.jobs.readers.place_text import place_text
from shared.jobs.spec import COMMAND, DataInput, JobOutput, JobSpec

Json = dict[str, Any]
_KINDS = {ours: theirs for theirs, ours in KINDS.items()}


def document(job: JobSpec) -> Json:
    """Return the job's YAML document as a mapping. Reading the document returns an equal JobSpec."""
    flat: Json = {"$schema": SCHEMA} if job.kind == COMMAND else {}
    flat |= {path: getattr(job, field) for table in (TEXTS, NUMBERS) for path, field in table.items()}
    flat["command"] = command_text(job.command)
    flat["code"] = place_text(job.code)
    flat["compute"] = f"{COMPUTE}{job.cluster}" if job.cluster else ""
    flat["environment"] = environment_document(job.environment)
    flat |= {path: getattr(job, field) for path, field in MAPPINGS.items()}
    flat["inputs"] = {
        name: _data(value) if isinstance(value, DataInput) else value for name, value in job.inputs.items()
    }
    flat["outputs"] = {name: _output(value) for name, value in job.outputs.items()}
    flat = {path: dict(value) if isinstance(value, Mapping) else value for path, value in flat.items() if value}
    flat |= {path: job.restricted[field] for path, field in RESTRICTED.items() if field in job.restricted}
    flat |= {f"{LAUNCHER}{key}": value for key, value in job.launcher.items()}
    grouped = _grouped({**flat, **job.rest})
    return sweep_document(grouped, job.sweep) if job.sweep else grouped


def _grouped(flat: Mapping[str, Any]) -> Json:
    """Return the flat paths of groups as nested mappings, in their order."""
    grouped: Json = {}
    for path, value in flat.items():
        group, _, key = path.partition(".")
        if key and group in GROUPS:
            grouped.setdefault(group, {})[key] = value
        else:
            grouped[path] = value
    return grouped


def _data(data: DataInput | JobOutput) -> Json:
    document = {"type": _KINDS.get(data.kind, data.kind), "path": place_text(data.path), "mode": data.mode}
    return {key: value for key, value in document.items() if value} | dict(data.rest)


def _output(output: JobOutput) -> Json:
    registered = {"name": output.asset, "version": output.asset_version}
    return _data(output) | {key: value for key, value in registered.items() if value}
