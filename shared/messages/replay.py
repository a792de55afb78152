"""Replay to a queue the queue's poison messages, and events undeliverable to Event Grid.

A message is written to its queue before it is deleted from its old place, so a crash can repeat a message but not lose
one; every handler tolerates repeats. A message that fails again becomes poison again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from shared.kernel.errors import BadInput, NotFound
from shared.kernel.parsing import read_json
from shared.kernel.storage import Blobs, Place, Queues
from shared.messages.declared import QUEUES
from shared.messages.poison import POISON

DEAD_LETTERS = "deadletter"
MOST = 1000  # messages, and dead-letter files, per call
LONGEST = 16 << 20  # bytes of a dead-letter file
# The fields that Event Grid adds to a dead-lettered event, in either schema.
OBITUARY = {"deadletterreason", "deliveryattempts", "lastdeliveryoutcome", "publishtime", "lastdeliveryattempttime"}


@dataclass(frozen=True)
class ReplayedMessages:
    """How many poison messages and dead letters were replayed to a queue, at most MOST of each.

    `left` are the names of dead-letter files that belong to no queue, or that belong to this queue and are unreadable;
    they stay.
    """

    queue: str
    messages: int
    dead_letters: int
    left: tuple[str, ...]


def give_back(blobs: Blobs, queues: Queues, queue: str, dry_run: bool = False) -> ReplayedMessages:
    """Replay the messages, or with `dry_run` only count them. Raises NotFound with the names of the queues."""
    if queue not in QUEUES:
        raise NotFound(f"There is no queue {queue[:80]!r}. Queues: {', '.join(QUEUES)}.")
    poison = f"{queue}{POISON}"
    events, left = _dead_letters(blobs, queues, queue, dry_run)
    messages = queues.counts([poison])[poison] if dry_run else queues.give_back(poison, queue, MOST)
    return ReplayedMessages(queue, messages, events, left)


def _dead_letters(blobs: Blobs, queues: Queues, queue: str, dry_run: bool) -> tuple[int, tuple[str, ...]]:
    """Replay the dead letters. Return the number of their events, and the names of the files that stay.

    Event Grid names the files SUBSCRIPTION/year/..., in Azure below the topic. A subscription has its queue's name.
    """
    files, events, left = 0, 0, []
    for name, whose in _files(blobs):
        if whose not in ("", queue):
            continue
        its = _events(blobs, name) if whose else None
        if its is None:
            left.append(name)
        elif dry_run or files < MOST:
            files, events = files + 1, events + len(its)
            if not dry_run:
                _send(blobs, queues, queue, name, its)
    return events, tuple(left)


def _files(blobs: Blobs) -> Iterator[tuple[str, str]]:
    """Yield the dead-letter files, each with the intended queue, '' for none."""
    for blob in list(blobs.list(Place(DEAD_LETTERS, ""))):
        folders = blob.name.upper().split("/")
        yield blob.name, next((queue for queue in QUEUES if queue.upper() in folders), "")


def _events(blobs: Blobs, name: str) -> list[dict[str, Any]] | None:
    """Return the events in the sent form; None for a file with other content, [] for a meanwhile deleted file."""
    try:
        content = read_json(blobs.read(DEAD_LETTERS, name, LONGEST), "A dead letter")
    except NotFound:
        return []
    except BadInput:
        return None
    events = content if isinstance(content, list) else [content]
    if not all(isinstance(event, dict) for event in events):
        return None
    return [{key: value for key, value in event.items() if key.lower() not in OBITUARY} for event in events]


def _send(blobs: Blobs, queues: Queues, queue: str, name: str, events: list[dict[str, Any]]) -> None:
    for event in events:
        queues.put(queue, json.dumps(event))
    blobs.remove(DEAD_LETTERS, [name])
