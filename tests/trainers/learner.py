"""A small model with every part of a checkpoint, saved and restored in a process group of one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import checkpoint
import dist
import torch
from checkpoint import Checkpoints
from torch import nn

ALONE = dist.Place(rank=0, world_size=1, url="env://", backend="gloo")


class Learner:
    """A model with every part of a training's state. Each `step` changes every part."""

    def __init__(self) -> None:
        self.model = nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1, momentum=0.9)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, 0.5)

    @property
    def state(self) -> dict[str, Any]:
        return {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}

    def step(self) -> None:
        self.model(torch.rand(4, 3)).square().sum().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.schedule.step()

    def numbers(self) -> list[Any]:
        momentum = [self.optimizer.state[p]["momentum_buffer"].tolist() for p in self.model.parameters()]
        return [self.model.weight.tolist(), momentum, self.schedule.get_last_lr()]


def inside(what: Callable[[], Any]) -> Any:
    """Call `what` inside a process group of one, and return its result or raise its error."""
    outcome: list[Any] = []

    def train(_device: torch.device, _stop: dist.StopRequest) -> str:
        try:
            outcome.append(what())
        except Exception as error:  # noqa: BLE001 (raised again outside, where the test looks at it)
            outcome.append(error)
        return ""

    dist.run(train, ALONE)
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


def saved(folder: Path, count: int = 1, keep: int = 2) -> list[list[Any]]:
    """Save after each of `count` steps of a new learner; return its numbers after each step."""

    def save() -> list[list[Any]]:
        learner, numbers = Learner(), []
        checkpoints = Checkpoints(folder, ALONE, keep=keep)
        for step in range(1, count + 1):
            learner.step()
            numbers.append(learner.numbers())
            checkpoints.save(learner.state, {"epoch": 1, "samples": 4 * step, "step": step, "note": "of the trainer"})
        checkpoints.finish()
        return numbers

    return inside(save)  # type: ignore[no-any-return]


def restored(folder: Path) -> tuple[dict[str, Any] | None, list[Any] | None]:
    """Return the facts and the numbers that a new learner restores."""

    def restore() -> tuple[dict[str, Any] | None, list[Any] | None]:
        learner = Learner()
        facts = Checkpoints(folder, ALONE).restore(learner.state)
        return facts, learner.numbers() if facts else None

    return inside(restore)  # type: ignore[no-any-return]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != checkpoint.NEWEST)
