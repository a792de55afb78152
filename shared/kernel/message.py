"""Messages: a message is a typed value with a declaration in its class: queue, handler, and fate in a poison queue.

    @dataclass(frozen=True)
    class SubmitRun(Message, queue="submissions", handler="shared.runs.progress.submit:submit_run"):
        run: str

Each feature declares its messages in `messages.py` of its folder, and shared/messages/declared.py lists the folders.
Functions are named as "module:function", so that a cold start imports a handler only when its message arrives.

On the wire a message is a JSON object: its fields, and the name of its class under the key MESSAGE, so that several
kinds of messages may share a queue. During an upgrade the previous version works on the same queues: its messages have
no MESSAGE, and it ignores fields that it does not know. So a field that the previous version needs keeps its name, and
a new field has a default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

from shared.kernel.errors import BadMessage
from shared.kernel.parsing import convert

# Queues that several folders share. Each queue is polled, and has its own instances in Azure (decision 78).
CHECKS = "checks"  # compare a record with the world: seconds
BACKGROUND = "background"  # copy, delete, deliver: may take minutes, and no caller waits for the result
MESSAGE = "message"  # the key of the class's name; `kind` belongs to announcements
NEWS_FOR = timedelta(days=1)  # Event Grid also retries a delivery for one day

Json = dict[str, Any]


@dataclass(frozen=True)
class Trace:
    """The trace of a message's handling. A run's submission `follows` the trace of the run's drop."""

    run: str = ""
    drop: str = ""
    follows: str = ""


class Message:
    """The base of all messages. A subclass is a frozen dataclass; the class arguments are the declaration.

    queue: the queue that the message is sent to.
    handler: takes (ports, message), may run twice, and may crash between any two writes.
    done: takes (ports, message) and returns whether a poison message is done or pointless, and can be deleted. A
        message without `done` is always deleted from its poison queue, because a timer sends another.
    news_since: takes (ports, message) and returns since when the message is news, or None. No timer sends such a
        message again, so it moves from the poison queue back to its queue until it is NEWS_FOR old.
    inline: the kinds of messages that the handler sends without delay and that the same invocation handles.
    """

    queue: ClassVar[str]
    handler: ClassVar[str]
    done: ClassVar[str]
    news_since: ClassVar[str]
    inline: ClassVar[tuple[type[Message], ...]]

    def __init_subclass__(
        cls,
        *,
        queue: str,
        handler: str,
        done: str = "",
        news_since: str = "",
        inline: tuple[type[Message], ...] = (),
    ) -> None:
        cls.queue, cls.handler, cls.done, cls.news_since = queue, handler, done, news_since
        cls.inline = inline

    @property
    def trace(self) -> Trace:
        return Trace()

    @property
    def turn(self) -> str:
        """Return the turn of this message, or '' for a message without a turn.

        A process handles one message per turn at a time, so that no handler reads what another handler is about to
        write.
        """
        return ""

    @classmethod
    def read(cls, body: Json, form: str) -> Message | None:  # noqa: ARG003 - events of other services use it
        """Decode the message from this JSON, which arrived in this form. Return None for an event that is not about us.

        Raises BadMessage with the reason.
        """
        import msgspec  # not at a cold start

        try:
            message: Message = convert(body, cls)
        except msgspec.ValidationError as exc:
            raise BadMessage(f"This is not a valid {cls.__name__}: {exc}. {json.dumps(body)[:200]}") from exc
        for name, value in vars(message).items():
            if isinstance(value, datetime) and value.tzinfo is None:
                raise BadMessage(f"The time {name!r} of a {cls.__name__} has no zone: {value.isoformat()}.")
        return message


def encode(message: Message) -> str:
    """Return the message as the text for the queue."""
    given = {name: value for name, value in vars(message).items() if value is not None}
    return json.dumps({MESSAGE: type(message).__name__, **given}, default=datetime.isoformat)


def kind_of(body: Json, kinds: Iterable[type[Message]]) -> type[Message]:
    """Return this JSON's kind, among the kinds of one queue. Raises BadMessage if no kind fits.

    Messages of the previous version and events of other services do not name their kind. They are of the first kind
    whose required fields are all present.
    """
    named = body.get(MESSAGE)
    for kind in kinds:
        if named == kind.__name__ or (named is None and _required(kind) <= body.keys()):
            return kind
    raise BadMessage(f"Unknown kind of message: {json.dumps(body)[:200]}.")


def is_event(kind: type[Message]) -> bool:
    """Return whether another service sends these messages, in the service's own format."""
    return "read" in vars(kind)


def _required(kind: type[Message]) -> set[str]:
    if is_event(kind) or not is_dataclass(kind):
        return set()
    return {field.name for field in fields(kind) if field.default is MISSING}


@cache
def function(name: str) -> Callable[[Any, Any], Any]:
    """Import the function named as `module:function`."""
    module, _, attribute = name.partition(":")
    found: Callable[[Any, Any], Any] = getattr(import_module(module), attribute)
    return found


def is_old(now: datetime, since: datetime | None) -> bool:
    """Return whether news from `since` is too old to send."""
    return since is None or now - since > NEWS_FOR
