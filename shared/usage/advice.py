"""Find a smaller machine that would suffice, from the measured use of a run. Pure.

Advice needs evidence: the run was measured for TEN_MINUTES, its machine and the smaller one are in the table of sizes,
and both have a price. A smaller machine has room above the highest measured use, and its GPUs are not slower than the
measured use allows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from shared.jobs.vm_size import SIZES, VmSize, known
from shared.usage.model import Metric, NodeUsage, UsageSummary
from shared.usage.words import at_least

TEN_MINUTES = 10  # samples of each node
SPARE = 1.25  # times the highest measured use of memory, processors and GPU memory
MOST_BUSY = 80.0  # percent of a GPU, after the move
IDLE_GPU, IDLE_GPU_MEGABYTES = 1.0, 100.0  # a GPU below both was not used
MEBIBYTES = 1.048576  # megabytes
# Peak tensor TFLOPS of 16-bit numbers without sparsity, from NVIDIA's data sheets of each GPU. Only their ratios count.
SPEEDS = (("T4", 65.0), ("A100", 312.0), ("H100", 989.0), ("H200", 989.0), ("A10_", 125.0))
_CORES = re.compile(r"Standard_[A-Za-z]+(\d+)")


@dataclass(frozen=True)
class Advice:
    """A machine that would suffice for the run, with both prices in dollars per hour and node."""

    vm_size: str
    dollars: float
    present: str
    present_dollars: float
    why: str

    def __str__(self) -> str:
        return (
            f"{self.why}: {self.vm_size} would do, for ${self.dollars:.2f} an hour instead of "
            f"${self.present_dollars:.2f}."
        )


def advice(usage: NodeUsage, found: UsageSummary, present: str, price: Callable[[str], float | None]) -> Advice | None:
    """Return the cheapest smaller machine that would suffice; None without evidence, or if there is no such machine.

    `price` gives dollars per hour of a VM size, None if the price is unknown.
    """
    size, dollars = known(present), price(present)
    if size is None or not dollars or not _is_measured(usage, size):
        return None
    options = [
        (its_price, name)
        for name, other in SIZES.items()
        if not other.instead
        and other.infiniband >= size.infiniband
        and (its_price := price(name)) is not None
        and its_price < dollars
        and _would_do(found, present, size, name, other)
    ]
    if not options:
        return None
    its_price, name = min(options)
    return Advice(name, its_price, present, dollars, _why(found, size))


def _is_measured(usage: NodeUsage, size: VmSize) -> bool:
    """Return whether each node has enough samples of its memory and processors, and of its GPUs."""
    needed = [Metric.MEMORY, Metric.CORES, *((Metric.GPU, Metric.GPU_MEMORY) if size.gpus else ())]
    nodes = usage.nodes()
    return bool(nodes) and all(
        len(usage.by_node(metric).get(node, ())) >= TEN_MINUTES for metric in needed for node in nodes
    )


def _would_do(found: UsageSummary, present: str, size: VmSize, name: str, other: VmSize) -> bool:
    cores = _cores(name)
    if found.memory is None or found.cores is None or cores is None:
        return False
    if found.memory * SPARE > other.memory * 1024 * MEBIBYTES or found.cores * SPARE > cores:
        return False
    return _gpus_would_do(found, present, size, name, other)


def _gpus_would_do(found: UsageSummary, present: str, size: VmSize, name: str, other: VmSize) -> bool:
    if not size.gpus:
        return not other.gpus
    if found.gpu is None or found.gpu_memory is None:
        return False
    if found.gpu < IDLE_GPU and found.gpu_memory < IDLE_GPU_MEGABYTES:
        return True
    ours, theirs = _speed(present), _speed(name)
    if not other.gpus or not ours or not theirs or found.gpu_memory * SPARE > other.gpu_memory * 1024 * MEBIBYTES:
        return False
    work = found.gpu * size.gpus * ours  # all GPUs of a node together
    return work / (other.gpus * theirs) <= MOST_BUSY


def _speed(name: str) -> float | None:
    """Return the speed of one GPU of this machine; None if the speed is unknown, or for a part of a GPU."""
    if re.search(r"NV(6|12|18)ads_A10", name):
        return None
    return next((speed for model, speed in SPEEDS if model in f"{name}_"), None)


def _cores(name: str) -> int | None:
    """Return the number of processors, which is the first number in the name of a size."""
    match = _CORES.match(name)
    return int(match[1]) if match else None


def _why(found: UsageSummary, size: VmSize) -> str:
    memory = f"{at_least((found.memory or 0) / 1000, 1)} of {size.memory * 1.024 * MEBIBYTES:.0f} GB"
    if not size.gpus:
        return f"It used {memory} and {at_least(found.cores or 0, 0.1)} processors"
    return f"It used {memory} and {_share(found.gpu or 0, size.gpus)}"


def _share(percent: float, gpus: int) -> str:
    """Return the used share of the GPUs, of which each was used by so many percent on average."""
    if gpus == 1:
        return f"{at_least(percent, 1)} % of its GPU"
    if percent * gpus <= 100:
        return f"{at_least(percent * gpus, 1)} % of one GPU of {gpus}"
    return f"{percent:.0f} % of its {gpus} GPUs"
