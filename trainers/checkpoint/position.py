"""The position of a training, the values that depend on the position alone, and the interval between checkpoints."""

from __future__ import annotations

import argparse
import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.optim.lr_scheduler import LRScheduler


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --checkpoint-dir and --checkpoint-every."""
    group = parser.add_argument_group("checkpoints", "a training that is started again with the same folder continues")
    group.add_argument("--checkpoint-dir", type=Path, help="folder for checkpoints (default: no checkpoints)")
    group.add_argument(
        "--checkpoint-every",
        type=_interval,
        default=0,
        metavar="STEPS|epoch",
        help="steps between two checkpoints, in addition to the one after each epoch (default: epoch)",
    )


def _interval(text: str) -> int:
    """Return the number of steps between checkpoints; 0 stands for `epoch`."""
    if text == "epoch":
        return 0
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number of steps, at least 1, or epoch, not {text!r}")
    return int(text)


@dataclass
class Position:
    """The position of a training: `samples` of `epoch` are done, counted over all processes. The first epoch is 1."""

    epoch: int = 1
    samples: int = 0
    step: int = 0

    @classmethod
    def of(cls, facts: Mapping[str, Any] | None) -> Position:
        """Return the position at which the checkpoint with these facts was made, or the start."""
        return cls(facts["epoch"], facts["samples"], facts["step"]) if facts else cls()


def dice(*numbers: int) -> torch.Generator:
    """Return a random generator with equal numbers in every process and after every restart, seeded by e.g. (seed,
    epoch, step).

    A trainer that draws an epoch's order and each step's augmentation from such generators needs no generator state in
    a checkpoint, and does not depend on the number of processes.
    """
    digest = hashlib.blake2b(repr(numbers).encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)


class OwnLength:
    """The state of a learning-rate schedule in a checkpoint: the step is restored, while the length belongs to the
    current training.

    A training that continues with more epochs therefore uses the rate that the longer training has at this step.
    """

    def __init__(self, schedule: LRScheduler) -> None:
        self._schedule = schedule

    def state_dict(self) -> dict[str, Any]:
        return self._schedule.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load the step, and set the rate in the optimizer. The optimizer's own state must be loaded before."""
        place = {name: state[name] for name in ("last_epoch", "_step_count")}
        self._schedule.load_state_dict({**self._schedule.state_dict(), **place})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch warns unless `step` calls get_lr
            rates = self._schedule.get_lr()
        for group, rate in zip(self._schedule.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
