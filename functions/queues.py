"""The queue triggers: one per queue with declared messages, and one per kind of event.

A trigger decodes the message, calls its handler, and then handles the messages that the handler sent and declares as
`inline`. In Azure each function has its own instances, so any other message costs a poll of its queue or the start of
an instance.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeVar

import azure.functions as func

from functions import telemetry
from functions.attribution import attributed
from functions.keyed_lock import KeyedLock
from shared.bootstrap import check_routes
from shared.bootstrap import system as the_system
from shared.messages import declared

if TYPE_CHECKING:
    from shared.kernel.message import Message
    from shared.system import System

STORAGE = "AzureWebJobsStorage"
H = TypeVar("H", bound=Callable[..., None])

check_routes()
blueprint = func.Blueprint()
_turns = KeyedLock()


def function_of(queue: str) -> str:
    """Return the name of a queue's function."""
    return queue.replace("-", "_")


def receive(queue: str, body: bytes, form: str = "") -> None:
    """Handle a message of the queue, and the inline messages of its handler."""
    from shared.kernel.at_once import at_once  # not at a cold start

    message = declared.decode(queue, body, form)
    if message is not None:
        with at_once(the_system(), message.inline, _handle) as system:
            _handle(system, message)


def _handle(system: System, message: Message) -> None:
    trace, name = message.trace, re.sub(r"(?<=.)([A-Z])", r" \1", type(message).__name__).lower()
    with telemetry.span(name, run=trace.run, drop=trace.drop, follows=trace.follows), _turn(message):
        declared.handle(system, message)


def _turn(message: Message) -> AbstractContextManager[None]:
    return _turns.of(message.turn) if message.turn else nullcontext()


def _add_queue(queue: str) -> None:
    @_named(function_of(queue))
    def handler(message: func.QueueMessage) -> None:
        receive(queue, message.get_body())

    blueprint.queue_trigger("message", queue, STORAGE)(attributed(handler))


def _add_event(queue: str) -> None:
    """Add a second function for the event, for Event Grid subscriptions with a function as destination."""

    @_named(function_of(queue).removesuffix("s"))
    def handler(event: str) -> None:
        receive(queue, event.encode(), "by a direct call")

    blueprint.event_grid_trigger("event")(attributed(handler))


def _named(name: str) -> Callable[[H], H]:
    def rename(handler: H) -> H:
        handler.__name__ = handler.__qualname__ = name
        return handler

    return rename


for _queue in declared.QUEUES:
    _add_queue(_queue)
for _queue in declared.EVENT_QUEUES:
    _add_event(_queue)
