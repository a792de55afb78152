"""The changes to a run that a diagnosis advises: parameters, machines, time limit. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shared.diagnosis.causes import Cause
from shared.jobs.limits import Limits
from shared.jobs.vm_size import VmSize, known
from shared.runs.codes import CancelCode
from shared.runs.model import Run, RunState

BATCH = ("batch_size", "batch", "train_batch_size", "per_device_train_batch_size")
RATE = ("lr", "learning_rate")
WORKERS = ("workers", "num_workers", "dataloader_num_workers")
Change = dict[str, int | float]
HALF, TENTH, LONGER = 0.5, 0.1, 2
SPARE = 0.9  # share of the GPU's memory that the smaller batch may need
SIZE = r"(?P<{0}>\d+(?:\.\d+)?) (?P<{0}_unit>[KMG])iB"
UNITS = {"K": 2**-20, "M": 2**-10, "G": 1.0}  # in GiB
# PyTorch's own figures, in the words of versions 1 and 2.
TRIED = re.compile(f"Tried to allocate {SIZE.format('tried')}")
WHOLE = re.compile(f"total capacity of {SIZE.format('new')}|{SIZE.format('old')} total capacity")
TAKEN = re.compile(f"allocated memory {SIZE.format('new')} is allocated|{SIZE.format('old')} already allocated")
JobChange = dict[str, int | str]


def advised_change(cause: Cause, parameters: Mapping[str, object], said: str = "") -> Change:
    """Return the parameters to change against the cause; empty if no parameter of the run would help.

    Half the batch for a GPU or a node without memory, or a quarter and less if the figures in `said`, the line of the
    log, show that half of it would still not fit; a tenth of the learning rate for a loss that is not a number or
    grows; no worker processes where one died or shared memory is full, so that the error itself shows.
    """
    if cause in (Cause.CUDA_OOM, Cause.HOST_OOM):
        return _scaled(parameters, BATCH, _fitting(said), whole=True)
    if cause in (Cause.NAN_LOSS, Cause.DIVERGING):
        return _scaled(parameters, RATE, TENTH, whole=False)
    if cause in (Cause.DATALOADER_WORKER, Cause.SHM_BUS_ERROR):
        return {name: 0 for name in WORKERS if _number(parameters.get(name)) > 0}
    return {}


def _fitting(said: str) -> float:
    """Return the largest share of the batch, a power of a half, whose memory would fit. All requested memory is assumed
    to shrink with the batch.

    Memory that does not shrink with the batch, such as the weights, is small in comparison where half is not enough.
    """
    tried, whole, taken = (_gibibytes(pattern.search(said)) for pattern in (TRIED, WHOLE, TAKEN))
    share = HALF
    while whole and (tried + taken) * share > SPARE * whole:
        share *= HALF
    return share


def _gibibytes(found: re.Match[str] | None) -> float:
    """Return the size that the pattern finds, in GiB; 0 without a match."""
    groups = found.groupdict() if found else {}
    name = next((name for name, value in groups.items() if value and not name.endswith("_unit")), "")
    return float(groups[name]) * UNITS[groups[f"{name}_unit"]] if name else 0.0


def advised_job_change(cause: Cause, run: Run, clusters: Mapping[str, str], limits: Limits) -> JobChange:
    """Return the changes to the job against the cause; empty if no change within the limits would help.

    Twice the time limit for a run that reached it, as far as the limits allow. For a GPU or a node without memory, the
    cluster with the least memory that has more than the run's own, and at least as many GPUs. `clusters` are the VM
    sizes of the clusters.
    """
    if cause is Cause.TIME_LIMIT:
        longer = min(LONGER * run.asked.timeout_seconds, int(limits.timeout_seconds))
        return {"timeout_seconds": longer} if longer > run.asked.timeout_seconds > 0 else {}
    if cause not in (Cause.CUDA_OOM, Cause.HOST_OOM) or run.asked.cluster not in clusters:
        return {}
    present = known(clusters[run.asked.cluster])
    sizes = {name: known(size) for name, size in clusters.items() if limits.clusters is None or name in limits.clusters}
    if present is None:
        return {}
    larger = [
        (_memory(cause, size), size.memory, name)
        for name, size in sizes.items()
        if size and size.gpus >= present.gpus and _memory(cause, size) > _memory(cause, present)
    ]
    return {"cluster": min(larger)[2]} if larger else {}


def _memory(cause: Cause, size: VmSize) -> float:
    return size.gpu_memory if cause is Cause.CUDA_OOM else size.memory


def reached_time_limit(run: Run) -> bool:
    """Return whether Trainyard or Azure ML canceled the run because it reached its time limit."""
    if run.progress.state is not RunState.CANCELED:
        return False
    if run.cancel.asked_at is not None:
        return run.cancel.code is CancelCode.TIME_LIMIT
    began = next((moment.at for moment in reversed(run.progress.history) if moment.state is RunState.RUNNING), None)
    limit, ended = run.asked.timeout_seconds, run.progress.history[-1].at
    return bool(limit and began and (ended - began).total_seconds() >= limit)


def _scaled(parameters: Mapping[str, object], names: tuple[str, ...], by: float, whole: bool) -> Change:
    new = {name: _number(parameters.get(name)) * by for name in names}
    if whole:
        return {name: int(value) for name, value in new.items() if value >= 1}
    return {name: float(f"{value:.6g}") for name, value in new.items() if value > 0}


def _number(value: object) -> float:
    """Return the value as a number; 0 for a value of another type."""
    try:
        return 0.0 if isinstance(value, bool) else float(str(value))
    except ValueError:
        return 0.0
