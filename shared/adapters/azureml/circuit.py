"""A circuit breaker: calls to an unresponsive service fail fast.

After several calls in a row without an answer, calls fail at once for a while, with the time of the outage in the
error, so that threads stay free for work without that service. Then one call tries again; its answer closes the circuit
for all calls.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from shared.kernel.errors import NoAnswer, Unavailable

FAILURES = 3  # failures in a row that open the circuit
REST_SECONDS = 15.0
AT_ONCE = 16  # concurrent calls; more would only wait for the same missing answer


class Circuit:
    """One circuit per service. `clock` returns monotonic seconds."""

    def __init__(self, service: str, clock: Callable[[], float] = time.monotonic, at_once: int = AT_ONCE) -> None:
        self._service, self._clock = service, clock
        self._lock = threading.Lock()
        self._calls = threading.BoundedSemaphore(at_once)
        self._failures = 0
        self._rests_until = 0.0
        self._since: datetime | None = None

    @contextmanager
    def call(self) -> Iterator[None]:
        """Make one call. Raises Unavailable at once while the circuit is open, or too many calls are active."""
        self._admit()
        try:
            yield
        except NoAnswer:
            self._failed()
            raise
        except BaseException:
            self._answered()  # a refusal is an answer, too
            raise
        else:
            self._answered()
        finally:
            self._calls.release()

    def _admit(self) -> None:
        with self._lock:
            if self._failures >= FAILURES:
                left = self._rests_until - self._clock()
                if left > 0:
                    raise Unavailable(
                        f"{self._service} has not answered since {self._since:%H:%M:%S} UTC; "
                        f"the next attempt is in {left:.0f} s."
                    )
                self._rests_until = self._clock() + REST_SECONDS  # this call tries; the others keep failing fast
        if not self._calls.acquire(blocking=False):
            raise Unavailable(f"{self._service} is slow: too many calls are waiting for it. Try again.")

    def _failed(self) -> None:
        with self._lock:
            self._failures += 1
            self._since = self._since or datetime.now(UTC)
            if self._failures >= FAILURES:
                self._rests_until = self._clock() + REST_SECONDS

    def _answered(self) -> None:
        with self._lock:
            self._failures, self._since = 0, None
