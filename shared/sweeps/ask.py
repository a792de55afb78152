"""The messages that bring looks at sweeps."""

from __future__ import annotations

from shared.kernel.places import RUN_LOOKS
from shared.kernel.storage import Queues
from shared.runs.model import Run
from shared.sweeps.model import Standing


def ask_for_sweep_look(queues: Queues, run: Run, delay: float = 0.0) -> None:
    """Ask for a look at a sweep. Only the one that has the number of the row's next look asks for another."""
    standing = run.feature(Standing) or Standing()
    queues.send(RUN_LOOKS, {"sweep": run.name, "number": standing.look}, delay)


def ask_for_look_of_trial(queues: Queues, sweep: str) -> None:
    """Ask for a look because a trial of the sweep has news. Without a number: the look asks for no other."""
    queues.send(RUN_LOOKS, {"sweep": sweep})
