"""Fault knobs, and their effect on the barrier."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from emulators.eventgrid import faults
from emulators.eventgrid.faults import BadFaults


@pytest.fixture(scope="module")
def queue(store: Any) -> str:
    return str(store.queue())


@pytest.fixture(scope="module")
def grid(new_grid: Callable[..., Any], to_queue: Callable[..., Any], queue: str) -> Any:
    return new_grid([to_queue("team", queue)])


@pytest.fixture
def sent(grid: Any, store: Any, queue: str, custom_event: Any) -> Callable[..., list[str]]:
    """Publish events with these knobs, wait at the barrier, and return the ids in the order of the queue."""

    def send(count: int, **knobs: Any) -> list[str]:
        grid.faults(**knobs)
        grid.publish(*[custom_event(f"{number:03}") for number in range(count)]).raise_for_status()
        grid.barrier()
        return [str(event["id"]) for event in store.messages(queue)]

    return send


def test_duplicate_delivers_each_event_so_often(sent: Any) -> None:
    """`duplicate` 3 delivers each event three times."""
    assert set(Counter(sent(20, duplicate=3)).values()) == {3}


def test_shuffle_changes_the_order_and_loses_nothing(sent: Any) -> None:
    """All shuffled events arrive, in a different order."""
    ids = sent(60, shuffle=True, seed=1)
    assert sorted(ids) == [f"{number:03}" for number in range(60)]
    assert ids != sorted(ids)


def test_lose_loses_about_its_share_and_the_barrier_knows(sent: Any, grid: Any) -> None:
    """Lost events never arrive, the barrier does not wait for them, and the counts include them."""
    before = grid.counts()["lost"]
    ids = sent(200, lose=0.5, seed=7)
    lost = grid.counts()["lost"] - before
    assert len(ids) + lost == 200
    assert 60 < lost < 140
    assert sent(200, lose=0.5, seed=7) == ids
    assert sent(5, lose=1) == []


def test_delay_holds_back_and_the_barrier_waits(sent: Any) -> None:
    """A delayed event arrives at the end of the delay, and only then the barrier returns."""
    start = time.monotonic()
    assert len(sent(3, delay_seconds=[0.6, 0.8])) == 3
    assert time.monotonic() - start >= 0.6


def test_the_barrier_says_504_when_its_time_is_up(grid: Any, custom_event: Any, store: Any, queue: str) -> None:
    """A barrier that times out answers 504 with the pending events."""
    grid.faults(delay_seconds=[2, 2])
    grid.publish(custom_event()).raise_for_status()
    answer = grid.get("/control/barrier?timeout=0.2")
    assert (answer.status_code, answer.json()["pending"]) == (504, 1)
    grid.barrier()
    assert len(store.messages(queue)) == 1


def test_event_types_limit_the_knobs(sent: Any) -> None:
    """Knobs with event_types do not affect events of other types. `{}` turns every knob off."""
    assert len(sent(4, lose=1, event_types=["Other.Type"])) == 4
    assert sent(4, lose=1, event_types=["Team.RunArchived"]) == []
    assert len(sent(4)) == 4


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"loose": 1}, "no knob loose; there are .*lose"),
        ({"delay_seconds": 1}, "delay_seconds is"),
        ({"delay_seconds": [2, 1]}, "low <= high"),
        ({"lose": 1.5}, "from 0 to 1"),
        ({"lose": "0.5"}, "from 0 to 1"),
        ({"duplicate": -1}, "whole number from 1 to 1000"),
        ({"duplicate": 10**12}, "whole number from 1 to 1000"),
        ({"duplicate": float("inf")}, "whole number from 1 to 1000"),
        ({"delay_seconds": [0, float("inf")]}, "high <= 86400"),
        ({"delay_seconds": "12"}, "must be .low, high."),
        ({"seed": {}}, "seed a whole number"),
        ({"shuffle": "no"}, "shuffle is true or false"),
        ({"event_types": 5}, "list of types"),
        ({"event_types": [{}]}, "list of types"),
        ([["lose"]], "JSON object"),
        (None, "JSON object"),
    ],
)
def test_a_wrong_knob_is_refused(knobs: Any, message: str) -> None:
    """An unknown knob or an impossible value is an error, so a test cannot pass without its fault."""
    with pytest.raises(BadFaults, match=message):
        faults.read(knobs)


@pytest.mark.parametrize("timeout", ["soon", "nan", "inf", "-1", ""])
def test_a_barrier_needs_a_time(grid: Any, timeout: str) -> None:
    """A timeout that is not a number of seconds is a 400."""
    assert grid.get(f"/control/barrier?timeout={timeout}").status_code == 400
