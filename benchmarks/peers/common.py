"""The common parts of the peers: their command line, and rows of numbers like those of our trainers.

A peer is a well-known training script in its shortest form, with its own way to load data, to loop and to log. The
model, data, batch size, optimiser, learning rates and the weights' seed are those of our trainer for the same job.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

RANK, WORLD_SIZE = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def arguments(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options of all peers. `--batch-size` is the size over all processes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data", type=Path, required=True)
    add("--metrics-dir", type=Path, required=True)
    add("--epochs", type=int, required=True)
    add("--batch-size", type=int, required=True)
    add("--lr", type=float, required=True)
    add("--seed", type=int, default=1)
    add("--log-interval", type=int, default=10)
    return parser


def join() -> None:
    """Join the process group if there are several processes."""
    if WORLD_SIZE > 1:
        dist.init_process_group("gloo")


class Journal:
    """Writes metrics.jsonl with the names that our trainers use, and measures how long the loop waited for data."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / "metrics.jsonl").open("w") if RANK == 0 else None
        self._waited, self._since = 0.0, time.perf_counter()

    def watched(self, loader: Iterable[Any]) -> Iterator[Any]:
        """Yield the batches of a loader, and measure the waits."""
        self._waited, self._since = 0.0, time.perf_counter()
        asked = self._since
        for batch in loader:
            self._waited += time.perf_counter() - asked
            yield batch
            asked = time.perf_counter()

    def trained(self, step: int, epoch: int, train_loss: float) -> None:
        """Write a row of training. Its data_wait_share covers the time since the last such row."""
        now = time.perf_counter()
        self.write(step, epoch, train_loss=train_loss, data_wait_share=self._waited / (now - self._since))
        self._waited, self._since = 0.0, now

    def write(self, step: int, epoch: int, **values: float) -> None:
        """Write any row."""
        if self._file:
            self._file.write(json.dumps({"time": round(time.time(), 3), "step": step, "epoch": epoch, **values}) + "\n")
            self._file.flush()


class Meter:
    """A value, its recent median and its mean: AverageMeter of pytorch/examples, SmoothedValue of pytorch/vision."""

    def __init__(self) -> None:
        self.late: deque[float] = deque(maxlen=20)
        self.total = self.count = 0.0

    def update(self, value: float, n: float = 1) -> None:
        self.late.append(value)
        self.total += value * n
        self.count += n

    @property
    def mean(self) -> float:
        return self.total / self.count

    def __str__(self) -> str:
        return f"{statistics.median(self.late):.4f} ({self.mean:.4f})"


def accuracy(output: Tensor, target: Tensor, topk: tuple[int, ...]) -> list[Tensor]:
    """Return the percentage of correct answers within the first k guesses, for each k. Both repositories compute it
    at each step."""
    with torch.no_grad():
        hits = output.topk(max(topk), 1).indices.t() == target[None]  # (k, N)
        return [hits[:k].flatten().float().sum() * 100 / len(target) for k in topk]
