"""Translate a Batch AI job into the equivalent Azure ML command job, with instructions for the launcher. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.jobs.batchai.job import BatchJob
from shared.jobs.batchai.mounts import CLUSTER_ROOT, JOB_ROOT, Mount, MountUse
from shared.jobs.batchai.wall_clock import WEEK
from shared.jobs.command import Command, Reference, ReferenceGroup, joined
from shared.jobs.location import Asset, Where
from shared.jobs.readers.place_text import read_asset
from shared.jobs.spec import FOLDER, LEFT_OUTPUT, TRAINERS_ENVIRONMENT, DataInput, Environment, JobOutput, JobSpec
from shared.kernel.names import path_problem

Json = dict[str, Any]
LAUNCHER = "python batchai_launch.py"
SPEC = "TRAINYARD_BATCHAI"
LONGEST_SPEC = 100_000  # bytes; Linux does not start a program with a variable of 128 KiB
MODELS = "models"  # the output with a run's model
_MODELS = re.compile(r"(?:^|/)models?$", re.IGNORECASE)
# Outputs: files written into mounts, and the shared temporary folder of all nodes
WRITTEN, SHARED = "mounts", LEFT_OUTPUT
TEMPLATE = JobSpec(code="..")  # the trainers' snapshot, which has the launcher


@dataclass(frozen=True)
class MountSource:
    """The place of a mount's files. `there`: whether files exist; None without an answer."""

    path: Where
    there: bool | None = None


@dataclass(frozen=True)
class Translation:
    """The translated job, without the values of a route or request, and the mounts read by the job that are empty."""

    job: JobSpec
    missing: tuple[tuple[Mount, MountSource], ...] = ()


@dataclass
class _Names:
    """Unique names for inputs and outputs."""

    taken: set[str] = field(default_factory=lambda: {WRITTEN, SHARED, "data"})

    def give(self, preferred_name: str) -> str:
        name = re.sub(r"[^A-Za-z0-9_]+", "_", preferred_name).strip("_") or "mount"
        name = name if name[0].isalpha() else f"m_{name}"
        number, free_name = 1, name
        while free_name.lower() in self.taken:
            number += 1
            free_name = f"{name}_{number}"
        self.taken.add(free_name.lower())
        return free_name


def translate(
    job: BatchJob, sources: Mapping[Mount, MountSource], environment: str, files: Mapping[str, str]
) -> Translation:
    """Translate the job.

    `files` are texts to be placed into the mounts, by path or plain name. Problems are reported.
    """
    names, laid = _Names(), _laid(job, files)
    outputs = {names.give(MODELS if out.id.lower() in ("model", "models") else out.id): out for out in job.outputs}
    model = None if MODELS in outputs else _model_folder(job)
    if model:
        names.give(MODELS)
    mounts, inputs, missing = [], {}, []
    for use in job.uses:
        mount, source = _mount(use, laid, model), sources[use.mount]
        needed = any(not _is_laid(mount, path) for path in use.reads)
        if needed or source.there:
            mount["from"] = names.give(use.mount.path)
            inputs[mount["from"]] = DataInput(source.path, FOLDER, "ro_mount")
        if needed and source.there is False:
            missing.append((use.mount, source))
        mounts.append(mount)
    declared = [
        *outputs,
        *([MODELS] if model else []),
        *([WRITTEN] if mounts else []),
        *([SHARED] if job.nodes > 1 else []),
    ]
    spec = _spec(job, mounts, {out.id: [name, out.suffix] for name, out in outputs.items()})
    return Translation(_command_job(job, environment or job.image, inputs, declared, spec), tuple(missing))


def _command_job(
    job: BatchJob, environment: str, inputs: Mapping[str, DataInput], outputs: list[str], spec: str
) -> JobSpec:
    references = [Reference(ReferenceGroup.INPUT, name) for name in inputs] + [
        Reference(ReferenceGroup.OUTPUT, name) for name in outputs
    ]
    arguments = [part for each in references for part in (f" {each.name}=", each)]
    return JobSpec(
        command=Command(joined((LAUNCHER, *arguments))),
        environment=_environment(environment),
        inputs=inputs,
        outputs={name: JobOutput(kind=FOLDER, mode="rw_mount") for name in outputs},
        variables={**job.variables, SPEC: spec},
        nodes=job.nodes,
        shared_memory=job.shm_size,
        distribution="mpi" if job.start.mpi else "pytorch",
        processes=job.start.per_node,
        timeout_seconds=job.seconds,
        cluster=job.cluster,
        experiment=job.experiment,
        tags=job.tags,
    )


def _model_folder(job: BatchJob) -> tuple[Mount, str] | None:
    """The first written folder with the name of a model folder."""
    return next(((use.mount, path) for use in job.uses for path in use.writes if _MODELS.search(path)), None)


def _environment(name: str) -> Asset | Environment:
    """An environment of the workspace, or any image; without a name, the trainers' environment."""
    named = read_asset(name) if name else TRAINERS_ENVIRONMENT
    return Environment(named) if isinstance(named, str) else named


def _laid(job: BatchJob, files: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """Each text with its root and path. A plain name is placed wherever the job uses a file with this name."""
    texts = {}
    for name, text in files.items():
        if fault := path_problem(name):
            job.report.refuse(f"files.{name[:80]}", fault)
        elif "/" in name:  # a project's file: its mounts are the cluster's
            texts[CLUSTER_ROOT, name] = text
        else:
            read = [each for each in job.named if not each.written and each.path.rpartition("/")[2] == name]
            texts |= {(each.root, each.path): text for each in read}
    return texts


def _mount(use: MountUse, files: Mapping[tuple[str, str], str], model: tuple[Mount, str] | None) -> Json:
    mount = use.mount
    own = f"{mount.path}/"
    laid = {
        path.removeprefix(own): text
        for (root, path), text in files.items()
        if root == mount.root and path.startswith(own)
    }
    writes = [path for path in use.writes if path not in laid]
    return {
        "root": mount.root,
        "path": mount.path,
        "into": f"job/{mount.path}" if mount.root == JOB_ROOT else mount.path,
        "from": "",
        "writes": writes,
        "files": laid,
        "models": [path for path in writes if (mount, path) == model],
    }


def _is_laid(mount: Json, path: str) -> bool:
    return bool(path) and any(name == path or name.startswith(f"{path}/") for name in mount["files"])


def _spec(job: BatchJob, mounts: list[Json], outputs: Json) -> str:
    start = job.start
    spec: Json = {
        "lines": start.lines,
        "per_node": start.per_node,
        "index": start.index,
        "only_master": start.only_master,
        "backend": start.backend,
        "preparation": job.preparation,
        "mounts": mounts,
        "inputs": job.inputs,
        "outputs": outputs,
        "expand": [name for name, value in job.variables.items() if "$" in value],
    }
    if start.workers:
        spec |= {"workers": start.workers, "servers": start.servers}
    text = json.dumps(spec)
    if len(text) > LONGEST_SPEC:
        job.report.refuse("properties", f"needs {len(text)} bytes of instructions; the limit is {LONGEST_SPEC}.")
    return text


def shortened(job: BatchJob, longest: float) -> None:
    """Apply the administrator's limit if the job requests more, or has no limit and so had Batch AI's week."""
    path, seconds = "properties.constraints.maxWallClockTime", job.seconds or WEEK
    if seconds > longest:
        tell = job.report.lost if job.seconds else job.report.changed
        tell(
            path,
            f"The job may run for {seconds} seconds.",
            f"For {longest:g}, the limit here.",
            "Ask for a higher one.",
        )
    job.seconds = int(min(seconds, longest))
