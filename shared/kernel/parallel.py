"""Apply one function to many independent items: in turn, or in threads, if a slow item must not delay the others."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Each = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]

_AT_ONCE = 8


def in_turn(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Return the results in the order of the items."""
    return [work(item) for item in items]


def in_threads(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Return the results in the order of the items, computed in threads that each have the caller's context.

    Raises the first error after all threads have ended.
    """
    with ThreadPoolExecutor(_AT_ONCE, "each") as threads:
        futures = [threads.submit(contextvars.copy_context().run, work, item) for item in items]
    return [future.result() for future in futures]
