"""What a message is: a typed value whose class says its queue, its handler, and what becomes of it in a poison queue.

    @dataclass(frozen=True)
    class SubmitRun(Message, queue="submissions", handler="shared.runs.progress.submit:submit_run"):
        run: str

A message is declared in `messages.py` of the folder of its feature, and shared/messages/declared.py lists the folders.
Functions are named as "module:function", so that a cold start imports a handler only for a message that has come.

On the wire a message is a JSON object: its fields, and under MESSAGE the name of its class, so that several kinds of
messages may share a queue. For a while the version before works on the same queues: its messages have no MESSAGE, and
it ignores what it does not know. So a field that it needs keeps its name, and a new field has a default.
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

MESSAGE = "message"  # the key of the class's name; `kind` belongs to announcements
NEWS_FOR = timedelta(days=1)  # Event Grid tries a delivery for so long, too

Json = dict[str, Any]


@dataclass(frozen=True)
class Trace:
    """Whose trace the handling of a message belongs to. A run's submission `follows` the trace of a drop."""

    run: str = ""
    drop: str = ""
    follows: str = ""


class Message:
    """The base of all messages. A subclass is a frozen dataclass, and its class arguments are its declaration.

    queue: where the message is sent.
    handler: takes (ports, message), may run twice, and may die between any two writes.
    done: takes (ports, message); whether a poison message is done or pointless, and can be deleted. Without one a
        poison message is always deleted: a timer sends another.
    news_since: takes (ports, message); since when the message is news, or None. Nobody else sends it again, so it goes
        from the poison queue back to its queue until it is NEWS_FOR old.
    inline: messages that the handler sends without delay and that are handled in the same invocation.
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
        """A process handles one message of this turn at a time, so that none reads what another is about to write.

        '' for a message that waits for no other.
        """
        return ""

    @classmethod
    def read(cls, body: Json, form: str) -> Message | None:  # noqa: ARG003 - events of other services use it
        """The message in this JSON, which came in this form; None for an event that concerns nothing of ours.

        Raises BadMessage, saying why.
        """
        import msgspec  # not at a cold start

        try:
            message: Message = convert(body, cls)
        except msgspec.ValidationError as exc:
            raise BadMessage(f"This is no {cls.__name__}: {exc}. {json.dumps(body)[:200]}") from exc
        for name, value in vars(message).items():
            if isinstance(value, datetime) and value.tzinfo is None:
                raise BadMessage(f"The time {name!r} of a {cls.__name__} has no zone: {value.isoformat()}.")
        return message


def encode(message: Message) -> str:
    """The text of the message in its queue."""
    given = {name: value for name, value in vars(message).items() if value is not None}
    return json.dumps({MESSAGE: type(message).__name__, **given}, default=datetime.isoformat)


def kind_of(body: Json, kinds: Iterable[type[Message]]) -> type[Message]:
    """The kind, of those of one queue, that this JSON holds. Raises BadMessage if it holds none.

    A message of the version before, and an event of another service, does not name its kind: then it is the first kind
    whose required fields are all there.
    """
    named = body.get(MESSAGE)
    for kind in kinds:
        if named == kind.__name__ or (named is None and _required(kind) <= body.keys()):
            return kind
    raise BadMessage(f"No message that this version knows: {json.dumps(body)[:200]}.")


def is_event(kind: type[Message]) -> bool:
    """Whether another service sends messages of this kind, in a form of its own."""
    return "read" in vars(kind)


def _required(kind: type[Message]) -> set[str]:
    if is_event(kind) or not is_dataclass(kind):
        return set()
    return {field.name for field in fields(kind) if field.default is MISSING}


@cache
def function(name: str) -> Callable[[Any, Any], Any]:
    """The function of this name, `module:function`."""
    module, _, attribute = name.partition(":")
    found: Callable[[Any, Any], Any] = getattr(import_module(module), attribute)
    return found


def is_old(now: datetime, since: datetime | None) -> bool:
    """Whether what became news then is news no more."""
    return since is None or now - since > NEWS_FOR
