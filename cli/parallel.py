"""Parallel calls of one function, until a call fails."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

LOOK_SECONDS = 0.5  # a signal just before a wait is noticed only at the end of the wait
T = TypeVar("T")


def in_parallel(what: Callable[[T], None], items: Iterable[T], workers: int) -> None:
    """Call `what` with each item, in `workers` threads. After the first error, the running calls are awaited, the
    remaining calls are dropped, and the error is raised. Ctrl-C is raised at once, without waiting for the
    running calls, because the program ends."""
    pool = ThreadPoolExecutor(workers)
    try:
        pending = {pool.submit(what, item) for item in items}
        while pending:
            done, pending = wait(pending, LOOK_SECONDS, FIRST_EXCEPTION)
            for job in done:
                job.result()
    finally:
        pool.shutdown(wait=not isinstance(sys.exception(), KeyboardInterrupt), cancel_futures=True)
