"""The cache of answers from outside, in one place: the maximum age and number of the answers.

A module declares a Topic for the answers that it caches, and gets them from the System's Memory. Copies of the System
share one Memory, so all handlers of a process share the cached answers.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar, cast

from shared.kernel.errors import TrainyardError

T = TypeVar("T")


@dataclass(frozen=True)
class Topic(Generic[T]):
    """A kind of cached answer: the `most` answers used last, each for `max_age` (None: forever).

    With `else_last`, a failed read returns the last answer, however old. `keeps` says which answers are cached.
    """

    name: str
    max_age: timedelta | None = None
    most: int = 1
    else_last: bool = False
    keeps: Callable[[T], bool] = field(default=lambda _: True)


@dataclass(frozen=True)
class _CachedAnswer:
    at: datetime
    value: Any


class Memory:
    """The cached answers by topic and key. Safe for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[str, OrderedDict[Hashable, _CachedAnswer]] = {}
        self._reading: dict[tuple[str, Hashable], tuple[int, Future[Any]]] = {}  # with the id of the reading thread

    def answer(self, topic: Topic[T], now: datetime, read: Callable[[], T], key: Hashable = ()) -> T:
        """Return the cached answer for the key, or read a new answer with `read`.

        Only one thread reads a key at a time. Other threads that ask meanwhile get that thread's answer or error. A
        thread does not wait for itself: a nested call reads again.
        """
        place = topic.name, key
        with self._lock:
            last = self._last(topic, key)
            if last and (topic.max_age is None or now - last.at < topic.max_age):
                return cast("T", last.value)
            mine = Future[Any]()
            reader, reading = self._reading.setdefault(place, (threading.get_ident(), mine))
        if reading is mine:
            return self._read(topic, now, read, key, last)
        if reader == threading.get_ident():
            return self._new_or_last(topic, now, read, key, last)
        return cast("T", reading.result())

    def one(self, topic: Topic[T], make: Callable[[], T]) -> T:
        """Return the single object of this topic, which `make` creates on the first call."""
        return self.answer(topic, datetime.min, make)

    def forget(self, topic: Topic[Any]) -> None:
        """Forget the topic's answers, because this process changed the data behind the answers."""
        with self._lock:
            self._answers.pop(topic.name, None)

    def _last(self, topic: Topic[T], key: Hashable) -> _CachedAnswer | None:
        answers = self._answers.get(topic.name, OrderedDict())
        if key in answers:
            answers.move_to_end(key)
        return answers.get(key)

    def _read(
        self, topic: Topic[T], now: datetime, read: Callable[[], T], key: Hashable, last: _CachedAnswer | None
    ) -> T:
        _, reading = self._reading[topic.name, key]
        try:
            value = self._new_or_last(topic, now, read, key, last)
            reading.set_result(value)
            return value
        except BaseException as exc:
            reading.set_exception(exc)
            raise
        finally:
            with self._lock:
                del self._reading[topic.name, key]

    def _new_or_last(
        self, topic: Topic[T], now: datetime, read: Callable[[], T], key: Hashable, last: _CachedAnswer | None
    ) -> T:
        try:
            value = read()
        except TrainyardError:
            if last is None or not topic.else_last:
                raise
            return cast("T", last.value)
        if topic.keeps(value):
            self._keep(topic, key, _CachedAnswer(now, value))
        return value

    def _keep(self, topic: Topic[T], key: Hashable, answer: _CachedAnswer) -> None:
        with self._lock:
            answers = self._answers.setdefault(topic.name, OrderedDict())
            answers[key] = answer
            answers.move_to_end(key)
            if len(answers) > topic.most:
                answers.popitem(last=False)
