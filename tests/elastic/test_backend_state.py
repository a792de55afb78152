"""Who counts as dead: the state as a node sees it, over a backend in memory and a clock that the test turns."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError, RendezvousStateError
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import (
    RendezvousSettings,
    RendezvousTimeout,
    _NodeDesc,
    _RendezvousState,
)

from trainers.elastic import state as module
from trainers.elastic.state import SharedState

ME, PEER = _NodeDesc("10.0.0.1", 1, 0), _NodeDesc("10.0.0.2", 2, 0)
INTERVAL, ATTEMPTS = 3, 2
LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)


class Memory:
    """What a table shows: a state, heartbeats, and that it may be away. Takes no writes."""

    def __init__(self) -> None:
        self.bits: bytes | None = None
        self.beats: dict[str, datetime] = {}
        self.away = False

    def put(self, **beats: datetime) -> None:
        """A complete round of these nodes, with their last heartbeats."""
        nodes = {"me": ME, "peer": PEER}
        state = _RendezvousState()
        state.complete = True
        state.participants = {nodes[name]: rank for rank, name in enumerate(beats)}
        state.last_heartbeats = {nodes[name]: LONG_AGO for name in beats}
        self.bits = pickle.dumps(state)
        self.beats = {repr(nodes[name]): beat for name, beat in beats.items()}

    def look(self) -> tuple[tuple[bytes, Any] | None, dict[str, datetime]]:
        if self.away:
            raise RendezvousConnectionError("away")
        return (self.bits, 1) if self.bits is not None else None, self.beats


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def shared(memory: Memory) -> SharedState:
    settings = RendezvousSettings("run", 1, 4, RendezvousTimeout(), timedelta(seconds=INTERVAL), ATTEMPTS)
    return SharedState(memory, settings, ME)  # type: ignore[arg-type]


def after(clock: Clock, seconds: float, shared: SharedState) -> set[_NodeDesc]:
    clock.now += seconds
    shared.sync()
    return set(shared.state.participants)


def test_a_heartbeat_that_stands_still_for_the_limit_takes_its_node_out(
    clock: Clock, memory: Memory, shared: SharedState
) -> None:
    """A node is dead once its heartbeat stood still for interval x attempts of our reading."""
    memory.put(me=LONG_AGO, peer=LONG_AGO)
    assert after(clock, 0, shared) == {ME, PEER}
    for _ in range(5):
        assert after(clock, 1, shared) == {ME, PEER}
    assert after(clock, 1, shared) == {ME}


def test_at_work_a_node_may_be_silent_for_longer(clock: Clock, memory: Memory, shared: SharedState) -> None:
    """While the workers are at work a node has three times the limit; once they failed, the limit counts at once."""
    memory.put(me=LONG_AGO, peer=LONG_AGO)
    shared.at_work = True
    after(clock, 0, shared)
    for _ in range(5):
        assert after(clock, INTERVAL, shared) == {ME, PEER}
    shared.at_work = False
    assert after(clock, 1, shared) == {ME}


def test_clocks_are_not_compared(clock: Clock, memory: Memory, shared: SharedState) -> None:
    """A node whose clock is years behind lives as long as its heartbeat changes."""
    for second in range(100):
        memory.put(me=LONG_AGO, peer=LONG_AGO + timedelta(microseconds=second))
        assert after(clock, 3, shared) == {ME, PEER}


def test_an_outage_is_nobodys_silence(clock: Clock, memory: Memory, shared: SharedState) -> None:
    """Time in which the table could not be read kills nobody; afterwards a dead node is found dead."""
    memory.put(me=LONG_AGO, peer=LONG_AGO)
    after(clock, 0, shared)
    memory.away = True
    for _ in range(10):
        with pytest.raises(RendezvousConnectionError):
            after(clock, 60, shared)
    memory.away = False
    assert after(clock, 60, shared) == {ME, PEER}
    assert after(clock, INTERVAL, shared) == {ME}


def test_a_node_never_buries_itself(clock: Clock, memory: Memory, shared: SharedState) -> None:
    """A node whose own heartbeats do not arrive stays in its own view."""
    memory.put(me=LONG_AGO)
    after(clock, 0, shared)
    for _ in range(10):
        assert after(clock, INTERVAL, shared) == {ME}


def test_the_last_one_out_opens_the_next_round(clock: Clock, memory: Memory, shared: SharedState) -> None:
    """When all participants of a complete round are dead, the next round can begin."""
    memory.put(peer=LONG_AGO)
    after(clock, 0, shared)
    after(clock, INTERVAL, shared)
    assert after(clock, INTERVAL, shared) == set()
    assert (shared.state.complete, shared.state.round) == (False, 1)


@pytest.mark.parametrize(
    ("bits", "says"),
    [
        (b"no pickle", "cannot be read"),
        (pickle.dumps(print), "builtins.print has no place"),
        (pickle.dumps({"round": 0}), "is a dict"),
        (pickle.dumps(_RendezvousState())[:-5], "cannot be read"),
    ],
)
def test_only_a_rendezvous_state_is_read(memory: Memory, shared: SharedState, bits: bytes, says: str) -> None:
    """What is no rendezvous state is a RendezvousStateError, and runs no code of the table's writers."""
    memory.bits = bits
    with pytest.raises(RendezvousStateError, match=says):
        shared.sync()
