"""The usage of a run in one sentence. Pure."""

from __future__ import annotations

from shared.usage.model import UsageSummary

GIGABYTE = 1000.0  # megabytes
WATT_HOUR = 3600.0  # joules


def sentence(found: UsageSummary, waited: float | None = None) -> str:
    """Return how the nodes were used, and which share of the time the training waited for data (from 0 to 1)."""
    parts = [f"{found.nodes} node{'' if found.nodes == 1 else 's'}"]
    if found.cpu is not None:
        parts.append(f"processors {found.cpu:.0f} %")
    if found.memory is not None:
        parts.append(f"memory {_of(found.memory, found.memory_in_all)}")
    if found.gpu is not None:
        parts.append(f"{found.gpus or 1} GPU{'s' if found.gpus > 1 else ''} a node at {found.gpu:.0f} %")
    if found.gpu_memory is not None:
        parts.append(f"GPU memory {_of(found.gpu_memory, found.gpu_memory_in_all)}")
    if found.gpu_energy:
        parts.append(f"{energy(found.gpu_energy)} for the GPUs")
    if waited is not None:
        parts.append(f"{100 * waited:.0f} % of the time waiting for data")
    return ", ".join(parts)


def energy(joules: float) -> str:
    """Return an energy in Wh or kWh."""
    hours = joules / WATT_HOUR
    return f"{hours / 1000:.2f} kWh" if hours >= 1000 else f"{hours:.3g} Wh"


def _of(used: float, in_all: float | None) -> str:
    whole = f" of {_gigabytes(in_all)}" if in_all else ""
    return f"{_gigabytes(used)}{whole} GB"


def _gigabytes(megabytes: float) -> str:
    value = megabytes / GIGABYTE
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"
