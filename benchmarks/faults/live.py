"""A training by gloo that goes on for minutes, with one fault that does not end it:

    python live.py --fault NAME --marks FOLDER [--at SECONDS] [--until SECONDS]

Each step takes some 0.3 seconds, and the processes average their gradients. The fault begins on one rank after `--at`
seconds, and the rank writes the time into the marks' folder just before it.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

SIZE, CLASSES, VICTIM, STEP_SECONDS = 256, 10, 1, 0.3
SLOW_STEP, SLOW_ITEM = 2.0, 0.15  # seconds of work on the slow rank; of reading one item from the slow disk
BATCH = 8
BLOCK = 20_000_000  # bytes written, or kept in memory, by each step once the fault has begun


class Numbers(Dataset[tuple[torch.Tensor, int]]):
    """Random vectors with labels. From `begins` on, the fault of the disk or of the worker happens in reading."""

    def __init__(self, fault: str, begins: float, marks: Path) -> None:
        self.fault, self.begins, self.marks = fault, begins, marks

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if time.time() >= self.begins and self.fault == "slow disk":
            mark(self.marks, self.fault)
            time.sleep(SLOW_ITEM)
        if time.time() >= self.begins and self.fault == "stopped worker" and get_worker_info() is not None:
            mark(self.marks, self.fault)
            os.kill(os.getpid(), signal.SIGSTOP)
        return torch.rand(SIZE), index % CLASSES


def mark(marks: Path, fault: str) -> None:
    """Write the time at which the fault began."""
    file = marks / fault.replace(" ", "-")
    if not file.exists():
        file.write_text(str(time.time()))


def work(seconds: float) -> None:
    """Use a processor for some time."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        math.sqrt(2.0)


class Fault:
    """What goes wrong in a step once the fault has begun, except in reading."""

    def __init__(self, options: argparse.Namespace, victim: bool) -> None:
        self.name, self.marks, self.folder = options.fault, options.marks, options.folder
        self.begins, self.victim = time.time() + options.at, victim
        self.kept: list[bytes] = []

    def strike(self, step: int, loss: torch.Tensor) -> torch.Tensor:
        """Do it, and return the loss."""
        if not self.victim or time.time() < self.begins or self.name in ("none", "slow disk", "stopped worker"):
            return loss
        mark(self.marks, self.name)
        if self.name == "stopped rank":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self.name == "slow rank":
            work(SLOW_STEP)
        elif self.name == "nearly full disk":
            Path(self.folder, f"{step % 50}.bin").write_bytes(os.urandom(BLOCK))
        elif self.name == "memory close to its limit" and len(self.kept) * BLOCK < self.most():
            self.kept.append(os.urandom(BLOCK))
        return loss * math.nan if self.name == "nan that goes on" else loss

    def most(self) -> float:
        return 1_600e6


def main() -> None:
    """Train until the time is over."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="none")
    parser.add_argument("--marks", type=Path, required=True)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--at", type=float, default=90.0)
    parser.add_argument("--until", type=float, default=420.0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    train(options, dist.get_rank(), dist.get_world_size())
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # a stopped worker would be waited for


def train(options: argparse.Namespace, rank: int, world: int) -> None:
    """The loop: read, compute, average, and say how long each took."""
    fault, model = Fault(options, rank == VICTIM), nn.Linear(SIZE, CLASSES)
    optimizer, end = torch.optim.SGD(model.parameters(), 0.01), torch.zeros(1)
    data = Numbers(options.fault if rank == VICTIM or options.fault == "slow disk" else "", fault.begins, options.marks)
    workers = 1 if options.fault == "stopped worker" and rank == VICTIM else 0
    batches, step, until = iter(DataLoader(data, BATCH, num_workers=workers)), 0, time.time() + options.until
    while not end.item():
        began = time.perf_counter()
        values, labels = next(batches)
        waited = time.perf_counter() - began
        loss = fault.strike(step, nn.functional.cross_entropy(model(values), labels))
        loss.backward()  # type: ignore[no-untyped-call]
        work(0.1 * STEP_SECONDS)
        for gradient in [each.grad for each in model.parameters() if each.grad is not None]:
            dist.all_reduce(gradient)
            gradient /= world
        optimizer.step()
        optimizer.zero_grad()
        end.fill_(float(time.time() > until))
        dist.all_reduce(end, dist.ReduceOp.MAX)
        time.sleep(max(0.0, STEP_SECONDS - (time.perf_counter() - began)))
        step += 1
        seconds = time.perf_counter() - began
        print(f"step {step} time: {seconds:.3f} data_time: {waited:.3f} loss: {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
