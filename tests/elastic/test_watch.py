"""How a working node notices that another is silent, and how few requests to the table the watch needs."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace

import pytest

from emulators.process import wait_for
from emulators.testing import azurite
from tests.elastic.agents import DEADLINE_SECONDS
from trainers.elastic import agent
from trainers.elastic.backend import AzureTableRendezvousBackend
from trainers.elastic.bell import SILENT, Bell, ring_all
from trainers.elastic.client import connect
from trainers.elastic.member import Member
from trainers.elastic.protocol import Change, Limits, Node, Round, Times
from trainers.elastic.protocol import TeamMember as Place

HOST = "127.0.0.1"


@pytest.fixture
def backend(account: azurite.Azurite, run: str) -> Iterator[AzureTableRendezvousBackend]:
    with closing(connect(account.table_url, {})) as table:
        yield AzureTableRendezvousBackend(table, run)


@contextmanager
def _joined(backend: AzureTableRendezvousBackend, times: Times, nodes: int = 2) -> Iterator[list[Member]]:
    """Return `count` members of this process that work in one round."""
    with ExitStack() as stack:
        members = [Member(backend, Limits(nodes, nodes), times, HOST) for _ in range(nodes)]
        for member in members:
            stack.callback(member.leave)
        with ThreadPoolExecutor() as pool:
            list(pool.map(Member.join, members))
        yield members


@contextmanager
def _peer(backend: AzureTableRendezvousBackend, times: Times, port: int) -> Iterator[Member]:
    """Return a working member with a peer that answered when they met. Since then the peer's row is unchanged, and
    the test holds its bell."""
    met = Bell("peer", HOST, threading.Event())
    peer = Node("peer", address=HOST, bell=met.port)
    backend.write_node(peer)
    member = Member(backend, Limits(2, 2), times, HOST)
    try:
        member.join()
        backend.write_node(replace(peer, joined=1, beat=1, bell=port))
        yield member
    finally:
        met.close()
        member.leave()


def _drained(server: socket.socket) -> int:
    """Return how many calls arrived since the last time. The kernel accepts calls for a stopped process."""
    server.setblocking(False)
    count = 0
    with suppress(BlockingIOError):
        while True:
            server.accept()[0].close()
            count += 1
    return count


def test_who_is_silent_for_long_is_not_waited_for_once_more(backend: AzureTableRendezvousBackend) -> None:
    """A node counts as gone at the first check after its allowed silence, if its bell did not answer after the
    check before. The bell is not rung again first, because a ring takes a second."""
    times = Times(interval=1, attempts=1)
    with socket.create_server((HOST, 0)) as server, _peer(backend, times, server.getsockname()[1]) as member:
        _drained(server)  # the calls of the join
        known: list[tuple[list[Change], int]] = []
        member.changed = lambda _number, why: known.append((why, _drained(server)))
        member.stands_still = lambda: True
        wait_for(lambda: known, DEADLINE_SECONDS, "the silence to be known")
        assert known[0] == ([Change("peer is gone")], 1)


def test_who_answers_its_bell_is_not_gone(backend: AzureTableRendezvousBackend) -> None:
    """A node that can't reach the table stays in the team, however long its row is unchanged."""
    bell = Bell("peer", HOST, threading.Event())
    with _peer(backend, Times(interval=1, attempts=1), bell.port) as member:
        told: list[list[Change]] = []
        member.changed = lambda _number, why: told.append(why)
        member.stands_still = lambda: True
        silent = member.silences
        wait_for(lambda: silent.longer_than(3), DEADLINE_SECONDS, "three times the silence of a dead node")
        assert told == []
        bell.close()
        wait_for(lambda: told, DEADLINE_SECONDS, "the bell to refuse")


def test_a_team_that_stands_still_looks_once_a_second(backend: AzureTableRendezvousBackend) -> None:
    """While no member makes steps, as in a long validation, members ring each other, and none checks the table more
    than once a second."""
    with _joined(backend, Times(interval=60)) as members:  # no heartbeat, nor any other look
        for member in members:
            member.stands_still = lambda: True
        before, began = backend.table.requests, time.monotonic()
        wait_for(lambda: backend.table.requests >= before + 10, DEADLINE_SECONDS, "five looks of each")
        looks = (backend.table.requests - before) / len(members)
        assert looks <= time.monotonic() - began + 1.5


def test_a_table_that_cannot_be_read_is_asked_once_a_second(backend: AzureTableRendezvousBackend) -> None:
    """An immediate refusal, as of an expired credential or of a row without a round, causes no busy loop."""
    with _joined(backend, Times(interval=1), nodes=1):
        backend.table.rows(backend._run_id, "rendezvous").put("state", b"no round", time.monotonic() + 30)
        before, began = backend.table.requests, time.monotonic()
        wait_for(lambda: backend.table.requests >= before + 8, DEADLINE_SECONDS, "four looks and heartbeats")
        assert backend.table.requests - before <= 2 * (time.monotonic() - began + 2)
        backend.table.clear(backend._run_id, time.monotonic() + 30)
        assert backend.replace(Round().text(), None)


def test_a_ring_that_is_enough() -> None:
    """When the call ends early, nodes without an answer are left out, and don't count as silent."""
    enough = threading.Event()
    with socket.create_server((HOST, 0)) as server:
        stopped = Node("stopped", address=HOST, bell=server.getsockname()[1])
        assert ring_all([stopped], enough) == {"stopped": SILENT}
        enough.set()
        assert ring_all([stopped], enough) == {}


def test_spoiled_rows_end_nobody(backend: AzureTableRendezvousBackend) -> None:
    """A node can join a run whose state and one of whose nodes' rows are unreadable, and can end its work there
    normally."""
    rows, deadline = backend.table.rows(backend._run_id, "rendezvous"), time.monotonic() + DEADLINE_SECONDS
    rows.put("state", b"no round", deadline)
    rows.put("node:dead", b"no node", deadline)
    with _joined(backend, Times(interval=1, last_call=1), nodes=1) as (member,):
        assert backend.snapshot().unreadable.keys() == {"dead"}
        rows.put("state", b"no round", deadline)
        member.finish(DEADLINE_SECONDS)
        state = backend.snapshot().state
        assert state
        assert Round.of(state).closed == "done"


def test_a_surplus_node_takes_the_place_of_one_that_was_killed(backend: AzureTableRendezvousBackend) -> None:
    """The surplus node, which was never in that round, waits for no lease, because the dead node's row is unchanged
    and its port refuses connections."""
    times = Times(interval=1, attempts=1, last_call=1)
    dead = Node("dead", ticket=1, joined=1, worked=1, address=HOST, bell=_free_port())
    backend.write_node(dead)
    made = Round(1, (Place("dead", 1),), HOST, 1)
    assert backend.replace(made.text(), None)
    with closing_member(Member(backend, Limits(1, 1), times, HOST)) as member:
        assert member.join().round.number == 2


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def closing_member(member: Member) -> Iterator[Member]:
    try:
        yield member
    finally:
        member.leave()


@pytest.mark.parametrize(("slowest", "still"), [(0.1, 1.0), (1.0, 3.0), (10.0, 13.0)])
def test_workers_stand_still_if_a_step_takes_far_longer_than_the_last(
    monkeypatch: pytest.MonkeyPatch, slowest: float, still: float
) -> None:
    """Workers count as stalled after the longest of one second and the smaller of three times the slowest recent
    step and that step plus three seconds. So a cut is noticed soon even where steps are slow."""
    now = 100.0
    monkeypatch.setattr(agent.time, "monotonic", lambda: now)
    pace = agent.Pace(began_at=now, ticked_at=now, slowest=slowest)
    now += still - 0.01
    assert pace.stands_still() is False
    now += 0.02
    assert pace.stands_still() is True
