"""Move the messages of the previous version from queues without a place in this version.

An upgrade needs no extra step: the first reconcile of a new process reads every old queue, and later rounds read the
queues by turns, because messages may be hidden for a while. The messages of the old poison queues are retried. Delete
this module, and the old queues, with the next version.
"""

from __future__ import annotations

from shared.kernel.memory import Memory, Topic
from shared.kernel.message import BACKGROUND, CHECKS
from shared.kernel.storage import Queues
from shared.kernel.turns import Turns
from shared.messages.poison import MOST, POISON

MOVED = {  # each old queue, and the queue that has its messages now
    "drop-checks": "drop-events",
    **dict.fromkeys(("run-looks", "cluster-looks", "schedule-looks", "promotions"), CHECKS),
    **dict.fromkeys(("archives", "removals", "announcements", "notices", "deliveries"), BACKGROUND),
}
ROUNDS_FOR_ALL = 10

TURNS = Topic[Turns]("turns of the old queues")


def move_messages(queues: Queues, memory: Memory) -> int:
    """Move at most MOST visible messages of each old queue whose turn it is. Return how many were moved.

    A message is written to its new queue before it is deleted, so a crash can repeat it but not lose it.
    """
    turns = memory.one(TURNS, lambda: Turns(ROUNDS_FOR_ALL))
    counts = queues.counts(turns.next(name for old in MOVED for name in (old, f"{old}{POISON}")))
    turns.saw(counts)
    waiting = [name for name, count in counts.items() if count]
    return sum(queues.give_back(name, MOVED[name.removesuffix(POISON)], MOST) for name in waiting)
