"""The shared parts of the trainers: flags, the log, metric columns, checkpoints, and command-line errors.

A trainer calls this module; this module never calls a trainer. Each trainer's train.py shows its training from top to
bottom.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self, TypeVar

import checkpoint
import dist
import gpu
import metrics
import parameters
import speed
import torch
import warm_start
from checkpoint import Checkpoints, Position
from metrics import Metrics
from speed import Speed
from torch.nn.parallel import DistributedDataParallel

MEASURED_EACH = 10  # steps


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The flags of every trainer. Each trainer adds its own flags in a subclass."""

    data: Path
    from_model: Path | None
    model_dir: Path | None
    metrics_dir: Path | None
    tensorboard_dir: Path | None
    checkpoint_dir: Path | None
    checkpoint_every: int
    log_interval: int
    epochs: int
    batch_size: int
    seed: int
    speed: Speed

    @classmethod
    def of(cls, args: argparse.Namespace) -> Self:
        """Return the settings on a command line. Raises ValueError for contradicting flags."""
        args.speed = Speed.of(args)
        return cls(**{each.name: getattr(args, each.name) for each in fields(cls)})

    def named(self, *names: str) -> dict[str, Any]:
        """Return the settings with these names, by name."""
        return {name: getattr(self, name) for name in names}

    def plain(self) -> dict[str, Any]:
        """Return the settings that model.json keeps: numbers and words, but no paths, because a path means nothing
        on another machine."""
        return {name: value for name, value in vars(self).items() if isinstance(value, int | float | str)}

    def metrics(self, place: dist.Place) -> Metrics:
        """Return the metrics writer of this process."""
        return Metrics(self.metrics_dir, place.rank, self.tensorboard_dir)

    def checkpoints(self, place: dist.Place, **fixed: object) -> Checkpoints:
        """Return this training's checkpoints. A checkpoint whose `fixed` values differ from these is refused."""
        return Checkpoints(self.checkpoint_dir, place, self.checkpoint_every, fixed=fixed)


S = TypeVar("S", bound=Settings)


def add_arguments(
    parser: argparse.ArgumentParser, described: Path, skip: tuple[str, ...] = (), channels_last: bool = True
) -> None:
    """Add the flags of every trainer, and the flags in `described` (a parameters.json) except the names in `skip`."""
    words = "steps between two lines of log and metrics (default: 10)"
    parser.add_argument("--log-interval", type=parameters.positive, default=10, help=words)
    parameters.add_arguments(parser, described, ("device", *skip))
    warm_start.add_arguments(parser)
    metrics.add_arguments(parser)
    checkpoint.add_arguments(parser)
    speed.add_arguments(parser, channels_last)
    dist.add_arguments(parser)


def read(parser: argparse.ArgumentParser, kind: type[S], argv: Sequence[str] | None) -> tuple[S, dist.Place]:
    """Return the settings on the command line and the place of this process. Contradicting flags end the process
    with exit code 2."""
    args = parser.parse_args(argv)
    try:
        place = dist.place(args, os.environ)  # first, because it decides which GPUs are visible
        return kind.of(args), place
    except ValueError as error:
        parser.error(str(error))


@dataclass(kw_only=True)
class Training:
    """The state of one training. Everything except `place` and `device` is equal in every process.

    `state` is the content of a checkpoint, together with `position`, the position of the training.
    """

    settings: Settings
    place: dist.Place
    stop: dist.StopRequest
    device: torch.device
    optimizer: torch.optim.Optimizer
    metrics: Metrics
    checkpoints: Checkpoints
    state: dict[str, Any]
    position: Position = field(default_factory=Position)
    saved: float = 0.0  # seconds that checkpoints took since the last row
    last_row_at: float = field(default_factory=time.perf_counter)
    last_row_step: int | None = None  # None before the first row, which may follow a checkpoint

    def say(self, text: str) -> None:
        """Write one line to the log, from rank 0 only."""
        if self.place.rank == 0:
            dist.write_line(text, sys.stdout)

    def processes(self) -> str:
        """Return the number of processes and their hardware, for the first line of the log."""
        place, threads, gpus = self.place, torch.get_num_threads(), gpu.described()
        device = f"{self.device} ({gpus})" if gpus else self.device
        return f"processes {place.world_size} ({place.backend}), device {device}, threads {threads} each"

    def row(self, seconds: float, waited: float, step: int | None = None, **values: float) -> None:
        """Write one row of metrics for a step (by default the last step): `values`, and the columns of every trainer.

        `seconds` is the time since the previous row, of which the training waited `waited` seconds for data. If
        checkpoints were made since then, the row also has the share of time that they took. With several processes, the
        row has the share of time in which this process waited for the others' gradients.
        """
        now = time.perf_counter()
        share = {"save_share": min(1.0, self.saved / (now - self.last_row_at))} if self.saved else {}
        self.saved, self.last_row_at = 0.0, now
        step = self.position.step if step is None else step
        steps = step - self.last_row_step if self.last_row_step is not None else 0
        self.last_row_step = step
        others = waited_for_others(getattr(self, "model", None)) if self.place.world_size > 1 else None
        if others is not None and steps > 0:
            share["others_wait_share"] = min(1.0, others * steps / seconds)
        columns = {
            **values,
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "data_wait_share": waited / seconds,
            "peak_memory_mib": metrics.peak_memory_mib(self.device),
            "world_size": self.place.world_size,
            **share,
        }
        self.metrics.write(step, self.position.epoch, **columns)

    def save(self) -> None:
        """Save a checkpoint of the current state."""
        began = time.perf_counter()
        self.checkpoints.save(self.state, vars(self.position))
        self.saved += time.perf_counter() - began

    @contextlib.contextmanager
    def kept_when_stopped(self) -> Iterator[None]:
        """Save a checkpoint on SIGTERM while the block runs, and wait at the end of the block until the last
        checkpoint is complete."""
        try:
            yield
        except dist.Stopped as stopped:
            if stopped.all_go:  # otherwise other processes continue with the same state
                self.save()
                self.checkpoints.finish()
            raise
        self.checkpoints.finish()


def waited_for_others(model: object) -> float | None:
    """Return the seconds in one step for which this process's gradients were ready and waited for the others'
    gradients.

    The exchange itself is included. DistributedDataParallel measures one step in MEASURED_EACH
    (torch/csrc/distributed/c10d/logger.cpp). None: the model is not a DistributedDataParallel model, or no step was
    measured yet.
    """
    model = getattr(model, "_orig_mod", model)  # unwraps torch.compile
    if not isinstance(model, DistributedDataParallel):
        return None
    found: dict[str, int] = model._get_ddp_logging_data()  # type: ignore[no-untyped-call]
    model._set_ddp_runtime_logging_sample_rate(MEASURED_EACH)  # type: ignore[no-untyped-call]
    if not found.get("backward_comm_time"):
        return None
    return max(0, found["backward_comm_time"] - found["backward_compute_comm_overlap_time"]) / 1e9  # nanoseconds


def one_cycle(optimizer: torch.optim.Optimizer, lr: float, steps: int) -> torch.optim.lr_scheduler.LRScheduler:
    """Return the learning rate of a step under the one-cycle schedule (Smith and Topin 2017, arXiv:1708.07120): a rise
    to `lr` during the first quarter of the steps, then a fall to 0.
    """
    total = max(5, steps)  # four steps make PyTorch divide by zero
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=total, pct_start=0.25, cycle_momentum=False)
