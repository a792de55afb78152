"""The messages that bring looks at runs with a date."""

from __future__ import annotations

from shared.kernel.places import RUN_LOOKS
from shared.kernel.storage import Queues


def ask_for_pace(queues: Queues, run: str, token: str | None = None, delay: float = 0.0) -> None:
    """Ask for a look. With a token it is the next of the run's chain, and sends its successor; else one out of turn."""
    queues.send(RUN_LOOKS, {"paced": run} | ({} if token is None else {"token": token}), delay)
