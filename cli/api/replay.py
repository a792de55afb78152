"""Returns poison messages and undelivered events (dead letters) to their queues, through the API.

One call of the API moves a limited number of each. The calls are repeated until as many have moved as there were at the
beginning, so a message that fails again and becomes poison again waits for the next replay.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from .client import Api


@dataclass
class Moved:
    """The numbers of messages returned to one queue."""

    poison: int = 0
    dead_letters: int = 0

    def holds(self, other: Moved) -> bool:
        return self.poison >= other.poison and self.dead_letters >= other.dead_letters


@dataclass
class Replayed:
    """The result of a replay. `unreadable` names the dead letters without a queue here, and dead letters outside of
    JSON; both stay.
    """

    queues: dict[str, Moved] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def replay(api: Api, only: str = "", dry_run: bool = False) -> Replayed:
    """Return poison messages and dead letters to their queues, or only the messages of the queue `only`. With
    `dry_run`, only count. Raises CliError.
    """
    left: set[str] = set()
    queues: dict[str, Moved] = {}
    for queue in [only] if only else sorted(api.get("status")["queues"]):
        there = _asked(api, queue, left, dry_run=True)
        queues[queue] = there if dry_run else _all_back(api, queue, there, left)
    return Replayed(queues, sorted(left))


def _all_back(api: Api, queue: str, there: Moved, left: set[str]) -> Moved:
    done = Moved()
    while not done.holds(there):
        now = _asked(api, queue, left, dry_run=False)
        if now == Moved():
            break  # another caller was faster
        done = Moved(done.poison + now.poison, done.dead_letters + now.dead_letters)
    return done


def _asked(api: Api, queue: str, left: set[str], dry_run: bool) -> Moved:
    answer = api.post("queues", queue, "replay", dry_run=dry_run)
    left.update(answer["left"])
    return Moved(answer["messages"], answer["dead_letters"])
