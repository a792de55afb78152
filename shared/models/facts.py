"""Facts about models."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.facts import Fact
from shared.models.model import Change


@dataclass(frozen=True)
class AliasMoved(Fact):
    """An alias points at another version, or at none. Stated after the write of the move."""

    change: Change


@dataclass(frozen=True)
class ChallengeLost(Fact):
    """A run did not beat the champion of the model of the run's route."""

    model: str
    run: str
    why: str
