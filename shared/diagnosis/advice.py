"""The meaning of each cause, and what to do about it."""

from __future__ import annotations

import re
from pathlib import PureWindowsPath

from shared.diagnosis.causes import Cause

SAID: dict[Cause, tuple[str, tuple[str, ...]]] = {
    Cause.CUDA_OOM: (
        "The GPU ran out of memory",
        ("Use a smaller batch.", "Use a VM size with more GPU memory."),
    ),
    Cause.HOST_OOM: (
        "The node ran out of memory",
        ("Use fewer data loader workers, or load less data at once.", "Use a VM size with more memory."),
    ),
    Cause.DISK_FULL: (
        "The disk is full",
        ("Keep fewer checkpoints.", "Write to another volume, or use a VM size with a larger disk."),
    ),
    Cause.SHM_BUS_ERROR: (
        "Shared memory (/dev/shm) is full",
        ("Give the container more shared memory (shm_size in the job's resources).", "Use fewer data loader workers."),
    ),
    Cause.NAN_LOSS: (
        "The loss is not a number",
        ("Use a lower learning rate, or clip gradients.", "Check the data for values that are not numbers."),
    ),
    Cause.DIVERGING: ("The training diverges", ("Use a lower learning rate or a warm-up.", "Normalize the inputs.")),
    Cause.DEADLOCK: (
        "The training hangs",
        (
            "Let the log show where each process waits: call faulthandler.dump_traceback_later(300) in each step.",
            "Check that all ranks call the same collectives.",
        ),
    ),
    Cause.STRAGGLER: (
        "One node is slower than the others",
        ("Start it again on other nodes, from its last checkpoint.",),
    ),
    Cause.INPUT_BOUND: (
        "The training waits for data",
        ("Use more data loader workers.", "Copy the data to the node's disk first, or use a cheaper GPU."),
    ),
    Cause.RANK_FIRST_FAILED: (
        "A process failed without a message",
        (
            "Read the log of this rank.",
            "Let Python print where it crashes: set PYTHONFAULTHANDLER to 1 in its environment.",
        ),
    ),
    Cause.NCCL_TIMEOUT: (
        "A collective operation timed out",
        (
            "Find the rank that is missing in the collective, and what it did instead.",
            "Use a longer timeout if one rank has long work of its own.",
        ),
    ),
    Cause.RENDEZVOUS_OR_RESET: (
        "The processes did not find each other or lost their connection",
        (
            "Check address, port and number of nodes.",
            "Check whether one node failed earlier: read the other nodes' logs.",
        ),
    ),
    Cause.NETWORK: (
        "A network request failed",
        ("Bring weights and data along instead of downloading them.", "Retry."),
    ),
    Cause.MISSING_MODULE: (
        "A package is missing or has the wrong version",
        ("Add the package with a fitting version to the job's environment.",),
    ),
    Cause.GPU_DRIVER_OR_ARCH: (
        "The GPU can't be used",
        ("Install wheels that the node's driver accepts.", "Start as many processes as the node has GPUs."),
    ),
    Cause.DATA_NOT_FOUND: ("The data is missing or empty", ("Check the path and that the upload is complete.",)),
    Cause.CORRUPT_FILE: (
        "A file is damaged or has another format",
        ("Replace the file, and check the others of its folder.",),
    ),
    Cause.LABEL_OUT_OF_RANGE: (
        "A label is outside the range of classes",
        ("Compare the labels with the number of classes.",),
    ),
    Cause.SHAPE_MISMATCH: (
        "Shapes do not fit together",
        ("Compare the shape in the message with what the layer expects.",),
    ),
    Cause.CHECKPOINT_MISMATCH: (
        "The checkpoint can't be loaded",
        ("Continue from a checkpoint of the same model and version.",),
    ),
    Cause.PERMISSION: ("Access was denied", ("Give the identity that runs the job a role on the resource.",)),
    Cause.ENV_BUILD: (
        "The environment could not be built",
        ("Read the end of the build's log; fix the first package that failed.",),
    ),
    Cause.QUOTA_OR_CAPACITY: (
        "The quota or the capacity does not suffice",
        ("Ask for quota, or use another VM size or region.",),
    ),
    Cause.PREEMPTION: (
        "The job lost its nodes to preemption",
        ("Start it again from its last checkpoint.", "Use dedicated nodes."),
    ),
    Cause.TIME_LIMIT: (
        "The time limit was reached",
        ("Submit it again with a longer time limit (--timeout).",),
    ),
    Cause.DATALOADER_WORKER: (
        "A data loader worker died",
        ("Use fewer workers; with 0 workers the error itself shows.", "Check the node's memory."),
    ),
    Cause.ARGUMENT_ERROR: ("The program refused its arguments", ("Correct the command.",)),
    Cause.USER_EXCEPTION: ("The training's own code raised an exception", ("Read the quoted line of your code.",)),
    Cause.HEALTHY: ("The log shows no failure", ()),
    Cause.NOT_KNOWN: ("The log does not show the cause", ("Read the quoted lines first.",)),
}


# Quoted words that show which case of a cause it is, and what helps in that case instead of the cause's general advice.
# The default of torch.load changed in PyTorch 2.6: https://pytorch.org/docs/stable/generated/torch.load.html
CASES: tuple[tuple[Cause, re.Pattern[str], tuple[str, ...]], ...] = (
    (
        Cause.CHECKPOINT_MISMATCH,
        re.compile("Weights only load failed"),
        (
            "Since version 2.6, torch.load loads only weights. Pass weights_only=False for a file that you trust.",
            "If a package makes the call, use a newer version of the package, or torch<2.6.",
        ),
    ),
    (
        Cause.GPU_DRIVER_OR_ARCH,
        re.compile("Found no NVIDIA driver|no GPUs found"),
        ("Use a cluster whose nodes have GPUs.", "Without GPUs, use the backend gloo and the device cpu in the code."),
    ),
    (
        Cause.USER_EXCEPTION,
        re.compile("wandb.*API key"),
        ("Weights & Biases has no key on the node: begin the command with WANDB_MODE=offline.",),
    ),
    (
        Cause.NETWORK,
        re.compile("(?i)name or service not known|(?:could not|unable to) resolve host|failure in name resolution"),
        ("The node can't find the host: upload the files as a drop, and pass --data drops/ROUTE/NAME.",),
    ),
)


def advice(cause: Cause, quoted: str = "") -> tuple[str, ...]:
    """Return what to do, one step each. `quoted` are the lines of the log that show the cause."""
    return next((steps for of, said, steps in CASES if of is cause and said.search(quoted)), SAID[cause][1])


def summary(cause: Cause, rank: int | None = None, where: str | None = None) -> str:
    """Return one sentence: the cause, the rank, and the file name and line of the place in the user's own code."""
    on_rank = "" if rank is None else f" on rank {rank}"
    file = PureWindowsPath(where or "").name  # it splits at slashes, too
    at_place = f", at {file}" if file else ""
    return f"{SAID[cause][0]}{on_rank}{at_place}."
