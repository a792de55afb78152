"""What the peers share: their command line, and rows of numbers like those of our trainers.

A peer is a well-known training script, rewritten in its shortest form with its own way to load data, to loop and to
log. Model, data, batch size, optimiser, its rates and the weights' seed are those of our trainer for the same job.
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
    """The options that all peers have. `--batch-size` is that of all processes together."""
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
    """Meet the others, where there are others."""
    if WORLD_SIZE > 1:
        dist.init_process_group("gloo")


class Journal:
    """metrics.jsonl with the names that our trainers use, and how long the loop waited for data."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / "metrics.jsonl").open("w") if RANK == 0 else None
        self._waited, self._since = 0.0, time.perf_counter()

    def watched(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The batches of a loader."""
        self._waited, self._since = 0.0, time.perf_counter()
        asked = self._since
        for batch in loader:
            self._waited += time.perf_counter() - asked
            yield batch
            asked = time.perf_counter()

    def trained(self, step: int, epoch: int, train_loss: float) -> None:
        """A row of training; its data_wait_share is that since the last one."""
        now = time.perf_counter()
        self.write(step, epoch, train_loss=train_loss, data_wait_share=self._waited / (now - self._since))
        self._waited, self._since = 0.0, now

    def write(self, step: int, epoch: int, **values: float) -> None:
        """Any row."""
        if self._file:
            self._file.write(json.dumps({"time": round(time.time(), 3), "step": step, "epoch": epoch, **values}) + "\n")
            self._file.flush()


class Meter:
    """A value, its median of late and its mean: AverageMeter of pytorch/examples, SmoothedValue of pytorch/vision."""

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
    """Per cent of right answers within the first k guesses, for each k; both repositories compute it at each step."""
    with torch.no_grad():
        hits = output.topk(max(topk), 1).indices.t() == target[None]  # (k, N)
        return [hits[:k].flatten().float().sum() * 100 / len(target) for k in topk]
