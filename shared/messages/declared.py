"""All messages, gathered from the declaring folders; decoding and handling of a message.

The triggers need the names of the queues while the host indexes the app. The messages' modules are imported with the
first message, because their classes take a twelfth of a cold start; a test compares QUEUES with the declarations.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shared.kernel.message import Message

EVENT_QUEUES = ("drop-events", "job-events")  # of events that other services send, in their own formats
QUEUES = (*EVENT_QUEUES, "submissions", "checks", "background")
FOLDERS = ("drops", "runs", "clusters", "events", "notices", "schedules", "removals", "models")  # plus the features


@cache
def by_queue() -> dict[str, list[type[Message]]]:
    """Return the message kinds of each queue. Queues of events come first, as events do in the life of a drop or
    job.
    """
    from shared.features import modules
    from shared.kernel.message import is_event

    declared = [*(import_module(f"shared.{name}.messages") for name in FOLDERS), *modules("messages")]
    kinds = [kind for module in declared for kind in _declared_in(module)]
    found: dict[str, list[type[Message]]] = {}
    for kind in sorted(kinds, key=is_event, reverse=True):
        found.setdefault(kind.queue, []).append(kind)
    return found


def _declared_in(feature: ModuleType) -> list[type[Message]]:
    from shared.kernel.message import Message

    classes = [kind for kind in vars(feature).values() if isinstance(kind, type) and issubclass(kind, Message)]
    return [kind for kind in classes if kind.__module__ == feature.__name__]


def decode(queue: str, body: bytes, form: str = "") -> Message | None:
    """Decode the message in the body; None for an event that is not about us. Raises BadMessage with the reason.

    `form` is the format in which an event arrived, if the body does not show it.
    """
    from shared.events import incoming
    from shared.kernel.message import kind_of

    content = incoming.decode(body)
    return kind_of(content, by_queue()[queue]).read(content, form or incoming.form(body, content))


def handle(system: Any, message: Message) -> None:
    """Call the message's handler."""
    from shared.kernel.message import function

    function(message.handler)(system, message)
