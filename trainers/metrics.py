"""What a trainer measures, and metrics.jsonl, where it leaves that: one JSON object a line."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import IO

import torch


class Metrics:
    """Writes `metrics.jsonl` into a folder. Made in every process; only rank 0 writes, so the others may call it too.

    A line is `{"time": unix seconds, "step": int, "epoch": int, <name>: number, ...}` and reaches the file at once.
    An older file in the folder is replaced. Without a folder nothing is written.
    """

    def __init__(self, folder: Path | None, rank: int) -> None:
        self._file: IO[str] | None = None
        if folder and rank == 0:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / "metrics.jsonl").open("w", encoding="utf-8")

    def write(self, step: int, epoch: int, **values: float) -> None:
        """Add one line. Raises ValueError, in every process, for a value that is no number: nan or inf."""
        if unfit := [name for name, value in values.items() if not math.isfinite(value)]:
            raise ValueError(f"{unfit[0]} is {values[unfit[0]]} at step {step}")
        if self._file:
            self._file.write(json.dumps({"time": round(time.time(), 3), "step": step, "epoch": epoch, **values}) + "\n")
            self._file.flush()

    def __enter__(self) -> Metrics:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._file:
            self._file.close()


class Mean:
    """A value and its mean so far, printed as `value (mean)`."""

    def __init__(self) -> None:
        self.value = self._sum = self._weight = 0.0

    def add(self, value: float, weight: float = 1.0) -> None:
        self.value = value
        self._sum += value * weight
        self._weight += weight

    @property
    def mean(self) -> float:
        return self._sum / self._weight if self._weight else math.nan

    def __format__(self, spec: str) -> str:
        return f"{self.value:{spec}} ({self.mean:{spec}})"


def peak_memory_mib(device: torch.device) -> float:
    """The most memory used so far, in MiB: of the GPU, or else of this process (0 on Windows, which keeps no count)."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    if sys.platform == "win32":
        return 0.0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10  # bytes on macOS, KiB elsewhere
