"""The messages that bring looks at runs with a date."""

from __future__ import annotations

from shared.kernel.storage import Queues
from shared.runs.messages import CheckPace


def ask_for_pace(queues: Queues, run: str, token: str | None = None, delay: float = 0.0) -> None:
    """Ask for a look. With a token it is the next of the run's chain, and sends its successor; else one out of turn."""
    queues.send(CheckPace(run, token), delay)
