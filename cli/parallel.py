"""The same for many things at once, until one of them fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")


def in_parallel(what: Callable[[T], None], items: Iterable[T], workers: int) -> None:
    """Call `what` with each item, in so many threads. The first error is raised once the calls under way have ended;
    those that have not begun by then never do."""
    with ThreadPoolExecutor(workers) as pool:
        jobs = [pool.submit(what, item) for item in items]
        try:
            done, _ = wait(jobs, return_when=FIRST_EXCEPTION)
            for job in done:
                job.result()
        finally:
            pool.shutdown(cancel_futures=True)
