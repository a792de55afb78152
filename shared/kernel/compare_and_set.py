"""Read a record, decide, and write the record under the etag that was read. Start again if another writer was faster.

Each round waits longer than the round before, by a random time, so that two writers of one record do not collide again
and again (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/, "full jitter").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from shared.kernel.clock import Clock
from shared.kernel.errors import Changed

ATTEMPTS = 12  # all together take three seconds on average, six at most
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0  # seconds: the longest pause before the second attempt, and before any attempt

R = TypeVar("R")
T = TypeVar("T")


def compare_and_set(
    clock: Clock,
    what: str,
    read: Callable[[], R],
    write: Callable[[R], T],
    *,
    first: Callable[[], R] | None = None,
) -> T:
    """Read a record, and return the result of writing. When `write` raises Changed, start again.

    `first` replaces `read` in the first attempt where it is cheaper: a row from memory, or a row that the caller holds.
    Raises Changed when every attempt met another writer; the error's sentence begins with `what`.
    """
    for attempt in range(ATTEMPTS):
        if attempt:
            clock.pause(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1)))
        try:
            return write((read if attempt or first is None else first)())
        except Changed:
            continue
    raise Changed(f"{what} was changed by others {ATTEMPTS} times in a row, so this change was not made. Try again.")
