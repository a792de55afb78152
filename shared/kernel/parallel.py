"""Do one thing to many items, independently: in turn, or in threads so that a slow one holds up no other."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Each = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]

_AT_ONCE = 8


def in_turn(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """The results, in the items' order."""
    return [work(item) for item in items]


def in_threads(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """The same, several at once, each in the context of the caller. Raises the first error after all have ended."""
    with ThreadPoolExecutor(_AT_ONCE, "each") as threads:
        futures = [threads.submit(contextvars.copy_context().run, work, item) for item in items]
    return [future.result() for future in futures]
