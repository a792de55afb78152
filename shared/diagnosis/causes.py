"""The closed list of causes, and the form of a diagnosis."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Cause(StrEnum):
    """Why a training failed, or makes no progress."""

    CUDA_OOM = "cuda_oom"
    HOST_OOM = "host_oom"
    DISK_FULL = "disk_full"
    SHM_BUS_ERROR = "shm_bus_error"
    NAN_LOSS = "nan_loss"
    DIVERGING = "diverging"
    DEADLOCK = "deadlock"
    STRAGGLER = "straggler"
    INPUT_BOUND = "input_bound"
    RANK_FIRST_FAILED = "rank_first_failed"
    NCCL_TIMEOUT = "nccl_timeout"
    RENDEZVOUS_OR_RESET = "rendezvous_or_reset"
    NETWORK = "network"
    MISSING_MODULE = "missing_module"
    GPU_DRIVER_OR_ARCH = "gpu_driver_or_arch"
    DATA_NOT_FOUND = "data_not_found"
    CORRUPT_FILE = "corrupt_file"
    LABEL_OUT_OF_RANGE = "label_out_of_range"
    SHAPE_MISMATCH = "shape_mismatch"
    CHECKPOINT_MISMATCH = "checkpoint_mismatch"
    PERMISSION = "permission"
    ENV_BUILD = "env_build"
    QUOTA_OR_CAPACITY = "quota_or_capacity"
    PREEMPTION = "preemption"
    TIME_LIMIT = "time_limit"
    DATALOADER_WORKER = "dataloader_worker"
    ARGUMENT_ERROR = "argument_error"
    USER_EXCEPTION = "user_exception"
    HEALTHY = "healthy"
    NOT_KNOWN = "not_known"


class Certainty(StrEnum):
    """How strongly the evidence supports the cause.

    - `certain`: a line states the cause
    - `likely`: the evidence fits this cause best, but other causes leave the same evidence
    - `none`: no cause is named
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    NONE = "none"


@dataclass(frozen=True)
class QuotedLine:
    """One line of the log as evidence: its number in the log (from 1; 0 if unknown), its text, its rank if known."""

    number: int
    text: str
    rank: int | None = None


@dataclass(frozen=True)
class Diagnosis:
    """The cause of a failure.

    - `evidence`: the lines that support the cause, or, if the cause is not known, the lines to read first
    - `where`: the place in the user's own code, as `file:line in function`
    - `rank`: the rank that failed first, if the log names it
    - `advice`: what to do, one step each
    - `change`: the parameters of the run to change, with their new values
    - `change_job`: what else of its job to change: `cluster`, `timeout_seconds`
    """

    cause: Cause
    certainty: Certainty
    summary: str
    evidence: tuple[QuotedLine, ...] = ()
    where: str | None = None
    rank: int | None = None
    advice: tuple[str, ...] = ()
    change: dict[str, int | float] = field(default_factory=dict)
    change_job: dict[str, int | str] = field(default_factory=dict)
