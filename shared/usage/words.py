"""The usage of a run in one sentence. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from shared.usage.model import UsageSummary

GIGABYTE = 1000.0  # megabytes
WATT_HOUR = 3600.0  # joules


@dataclass(frozen=True)
class TimeWent:
    """How a training spent its time, as shares from 0 to 1. None: the training did not report the share.

    `others` is the time that processes waited for slower ones. The rest beside the known shares is `computing`.
    """

    data: float | None = None
    saving: float | None = None
    others: float | None = None
    computing: float | None = None

    @classmethod
    def of(cls, data: float | None, saving: float | None, others: float | None) -> TimeWent:
        """Return the shares of the time. Without the share of waiting for data, the share of computing is unknown."""
        rest = None if data is None else max(0.0, 1.0 - data - (saving or 0.0) - (others or 0.0))
        return cls(data, saving, others, rest)

    def parts(self) -> list[str]:
        """Return the known shares in words."""
        words = {
            "of the time waiting for data": self.data,
            "waiting for other processes": self.others,
            "saving": self.saving,
            "computing": self.computing,
        }
        return [f"{100 * share:.0f} % {what}" for what, share in words.items() if share is not None]


def sentence(found: UsageSummary, went: TimeWent = TimeWent()) -> str:
    """Return how the nodes were used, and how the training spent its time."""
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
    return ", ".join([*parts, *went.parts()])


def energy(joules: float) -> str:
    """Return an energy in Wh or kWh."""
    hours = joules / WATT_HOUR
    return f"{hours / 1000:.2f} kWh" if hours >= 1000 else f"{hours:.3g} Wh"


def at_least(value: float, least: float) -> str:
    """Return the value in words, in steps of `least` (1 or 0.1): `less than 1` for a small value, but 0 for nothing."""
    if 0 < value < least:
        return f"less than {least:g}"
    return f"{value:.0f}" if least >= 1 else f"{value:.1f}"


def _of(used: float, in_all: float | None) -> str:
    whole = f" of {_gigabytes(in_all)}" if in_all else ""
    return f"{_gigabytes(used)}{whole} GB"


def _gigabytes(megabytes: float) -> str:
    value = megabytes / GIGABYTE
    return at_least(value, 1 if value >= 10 else 0.1)
