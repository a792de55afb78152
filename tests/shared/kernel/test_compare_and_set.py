"""Read, decide and write; repeat with growing pauses when another writer was faster, up to a limit."""

from __future__ import annotations

import pytest

from shared.kernel.clock import SystemClock
from shared.kernel.compare_and_set import ATTEMPTS, LONGEST_PAUSE, compare_and_set
from shared.kernel.errors import Changed, Conflict
from tests.fakes.storage import Clock


class Record:
    """A number with an etag, which others change `busy` times, each time before our write."""

    def __init__(self, busy: int = 0) -> None:
        self.value, self.etag, self.busy, self.reads = 0, 0, busy, 0

    def read(self) -> tuple[int, int]:
        self.reads += 1
        return self.value, self.etag

    def add_one(self, stored: tuple[int, int]) -> int:
        if self.busy:
            self.busy -= 1
            self.value, self.etag = self.value + 10, self.etag + 1
        value, etag = stored
        if etag != self.etag:
            raise Changed("412")
        self.value, self.etag = value + 1, etag + 1
        return self.value


def test_a_write_nobody_met_reads_once_and_waits_for_nothing() -> None:
    record, clock = Record(), Clock()
    assert compare_and_set(clock, "It", record.read, record.add_one) == 1
    assert (record.reads, clock.paused) == (1, [])


def test_each_attempt_reads_what_others_wrote() -> None:
    """No write is lost: the record has both changes of others and our own."""
    record, clock = Record(busy=2), Clock()
    assert compare_and_set(clock, "It", record.read, record.add_one) == 21
    assert (record.reads, len(clock.paused)) == (3, 2)


def test_pauses_grow_and_end() -> None:
    """The bound of the pauses doubles up to LONGEST_PAUSE; after ATTEMPTS the error names the record."""
    record, clock = Record(busy=1000), Clock()
    with pytest.raises(Changed, match=f"^Run a was changed by others {ATTEMPTS} times"):
        compare_and_set(clock, "Run a", record.read, record.add_one)
    assert record.reads == ATTEMPTS
    assert clock.paused[:3] == [0.02, 0.04, 0.08]
    assert clock.paused == sorted(clock.paused)
    assert (clock.paused[-1], sum(clock.paused) < 7) == (LONGEST_PAUSE, True)


def test_pauses_differ_between_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two writers that collided wait for different times, so they do not collide again; no pause exceeds its bound."""
    slept: list[float] = []
    monkeypatch.setattr("shared.kernel.clock.time.sleep", slept.append)
    for _ in range(20):
        SystemClock().pause(0.5)
    assert len(set(slept)) > 10
    assert all(0 <= seconds <= 0.5 for seconds in slept)


def test_the_first_read_may_be_another_one() -> None:
    """`first` is a value that the caller already holds; once the value proves stale, the record is read."""
    record, clock = Record(busy=1), Clock()
    held = record.read()
    assert compare_and_set(clock, "It", record.read, record.add_one, first=lambda: held) == 11
    assert record.reads == 2


def test_other_errors_end_it() -> None:
    def refuse(_: object) -> None:
        raise Conflict("no", "no")

    clock = Clock()
    with pytest.raises(Conflict):
        compare_and_set(clock, "It", Record().read, refuse)
    assert clock.paused == []
