"""Phases of a run, their durations, and the usual durations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest

from cli.api import phases
from cli.errors import Unreachable
from cli.show.live import Lines, Screen
from cli.terminal_text import Console

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> str:
    return (BEGAN + timedelta(seconds=seconds)).isoformat()


def a_run(name: str = "r", archived: float | None = None, **moments: Any) -> dict[str, Any]:
    """A run whose history is given as (state, second) pairs."""
    history = moments.pop("history")
    told = {"run": name, "state": history[-1][0], "history": [{"state": s, "at": at(t)} for s, t in history]}
    place = {"experiment": "e", "cluster": "c", "nodes": 2, "attempts": 1, "output": "output/e/r"}
    return {**told, **place, "created_at": at(0), "archived_at": None if archived is None else at(archived), **moments}


DONE = a_run(
    history=[("received", 0), ("submitted", 2), ("queued", 3), ("running", 200), ("completed", 260)], archived=263
)


def test_each_phase_has_its_time() -> None:
    """A phase's seconds are those between the moments in the history; later phases have none yet."""
    assert phases.spent(DONE, BEGAN) == {
        phases.SUBMIT: 2,
        phases.ALLOCATE: 198,
        phases.TRAIN: 60,
        phases.ARCHIVE: 3,
    }
    waiting = a_run(history=[("received", 0), ("queued", 1)])
    assert phases.spent(waiting, BEGAN + timedelta(seconds=43)) == {phases.SUBMIT: 1, phases.ALLOCATE: 42}
    assert phases.phase(waiting) == phases.ALLOCATE
    assert phases.phase(DONE) is None


def test_a_preemption_adds_to_the_phases() -> None:
    """A run that returns to the queue has the sum of both waits, and of both trainings."""
    run = a_run(history=[("received", 0), ("queued", 1), ("running", 11), ("queued", 21), ("running", 51)])
    spent = phases.spent(run, BEGAN + timedelta(seconds=60))
    assert (spent[phases.ALLOCATE], spent[phases.TRAIN]) == (40, 19)


def test_a_clock_that_is_behind_shows_no_negative_time() -> None:
    """If the machine's clock is behind the service's, the duration is zero."""
    assert phases.spent(a_run(history=[("received", 5)]), BEGAN)[phases.SUBMIT] == 0


def earlier(waits: list[int]) -> list[dict[str, Any]]:
    return [
        a_run(f"r{i}", history=[("received", 0), ("queued", 0), ("running", w), ("completed", w + 60)], archived=w + 60)
        for i, w in enumerate(waits)
    ]


@pytest.mark.parametrize(
    ("waits", "words"),
    [
        ([], "usually 3 to 5 min in Azure"),
        ([42], "usually 42 s"),
        ([10, 20, 600], "usually 20 s"),
        ([100, 180, 190, 290, 300, 1000], "usually 3 to 5 min"),
        ([40, 50, 60, 300, 300], "usually 50 s to 5 min"),
        ([60, 60, 60, 61], "usually 60 s"),
    ],
)
def test_what_is_usual(waits: list[int], words: str) -> None:
    """The usual duration is the middle half of four or more earlier runs, the median of fewer, or a stated default."""
    run = a_run("new", history=[("received", 0)])
    assert phases.usual(run, earlier(waits))[phases.ALLOCATE] == words


def test_only_runs_alike_tell_what_is_usual() -> None:
    """Runs on another cluster or other nodes, failed runs and the run itself don't count towards the usual
    duration."""
    run = a_run("new", history=[("received", 0)])
    (one,) = earlier([42])
    others = [one | {"cluster": "d"}, one | {"nodes": 3}, one | {"state": "failed"}, one | {"run": "new"}]
    assert phases.usual(run, others) == phases.DEFAULTS


@pytest.mark.parametrize(
    ("seconds", "words", "clock"),
    [(0.44, "0.4 s", "0:00"), (42, "42 s", "0:42"), (185, "3 min 5 s", "3:05"), (7322, "2 h 2 min", "2:02:02")],
)
def test_times_in_words(seconds: float, words: str, clock: str) -> None:
    """Durations are rounded as people say them, and shown like a clock."""
    assert (phases.duration(seconds), phases.clock(seconds)) == (words, clock)


def screen() -> tuple[Screen, StringIO]:
    out = StringIO()
    console = Console(file=out, width=100)
    return Screen(console, dict(phases.DEFAULTS), clock=lambda: BEGAN + timedelta(seconds=300)), out


def test_a_followed_run_is_told_in_lines() -> None:
    """Without a terminal each phase is printed once, when it ends, with the log between, and the last line is
    whole."""
    watching, out = screen()
    running = {**DONE, "state": "running", "history": DONE["history"][:4], "archived_at": None}
    watching.run(running)
    watching.log("epoch 1\nepo")
    watching.run(running)
    watching.log("ch 2\n50%\r100%\nthe end")
    watching.run(DONE)

    assert [line.split("  ")[0].strip() for line in out.getvalue().splitlines()] == [
        "✓ submitting",
        "✓ allocating nodes",
        "epoch 1",
        "epoch 2",
        "100%",
        "✓ training",
        "the end",
        "✓ archiving",
    ]


def test_a_text_in_pieces_gives_its_lines() -> None:
    """A log that arrives cut anywhere gives the same lines; a line rewritten by carriage returns keeps its last
    state."""
    text = "start\nepoch 1\r\n50%\r100%\nno end yet"
    lines = Lines()
    assert [line for character in text for line in lines.add(character)] == ["start", "epoch 1", "100%"]
    assert lines.rest == "no end yet"


def test_a_failure_is_marked_where_it_happened() -> None:
    """The phase in which a run failed has a cross, the others a tick."""
    watching, out = screen()
    watching.run(a_run(history=[("received", 0), ("queued", 1), ("running", 2), ("failed", 9)], archived=10))
    marks = [line[:10].split()[0] for line in out.getvalue().splitlines()]
    assert marks == ["✓", "✓", "✗", "✓"]


def test_an_absence_is_told_once() -> None:
    """An API that does not answer is reported once, and its return once; the next absence is reported again."""
    watching, out = screen()
    for failures in (3, 0, 2):
        for _ in range(failures):
            watching.outage.failed(Unreachable("It does not answer."))
        watching.outage.recovered()
    once = ["It does not answer. Waiting until it is back.", "It is back."]
    assert out.getvalue().splitlines() == once * 2
