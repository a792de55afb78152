"""All messages, from the one list of the features that declare some; how one is read, and how it is handled."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from shared.clusters import messages as clusters
from shared.deadlines import messages as deadlines
from shared.drops import messages as drops
from shared.events import incoming
from shared.events import messages as events
from shared.kernel.message import Message, function, is_event, kind_of
from shared.models import messages as models
from shared.notices import messages as notices
from shared.removals import messages as removals
from shared.runs import messages as runs
from shared.schedules import messages as schedules
from shared.sweeps import messages as sweeps

FEATURES = (drops, runs, clusters, events, notices, schedules, removals, models, deadlines, sweeps)


def _by_queue() -> dict[str, list[type[Message]]]:
    """The kinds of each queue. Those of events are first, as they are in the life of a drop or job."""
    kinds = [kind for feature in FEATURES for kind in vars(feature).values() if _is_declared_in(feature, kind)]
    found: dict[str, list[type[Message]]] = {}
    for kind in sorted(kinds, key=is_event, reverse=True):
        found.setdefault(kind.queue, []).append(kind)
    return found


def _is_declared_in(feature: ModuleType, kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Message) and kind.__module__ == feature.__name__


BY_QUEUE = _by_queue()
QUEUES = tuple(BY_QUEUE)
EVENT_QUEUES = tuple(queue for queue, kinds in BY_QUEUE.items() if any(map(is_event, kinds)))


def decode(queue: str, body: bytes, form: str = "") -> Message | None:
    """The message in the body; None for an event that concerns nothing of ours. Raises BadMessage, saying why.

    `form` is how an event came, if the body does not show it.
    """
    content = incoming.decode(body)
    return kind_of(content, BY_QUEUE[queue]).read(content, form or incoming.form(body, content))


def handle(system: Any, message: Message) -> None:
    """Hand the message to its handler."""
    function(message.handler)(system, message)
