"""A worker that outlives its rounds: the agent sends the meeting address, and the worker stays alive after the loss
of a peer.

    team = Team.of(os.environ)                   # None unless `elastic.launch --in-place` started this process
    while True:
        place = team.meet(timedelta(minutes=5))  # waits for a round, and creates its default process group
        try:
            for step in ...:
                team.tick()                      # once a step
                ...
        except Exception as error:
            if not team.lost_peer(error):
                raise
        team.part()                              # destroys the process group; the model stays

A process notices a lost peer at once by the broken connection; its agent tells it about a silent peer. Then the process
cuts its own connections, so that its neighbours notice the loss and no process waits for a timeout. Works with gloo.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from .events import note

AGENT = "ELASTIC_AGENT_FD"  # a socket to the agent
TICK_SECONDS = 0.25
POLL_SECONDS = 0.01
# A process that was stopped for longer than this asks its agent whether its round still exists, before the next step.
PAUSE_SECONDS = 5.0
# Gloo and TCPStore may reconnect after a cut, so the cut is repeated until the process has left the round.
CUT_SECONDS = 0.2
# For a store that has just accepted a connection. If it died since, PyTorch retries for about twice that time.
STORE_TIME = timedelta(seconds=1)


class RoundEnded(Exception):
    """The team meets again. Every process of the round raises this exception at one step, or finds its connections
    cut.
    """


class RunOver(Exception):
    """The run was closed, with this reason."""


@dataclass(frozen=True)
class Place:
    """The rank of this process in a round."""

    round: int
    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    address: str
    port: int


class Channel:
    """Lines of JSON over a socket, sent and received. Threads may share it."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._lock = threading.Lock()
        self._rest = b""

    def send(self, **message: Any) -> bool:
        """Send a message; return False for a gone peer."""
        with self._lock, contextlib.suppress(OSError):
            self._socket.sendall(json.dumps(message).encode() + b"\n")
            return True
        return False

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield the peer's messages, until the peer is gone."""
        with contextlib.suppress(OSError):
            while part := self._socket.recv(65536):
                *lines, self._rest = (self._rest + part).split(b"\n")
                yield from map(json.loads, lines)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class Team:
    """This process's connection to its agent, and to the other processes of the round."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._place: Place | None = None
        self._given: Place | None = None  # the next round, as the agent gave it
        self._heard = threading.Condition()
        self._over = ""
        self._cut = False
        self._cutting: Place | None = None  # the round that is being cut again and again
        self._told: set[str] = set()  # what the agent said of the newest round: "regroup", "cut"
        self._may_go_on, self._held = True, False  # held: the agent says when a step may begin
        self._store: dist.Store | None = None
        self._before: set[tuple[int, str]] = set()
        self._ours: set[tuple[int, str]] | None = None
        self._connecting: set[tuple[int, str]] | None = None  # the sockets that existed before the present group
        self._ticked = self._stepped = 0.0
        self._steps = 0
        self._first_step = True
        self.wanted = False  # whether the agent wants the round to end at the next step
        threading.Thread(target=self._listen, name="agent", daemon=True).start()

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Team | None:
        """Return the team of a process of `elastic.launch --in-place`, or None in any other process."""
        number = environ.get(AGENT, "")
        return cls(Channel(socket.socket(fileno=int(number)))) if number else None

    # --- messages of the agent ----------------------------------------------------------------------------------------

    def _listen(self) -> None:
        for message in self._channel.messages():
            with self._heard:
                self._hear(message)
                self._heard.notify_all()
        os._exit(1)  # the agent is gone

    def _hear(self, message: dict[str, Any]) -> None:
        what = message.pop("do")
        if what == "meet":
            self._given, self._told = Place(**message), set()
        elif what == "over":
            self._over = message["why"]
        elif what == "go on":
            self._may_go_on = True
        elif (newest := self._given or self._place) and message["round"] == newest.round:
            if what == "hold":
                self._held = True
                return
            self._told.add(what)
            if not self._given:
                self._obey()

    def _obey(self) -> None:
        """End this round if the agent asked for it. The message may have arrived before this process joined the
        round."""
        self.wanted = self.wanted or bool(self._told)
        if "cut" in self._told and self._cutting is not self._place:
            self._cutting = self._place
            self.cut()
            threading.Thread(target=self._keep_cutting, args=(self._place,), name="cut", daemon=True).start()

    def _keep_cutting(self, place: Place) -> None:
        while True:
            time.sleep(CUT_SECONDS)
            with self._heard:
                if self._place is not place:
                    return
                self.cut()

    # --- rounds -------------------------------------------------------------------------------------------------------

    def meet(self, patience: timedelta, why: str = "ready") -> Place:
        """Wait for a round, and make the round's gloo group the default process group. Raises RunOver.

        `patience` limits each later exchange. If a round breaks before all processes have met, the process waits for
        the next round.
        """
        gc.freeze()  # imported objects stay alive, so `part` need not scan them
        while True:
            note("worker waits", why=why)
            self._channel.send(say="waits", why=why)
            with self._heard:
                while not self._given and not self._over:
                    self._heard.wait(0.2)  # wakes up for signals
                if self._over:
                    raise RunOver(self._over)
                place, self._given = self._given, None
                self._place, self._cut, self.wanted, self._first_step, self._held = place, False, False, True, False
                self._before, self._ours = _sockets(), None
                self._obey()
            assert place
            try:
                note("worker meets", round=place.round, rank=place.rank)
                self._join(place, patience)
                self._ours = _sockets() - self._before
                if self._cut:  # connections made after the cut do not form a team
                    raise dist.DistNetworkError("the round ended while its processes met")
            except Exception as error:
                if not self.lost_peer(error):
                    raise
                why = f"could not meet: {error}"
                self.part()
                continue
            self._stepped = time.monotonic()
            note("worker met", round=place.round, rank=place.rank, world_size=place.world_size)
            self._channel.send(say="met", round=place.round)
            return place

    def _join(self, place: Place, patience: timedelta) -> None:
        """Meet the others at the first agent's store, and connect to each. Ends at once when the round is cut."""
        deadline = time.monotonic() + patience.total_seconds()
        while True:  # a plain connection first: PyTorch retries a refusing port until its timeout
            try:
                socket.create_connection((place.address, place.port), 1.0).close()
                store = dist.TCPStore(place.address, place.port, None, False, STORE_TIME, wait_for_workers=False)
                break
            except (OSError, dist.DistError) as error:
                self._pause(deadline, f"{place.address}:{place.port}: {error}")
        store.set_timeout(patience)
        store.set(f"here/{place.rank}", "")
        keys = [f"here/{rank}" for rank in range(place.world_size)]
        while not store.check(keys):
            self._pause(deadline, "the others did not come")
        self._store = store
        own = dist.PrefixStore("group", store)
        with self._connects():
            dist.init_process_group("gloo", store=own, rank=place.rank, world_size=place.world_size, timeout=patience)

    def _pause(self, deadline: float, what: str) -> None:
        if self._cut or time.monotonic() > deadline:
            raise dist.DistNetworkError(f"{what}, and the round ended")
        time.sleep(POLL_SECONDS)

    @contextlib.contextmanager
    def _connects(self) -> Iterator[None]:
        self._connecting = _sockets()
        try:
            yield
        finally:
            self._connecting = None

    def group(self, patience: timedelta) -> dist.ProcessGroup:
        """Return another gloo group of the team's processes. A cut breaks both groups."""
        before = _sockets()
        with self._connects():
            made: dist.ProcessGroup = dist.new_group(backend="gloo", timeout=patience)
        if self._ours is not None:
            self._ours |= _sockets() - before
        return made

    def tick(self) -> None:
        """Announce the beginning of a step. After a long stop, the process first asks whether the round still
        exists."""
        if self._cut:
            raise RoundEnded("the round was cut")
        now = time.monotonic()
        if self._place and (self._held or now - self._stepped > PAUSE_SECONDS):
            self._confirm()
        self._steps += 1
        if self._first_step:
            self._first_step = False
            note("worker steps", round=self._place and self._place.round)
        self._stepped = now = time.monotonic()
        if now - self._ticked > TICK_SECONDS:
            self._ticked = now
            self._channel.send(say="tick", steps=self._steps)

    def _confirm(self) -> None:
        assert self._place
        self._may_go_on = self._held = False
        self._channel.send(say="stopped", round=self._place.round)
        with self._heard:
            while not self._may_go_on and not self._cut and not self._over:
                self._heard.wait(0.2)
        if not self._may_go_on:
            raise RoundEnded("this process was stopped, and the others went on without it")

    def lost_peer(self, error: BaseException) -> bool:
        """Return whether an error means the end of the round, and not a failure of this process."""
        lost = isinstance(error, RoundEnded | dist.DistError)
        lost = lost or (isinstance(error, RuntimeError) and ("gloo" in str(error) or self._cut))
        if lost:
            note("worker lost its team", why=str(error)[-200:])
        return lost

    def cut(self) -> None:
        """Break the round's connections: every process in a collective, here or at a neighbor, gets an error."""
        self._cut = True
        ours = _sockets() - self._before if self._ours is None else self._ours
        for number, link in ours:
            _shut(number, link)
        if (before := self._connecting) is not None and self._place:
            for number, link in _sockets() - before:
                _wake(number, link, self._place.world_size)
                _shut(number, link)

    def part(self) -> None:
        """Leave the round: close its connections, process groups and store. The process stays alive."""
        self.cut()
        group = dist.group.WORLD if dist.is_initialized() else None
        with contextlib.suppress(Exception):  # the group's connections may be broken
            if not group:
                _forget_half_made()
            dist.destroy_process_group()
        self._place = self._store = None
        gc.collect()  # DistributedDataParallel, which holds the group, is in a cycle
        # The last owner of a group joins gloo's threads on release. DistributedDataParallel would meanwhile hold the
        # interpreter's lock, for which such a thread may wait. Here PyTorch releases the lock first.
        del group

    def say_last(self, code: int, line: str) -> None:
        """Report to the agent how this process ends."""
        self._channel.send(say="last", code=code, line=line)


def _forget_half_made() -> None:
    """Create a process group that can't fail, because destroying the group resets PyTorch's count of groups.

    `init_process_group` counts a group before it is made, and the group's keys in the store contain this number. After
    a failed attempt, some processes would wait under the next number and others under the first, forever.
    """
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def _sockets() -> set[tuple[int, str]]:
    """Return the open sockets of this process, with the kernel's names for them."""
    found = set()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 (names only, and it must be quick)
        with contextlib.suppress(OSError):
            link = os.readlink(f"/proc/self/fd/{name}")  # noqa: PTH115
            if link.startswith("socket:"):
                found.add((int(name), link))
    return found


def _wake(number: int, link: str, world_size: int) -> None:
    """Connect to a listening socket of gloo as its peers would, and hang up.

    For a peer that does not connect, gloo waits five times as long as an exchange may take (`Pair::waitUntilConnected`
    in gloo/transport/tcp/pair.cc: `timeout_ * 5`), and such a wait has no connection that could be shut down. A peer's
    first 8 bytes are the number of its connection, counted from 0 in each group; tests/elastic/test_worker.py proves
    that.
    """
    with contextlib.suppress(OSError):
        if os.readlink(f"/proc/self/fd/{number}") != link:  # noqa: PTH115
            return
        with socket.socket(fileno=os.dup(number)) as copy:
            if not copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                return
            for sequence in range(2 * world_size):
                with socket.create_connection(copy.getsockname()[:2], 1.0) as caller:
                    caller.sendall(sequence.to_bytes(8, sys.byteorder))


def _shut(number: int, link: str) -> None:
    """Shut down an unchanged connection. Listening sockets stay open, because gloo aborts without its socket."""
    with contextlib.suppress(OSError):
        if os.readlink(f"/proc/self/fd/{number}") != link:  # noqa: PTH115
            return
        with socket.socket(fileno=os.dup(number)) as copy:
            listens = copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if copy.family in (socket.AF_INET, socket.AF_INET6) and not listens:
                copy.shutdown(socket.SHUT_RDWR)
