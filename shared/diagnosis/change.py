"""Parameters of a run that a diagnosis advises to change, with their new values."""

from __future__ import annotations

from collections.abc import Mapping

from shared.diagnosis.causes import Cause

BATCH = ("batch_size", "batch", "train_batch_size", "per_device_train_batch_size")
RATE = ("lr", "learning_rate")
WORKERS = ("workers", "num_workers", "dataloader_num_workers")
Change = dict[str, int | float]
HALF, TENTH = 0.5, 0.1


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
