"""The messages of models."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.message import CHECKS, Message, Trace


@dataclass(frozen=True)
class Challenge(
    Message,
    queue=CHECKS,
    handler="shared.models.challenge:challenge",
    done="shared.models.challenge:is_decided",
    news_since="shared.models.challenge:archived_at",
):
    """Compare a run with the champion of the model of the run's route."""

    run: str

    @property
    def trace(self) -> Trace:
        return Trace(run=self.run)
