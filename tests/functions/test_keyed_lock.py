"""One handler at a time for each run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

from functions.keyed_lock import KeyedLock


def test_the_same_name_waits_and_another_does_not() -> None:
    """Holders of the same name run one at a time; holders of other names are not delayed, and no lock remains
    afterwards."""
    locks, inside, most = KeyedLock(), [0], [0]
    held, other = Barrier(2), Event()

    def same() -> None:
        with locks.of("a"):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            inside[0] -= 1

    def holder() -> None:
        with locks.of("a"):
            held.wait(10)
            assert other.wait(10)  # "b" continues meanwhile

    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(holder)
        held.wait(10)
        rest = [pool.submit(same) for _ in range(6)]
        with locks.of("b"):
            other.set()
        for future in (first, *rest):
            future.result(10)
    assert most == [1]
    assert not locks._locks
