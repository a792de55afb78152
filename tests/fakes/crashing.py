"""A wrapper for any port that ends a call where a schedule requires it, as a killed process would."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

P = TypeVar("P")


class Crash(BaseException):
    """The process died here. No handler of the app may catch a Crash, so it is no Exception."""


class Crashing(Generic[P]):
    """`target`, where each call takes one word from `schedule` and may end in Crash:

    "before"  the call has no effect
    "half"    a call of several writes dies before its last one, an iterator after its first item; else "before"
    "after"   the call takes effect in full, but its answer is lost
    anything else, or the schedule's end: the call is made as usual.

    Several wrappers may share one iterator; then it counts the calls of all of them.
    """

    def __init__(self, target: P, schedule: Iterable[str]) -> None:
        self.target = target
        self._schedule = iter(schedule)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.target, name)
        return self._wrapped(name, method) if callable(method) else method

    def _wrapped(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            when = next(self._schedule, "")
            if when == "half" and (half := getattr(self.target, f"half_{name}", None)):
                half(*args, **kwargs)
                raise Crash(f"half-way through {name}")
            if when == "before" or (when == "half" and not inspect.isgeneratorfunction(method)):
                raise Crash(f"before {name}")
            result = method(*args, **kwargs)
            if inspect.isgenerator(result) and when in ("half", "after"):
                return _cut(result, name, 1 if when == "half" else None)
            if when == "after":
                raise Crash(f"after {name}")
            return result

        return call


def _cut(items: Iterator[Any], name: str, count: int | None) -> Iterator[Any]:
    yield from itertools.islice(items, count)
    raise Crash(f"in {name}")


class Counting:
    """A schedule of crashes that counts how many words were used."""

    def __init__(self, at: int, word: str) -> None:
        self.at, self.word, self.taken = at, word, 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self.taken += 1
        return self.word if self.taken == self.at else ""
