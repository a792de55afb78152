"""A worker, and an agent that the test plays."""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from torch.distributed import TCPStore

from emulators.process import wait_for
from tests.elastic.agents import DEADLINE_SECONDS, ROOT
from trainers.elastic.worker import AGENT, Channel

MEETING = str(ROOT / "tests/elastic/meeting.py")


@contextmanager
def process(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "trainers"), **options.pop("env", {})}
    with subprocess.Popen([sys.executable, MEETING, *arguments], env=env, **options) as started:
        try:
            yield started
        finally:
            started.kill()


@contextmanager
def worker() -> Iterator[tuple[Channel, queue.Queue[dict[str, Any]]]]:
    """A worker process, the socket to it, and its messages."""
    ours, theirs = socket.socketpair()
    os.set_inheritable(theirs.fileno(), True)
    heard: queue.Queue[dict[str, Any]] = queue.Queue()
    with process("worker", env={AGENT: str(theirs.fileno())}, pass_fds=[theirs.fileno()]):
        theirs.close()
        channel = Channel(ours)
        threading.Thread(target=lambda: deque(map(heard.put, channel.messages())), daemon=True).start()
        yield channel, heard
        channel.close()


def waits_for_a_connection(agent: Channel, heard: queue.Queue[dict[str, Any]], number: int) -> bool:
    """Let the worker meet a peer that never connects. Return whether the worker waits for the connection, rather
    than connecting itself.

    Gloo decides by the two ports who of two connects to the other.
    """
    store = TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    place = {"rank": 0, "world_size": 2, "local_rank": 0, "local_world_size": 1, "address": "127.0.0.1"}
    with process("peer", str(store.port), "1"):
        assert heard.get(timeout=DEADLINE_SECONDS)["say"] == "waits"
        agent.send(do="meet", round=number, port=store.port, **place)
        addresses = [f"group/0//cpu//0/{each}" for each in range(2)]  # gloo's keys for where each listens
        wait_for(lambda: store.check(addresses), DEADLINE_SECONDS, "both to say where they listen")
        with suppress(queue.Empty):
            assert heard.get(timeout=1.0)["say"] == "met"
            return False
        agent.send(do="cut", round=number)
        assert heard.get(timeout=5.0)["say"] == "waits"
        return True


def test_a_worker_comes_back_although_its_peer_never_connects() -> None:
    """A worker that waits for a peer's connection has no connection that could be cut. It waits for a round again
    within seconds, although an exchange may take ten minutes."""
    with worker() as (agent, heard):
        assert any(waits_for_a_connection(agent, heard, number) for number in range(1, 20))
