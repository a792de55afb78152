"""What all trainers do alike: flags, the log, the columns of every row, checkpoints, and the command line's errors.

A trainer calls these, and nothing here calls a trainer. Its own train.py shows from top to bottom what it trains.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
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


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The flags that every trainer has. A trainer's own class adds its own."""

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
        """The settings on a command line. Raises ValueError for flags that contradict each other."""
        args.speed = Speed.of(args)
        return cls(**{each.name: getattr(args, each.name) for each in fields(cls)})

    def named(self, *names: str) -> dict[str, Any]:
        """These settings by their names."""
        return {name: getattr(self, name) for name in names}

    def plain(self) -> dict[str, Any]:
        """The settings that model.json keeps: numbers and words, no paths, which are of this machine alone."""
        return {name: value for name, value in vars(self).items() if isinstance(value, int | float | str)}

    def metrics(self, place: dist.Place) -> Metrics:
        """The rows of this process."""
        return Metrics(self.metrics_dir, place.rank, self.tensorboard_dir)

    def checkpoints(self, place: dist.Place, **fixed: object) -> Checkpoints:
        """The checkpoints of this training. One that was made with other values of `fixed` is refused."""
        return Checkpoints(self.checkpoint_dir, place, self.checkpoint_every, fixed=fixed)


S = TypeVar("S", bound=Settings)


def add_arguments(
    parser: argparse.ArgumentParser, described: Path, skip: tuple[str, ...] = (), channels_last: bool = True
) -> None:
    """Add the flags that every trainer has, and those of `described`, a parameters.json, but for `skip`."""
    words = "steps between two lines of log and metrics (default: 10)"
    parser.add_argument("--log-interval", type=parameters.positive, default=10, help=words)
    parameters.add_arguments(parser, described, ("device", *skip))
    warm_start.add_arguments(parser)
    metrics.add_arguments(parser)
    checkpoint.add_arguments(parser)
    speed.add_arguments(parser, channels_last)
    dist.add_arguments(parser)


def read(parser: argparse.ArgumentParser, kind: type[S], argv: Sequence[str] | None) -> tuple[S, dist.Place]:
    """The command line as settings, and the place of this process. Flags that contradict end it with exit code 2."""
    args = parser.parse_args(argv)
    try:
        place = dist.place(args, os.environ)  # first: it decides which GPUs there are
        return kind.of(args), place
    except ValueError as error:
        parser.error(str(error))


@dataclass(kw_only=True)
class Training:
    """What every training consists of. All of it but `place` and `device` is the same in every process.

    `state` is what a checkpoint holds, beside `position`, which says how far the training is.
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

    def say(self, text: str) -> None:
        """Write a line to the log, once for all processes."""
        if self.place.rank == 0:
            dist.write_line(text, sys.stdout)

    def processes(self) -> str:
        """How many processes there are, and what each works with, for the first line of the log."""
        place, threads, gpus = self.place, torch.get_num_threads(), gpu.described()
        device = f"{self.device} ({gpus})" if gpus else self.device
        return f"processes {place.world_size} ({place.backend}), device {device}, threads {threads} each"

    def row(self, seconds: float, waited: float, step: int | None = None, **values: float) -> None:
        """Write a row of a step, the last by default: `values`, and what every trainer measures.

        `seconds` passed since the row before, of which `waited` went by until data were there.
        """
        columns = {
            **values,
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "data_wait_share": waited / seconds,
            "peak_memory_mib": metrics.peak_memory_mib(self.device),
            "world_size": self.place.world_size,
        }
        self.metrics.write(self.position.step if step is None else step, self.position.epoch, **columns)

    def save(self) -> None:
        """Make a checkpoint of this moment."""
        self.checkpoints.save(self.state, vars(self.position))

    @contextlib.contextmanager
    def kept_when_stopped(self) -> Iterator[None]:
        """Around all epochs: at SIGTERM make a checkpoint, and in the end wait until the last one is complete."""
        try:
            yield
        except dist.Stopped as stopped:
            if stopped.all_go:  # otherwise others go on with the same state
                self.save()
                self.checkpoints.finish()
            raise
        self.checkpoints.finish()


def one_cycle(optimizer: torch.optim.Optimizer, lr: float, steps: int) -> torch.optim.lr_scheduler.LRScheduler:
    """One cycle (Smith and Topin 2017, arXiv:1708.07120): a quarter of the steps up to lr, the others down to 0."""
    total = max(5, steps)  # four steps make PyTorch divide by zero
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=total, pct_start=0.25, cycle_momentum=False)
