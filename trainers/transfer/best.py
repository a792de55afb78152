"""The best epoch so far."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Tested:
    """The result of a validation: mean loss, share of correct guesses, and images by true class and guess (C, C)."""

    loss: float
    accuracy: float
    confusion: Tensor


class Best:
    """The epoch with the highest validation accuracy (of equal epochs, the epoch with the lowest loss), and the
    weights.

    The best epoch is part of each checkpoint, because a training that continues on another node has no other record of
    it.
    """

    def __init__(self, net: nn.Module, classes: int) -> None:
        self._state = {f"net.{name}": value.detach().cpu().clone() for name, value in net.state_dict().items()}
        self._state |= {"score": torch.tensor([0, -1, math.inf], dtype=torch.float64), "confusion": self._none(classes)}

    @staticmethod
    def _none(classes: int) -> Tensor:
        return torch.zeros(classes, classes, dtype=torch.float64)

    @property
    def epoch(self) -> int:
        return int(self._state["score"][0])

    @property
    def accuracy(self) -> float:
        return float(self._state["score"][1])

    @property
    def loss(self) -> float:
        return float(self._state["score"][2])

    @property
    def confusion(self) -> Tensor:
        """Return the number of validation images by true class (row) and predicted class (column)."""
        counts: Tensor = self._state["confusion"]
        return counts

    def offer(self, net: nn.Module, epoch: int, tested: Tested) -> bool:
        """Keep this epoch if it beats the best epoch so far, and return whether it does."""
        if (tested.accuracy, -tested.loss) <= (self.accuracy, -self._state["score"][2].item()):
            return False
        for name, value in net.state_dict().items():
            self._state[f"net.{name}"].copy_(value)
        self._state["score"].copy_(torch.tensor([epoch, tested.accuracy, tested.loss], dtype=torch.float64))
        self._state["confusion"].copy_(tested.confusion)
        return True

    def put_into(self, net: nn.Module) -> None:
        net.load_state_dict({key[4:]: value for key, value in self._state.items() if key.startswith("net.")})

    def state_dict(self) -> dict[str, Tensor]:
        return self._state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self._state = dict(state)
