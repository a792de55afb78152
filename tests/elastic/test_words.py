"""Messages between an agent and its workers: a message that comes too early, too late or in the middle costs no
round."""

from __future__ import annotations

import json
import queue
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import pytest
import torch
import torch.distributed as dist

from emulators.process import wait_for
from emulators.storage import services
from emulators.storage.keys import KEY
from emulators.storage.services import Services
from tests.elastic.agents import DEADLINE_SECONDS
from tests.trainers.forked import fork
from trainers.elastic.agent import BACK_TIMES, Agent, Job
from trainers.elastic.backend import AzureTableRendezvousBackend
from trainers.elastic.bell import REFUSED, ring
from trainers.elastic.client import connect
from trainers.elastic.member import Member
from trainers.elastic.protocol import Change, Limits, Node, Times
from trainers.elastic.worker import Channel, RunOver, Team

HOST = "127.0.0.1"


def _work(end: socket.socket) -> None:
    """Play a worker: add ones with the team until the round breaks, and report after the first."""
    channel = Channel(end)
    team = Team(channel)
    while True:
        try:
            team.meet(timedelta(seconds=2 * DEADLINE_SECONDS))
            ones = torch.tensor(1)
            dist.all_reduce(ones)
            channel.send(say="added", ones=int(ones))
            while True:
                dist.all_reduce(ones)
        except RunOver:
            return
        except Exception as error:
            if not team.lost_peer(error):
                raise
        team.part()


class Worker:
    """A worker process and the agent's end of its socket, which the test holds."""

    def __enter__(self) -> Self:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = fork(_work, theirs)
        self._channel = Channel(ours)
        self._said: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._channel.close()

    def _listen(self) -> None:
        for message in self._channel.messages():
            self._said.put(message)

    def says(self, what: str) -> dict[str, Any]:
        """Check the worker's next message."""
        message = self._said.get(timeout=DEADLINE_SECONDS)
        assert message["say"] == what
        return message

    def meet(self, number: int, rank: int, world: int, port: int) -> None:
        place = {"rank": rank, "world_size": world, "local_rank": 0, "local_world_size": 1}
        self._channel.send(do="meet", round=number, address=HOST, port=port, **place)

    def cut(self, number: int) -> None:
        self._channel.send(do="regroup", round=number)
        self._channel.send(do="cut", round=number)


def _store() -> dist.TCPStore:
    return dist.TCPStore(HOST, 0, None, True, wait_for_workers=False)


def test_those_that_failed_half_way_and_those_that_had_not_begun_meet_in_the_next_round() -> None:
    """One process is cut while gloo waits for a peer that never heard of the round. Both meet in the next round."""
    with ExitStack() as stack:
        early, late = (stack.enter_context(Worker()) for _ in range(2))
        for worker in (early, late):
            worker.says("waits")
        broken = _store()
        broken.set("here/1", "")
        early.meet(1, 0, 2, broken.port)
        wait_for(lambda: broken.num_keys() > 2, DEADLINE_SECONDS, "gloo's own key beside here/0 and here/1")
        early.cut(1)
        assert "could not meet" in early.says("waits")["why"]
        whole = _store()
        for rank, worker in enumerate((early, late)):
            worker.meet(2, rank, 2, whole.port)
        for worker in (early, late):
            assert worker.says("met")["round"] == 2
            assert worker.says("added")["ones"] == 2


def test_a_round_that_is_cut_before_its_worker_began_with_it_is_over() -> None:
    """The message to cut may follow the message to meet at once. The worker then waits for the next round, which is
    complete."""
    with Worker() as worker:
        worker.says("waits")
        for number in range(1, 6):
            store = _store()
            worker.meet(number, 0, 2, store.port)
            worker.cut(number)
            worker.says("waits")
        whole = _store()
        worker.meet(6, 0, 1, whole.port)
        worker.says("met")
        assert worker.says("added")["ones"] == 1


def test_a_first_node_that_dies_as_its_worker_connects_costs_no_time_out() -> None:
    """PyTorch would retry a refusing store for the whole time-out of an exchange. A cut ends the retries within
    seconds."""
    with Worker() as worker:
        worker.says("waits")
        with socket.create_server((HOST, 0)) as server:
            worker.meet(1, 0, 2, server.getsockname()[1])
            server.accept()[0].close()
        worker.cut(1)
        assert "could not meet" in worker.says("waits")["why"]


LISTENER = """
import json, os, socket, sys, time
with open(sys.argv[1], "a", 1) as heard:
    heard.write(json.dumps({"do": "started", "round": 0}) + "\\n")
time.sleep(float(sys.argv[2]) * int(os.environ["LOCAL_RANK"]))
wire = socket.socket(fileno=int(os.environ["ELASTIC_AGENT_FD"])).makefile("rw")
wire.write(json.dumps({"say": "waits"}) + "\\n"); wire.flush()
with open(sys.argv[1], "a", 1) as heard:
    for line in wire:
        heard.write(line)
"""


class Listeners:
    """An agent whose workers write down the messages they get. `slow`: additional start-up seconds of the second
    worker."""

    def __init__(self, folder: Path, url: str, times: Times, workers: int = 1, slow: float = 0.0) -> None:
        self._heard = folder / "heard"
        self._heard.touch()
        backend = AzureTableRendezvousBackend(connect(url, {}), "words")
        self.member = Member(backend, Limits(1, 1), times, HOST, workers)
        command = [sys.executable, "-c", LISTENER, str(self._heard), str(slow)]
        self._agent = Agent(Job(command, workers, 0, "words"), self.member)
        self._thread = threading.Thread(target=self._agent.run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._agent.end()
        self._thread.join()

    def heard(self) -> list[tuple[str, int]]:
        lines = map(json.loads, self._heard.read_text().splitlines())
        return [(line["do"], line["round"]) for line in lines]

    def wait_for(self, what: str, count: int) -> None:
        said = f"{count} times {what}"
        wait_for(lambda: [do for do, _ in self.heard()].count(what) == count, DEADLINE_SECONDS, said)


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Services]:
    with services.start(tmp_path / "account", key=KEY) as running:
        yield running


def test_what_was_seen_in_an_earlier_round_does_not_end_this_one(account: Services, tmp_path: Path) -> None:
    """A change carries the number of its round, and ends that round only."""
    with Listeners(tmp_path, account.table_url, Times()) as node:
        node.wait_for("meet", 1)
        node.member.changed(0, [Change("another is gone")])
        node.member.changed(1, [Change("another left", all_live=True)])
        node.wait_for("regroup", 1)
        assert node.heard() == [("started", 0), ("meet", 1), ("regroup", 1)]


def test_a_worker_that_starts_slowly_is_waited_for(account: Services, tmp_path: Path) -> None:
    """A worker that takes longer to start than a worker may take to return from a round is not killed."""
    times = Times(interval=0.1, attempts=1)
    with Listeners(tmp_path, account.table_url, times, workers=2, slow=2 * BACK_TIMES * times.silence) as node:
        node.wait_for("meet", 2)
        assert [do for do, _ in node.heard()].count("started") == 2


def test_a_port_that_another_program_has_now_is_not_heard_to_its_end() -> None:
    """A process that answers a ring with more than the node's name is another program. The ring ends, however much
    that program sends."""
    said = 0

    def talk(server: socket.socket) -> None:
        nonlocal said
        with suppress(OSError), server.accept()[0] as caller:
            while said < 2**26:
                said += caller.send(b"x" * 2**16)

    with socket.create_server((HOST, 0)) as server:
        thread = threading.Thread(target=talk, args=(server,), daemon=True)
        thread.start()
        assert ring(Node("a", address=HOST, bell=server.getsockname()[1])) == REFUSED
        thread.join(DEADLINE_SECONDS)
    assert 0 < said < 2**26
