"""The starting model of a run: read in the output of another run's job, or restored from the other run's archive.

Nodes may not read archives. If retention deleted the job's copy, the model is copied back from the archive, inside
storage, before a job that starts from the model is submitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from shared.jobs.location import Location
from shared.jobs.ports import Jobs
from shared.jobs.spec import FILE, JobOutput
from shared.kernel.clock import Clock
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.errors import Impossible, NotFound
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blob, Blobs, Copy, Place
from shared.kernel.versioned import Stored
from shared.runs.model import Run, RunState
from shared.runs.ports import RunPorts, Runs

COPIES = "copies"  # value in `cleared`: retention deleted the files that the job itself wrote
MODELS = "models/"  # in the archive
PATIENCE = timedelta(minutes=4)  # a single copy may take as long again; functionTimeout, 10 minutes, ends the worker


def model_of(ports: RunPorts, name: str) -> Location:
    """The folder of the run's model. Raises Impossible if neither the job's folder nor the archive has the model."""
    try:
        run = ports.runs.get(name).value
    except NotFound as exc:
        raise Impossible(str(exc), "no_model") from exc
    if run.progress.state is not RunState.COMPLETED:
        raise Impossible(
            f"Run {name} is {run.progress.state}; only a completed run has a model to start from.", "no_model"
        )
    path = _path(run)
    if path is None or (_is_gone(ports.jobs, ports.blobs, run, path) and ports.blobs.first(_archived(run)) is None):
        why = "was removed" if run.removed.at else "is neither in its job's output nor in its archive"
        raise Impossible(f"No job can start from the model of run {name}: it {why}.", "no_model")
    return path


def bring_back(ports: RunPorts, run: Run) -> bool:
    """Copy the run's starting model back from the archive, if the model is gone from the job's input.

    False: PATIENCE ended before the copy did; the next call continues. Files that are already copied are kept.
    Retention may delete the model again once no run needs it. Raises Impossible if the archive is gone.
    """
    if not run.asked.from_run:
        return True
    path, first = model_of(ports, run.asked.from_run), ports.runs.get(run.asked.from_run).value
    if not _is_gone(ports.jobs, ports.blobs, first, path):
        return True
    until = ports.clock() + PATIENCE
    _mark(ports.runs, ports.clock, first.name, gone=True)
    for _ in ports.blobs.copy(_copies(ports.jobs, ports.blobs, first, path)):
        if ports.clock() > until:
            return False
    _mark(ports.runs, ports.clock, first.name, gone=False)
    return True


def _path(run: Run) -> Location | None:
    path = run.asked.request.outputs.get("models", JobOutput()).path
    return path if isinstance(path, Location) else None


def _is_gone(jobs: Jobs, blobs: Blobs, run: Run, path: Location) -> bool:
    """Whether the model must be copied back, also after an interrupted copy.

    The mark in `cleared` is written before the copy and removed after it.
    """
    return COPIES in run.removed.cleared or blobs.first(jobs.place(path)) is None


def _archived(run: Run) -> Place:
    return Place(OUTPUT_CONTAINER, f"{run.asked.experiment}/{run.name}/{MODELS}")


def _copies(jobs: Jobs, blobs: Blobs, run: Run, path: Location) -> Iterator[Copy]:
    source, to = _archived(run), jobs.place(path)
    is_file = run.asked.request.outputs.get("models", JobOutput()).kind == FILE
    for blob in blobs.list(source):
        yield Copy(blob, source.container, to.container, _target(blob, source, to, is_file))


def _target(blob: Blob, source: Place, to: Place, is_file: bool) -> str:
    return to.prefix.rstrip("/") if is_file else f"{to.prefix}{blob.name.removeprefix(source.prefix)}"


def _mark(runs: Runs, clock: Clock, name: str, gone: bool) -> None:
    def write(stored: Stored[Run]) -> None:
        others = [kind for kind in stored.value.removed.cleared if kind != COPIES]
        cleared = tuple(sorted([*others, COPIES] if gone else others))
        if cleared != stored.value.removed.cleared:
            runs.update(stored, replace(stored.value, removed=replace(stored.value.removed, cleared=cleared)))

    compare_and_set(clock, f"Run {name}", lambda: runs.get(name), write)
