"""What a diagnosis advises to change of a run: its parameters, its machines, its time limit. Pure."""

from __future__ import annotations

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
JobChange = dict[str, int | str]


def advised_change(cause: Cause, parameters: Mapping[str, object]) -> Change:
    """The parameters to change against the cause; empty if the run has no parameter that would help.

    Half the batch for a GPU or a node without memory; a tenth of the learning rate for a loss that is not a number or
    grows; no worker processes where one died or shared memory is full, so that the error itself shows.
    """
    if cause in (Cause.CUDA_OOM, Cause.HOST_OOM):
        return _scaled(parameters, BATCH, HALF, whole=True)
    if cause in (Cause.NAN_LOSS, Cause.DIVERGING):
        return _scaled(parameters, RATE, TENTH, whole=False)
    if cause in (Cause.DATALOADER_WORKER, Cause.SHM_BUS_ERROR):
        return {name: 0 for name in WORKERS if _number(parameters.get(name)) > 0}
    return {}


def advised_job_change(cause: Cause, run: Run, clusters: Mapping[str, str], limits: Limits) -> JobChange:
    """What to change of the job against the cause; empty if nothing that the limits allow would help.

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
    """Whether the run was canceled because it reached its time limit: by Trainyard, or by Azure ML."""
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
    """The value as a number; 0 for anything else."""
    try:
        return 0.0 if isinstance(value, bool) else float(str(value))
    except ValueError:
        return 0.0
