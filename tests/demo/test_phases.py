"""The phases of the demo, computed from the API's answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from local.demo.phases import ALLOCATE, ARCHIVE, PHASES, SEAL, SUBMIT, TRAIN, UPLOAD, ZERO, Phase, Seen, phases

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def run(*history: tuple[str, float], archived: float | None = None) -> dict[str, Any]:
    moments = [{"state": state, "at": at(seconds).isoformat(), "why": ""} for state, seconds in history]
    told = {"run": "mnist-1", "state": history[-1][0], "created_at": moments[0]["at"], "history": moments}
    return {**told, "archived_at": at(archived).isoformat() if archived else None}


def seen(**changes: Any) -> Seen:
    return Seen(**{"began": START, "cloud_up": at(2), "uploaded": at(3), **changes})


def by_key(rows: list[Phase]) -> dict[str, Phase]:
    return {row.key: row for row in rows}


def test_each_phase_takes_the_time_between_two_moments() -> None:
    """A finished run gives every phase its seconds, and no phase is still running."""
    told = run(("received", 4), ("submitted", 6), ("running", 9), ("completed", 20), archived=22)
    rows = phases(seen(run=told, at_zero=at(25)), at(99))
    assert [row.seconds for row in rows] == [2, 1, 1, 2, 3, 11, 2, 3]
    assert [row.key for row in rows] == list(PHASES)
    assert not any(row.active for row in rows)


def test_the_first_unfinished_phase_runs_and_the_rest_wait() -> None:
    """While the job waits for nodes, allocation's time grows with the clock, and later phases have no time yet."""
    rows = by_key(phases(seen(run=run(("received", 4), ("submitted", 6))), at(10)))
    assert (rows[ALLOCATE].active, rows[ALLOCATE].seconds) == (True, 4)
    assert rows[TRAIN].seconds is None
    assert not rows[SUBMIT].active


def test_a_state_that_was_skipped_takes_no_time() -> None:
    """If the job was first seen completed, training took no time, and allocation all of it."""
    told = run(("received", 4), ("submitted", 6), ("completed", 20))
    rows = by_key(phases(seen(run=told), at(21)))
    assert (rows[ALLOCATE].seconds, rows[TRAIN].seconds) == (14, 0)
    assert rows[ARCHIVE].active


def test_no_phase_is_negative_when_clocks_differ() -> None:
    """If the app dates the sealing before the demo's own end of the upload, sealing takes zero seconds."""
    told = run(("received", 2.9), ("submitted", 6))
    rows = by_key(phases(seen(run=told), at(7)))
    assert rows[SEAL].seconds == 0


def test_before_the_cloud_is_up_nothing_else_runs() -> None:
    """At the start only the first phase has a time."""
    rows = by_key(phases(Seen(began=START), at(1)))
    assert rows[UPLOAD].seconds is None
    assert rows[TRAIN].seconds is None
    assert rows[ZERO].seconds is None
    assert sum(row.active for row in rows.values()) == 1
