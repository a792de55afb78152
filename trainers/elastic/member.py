"""One node's part in the rendezvous: it joins rounds, watches its team, and leaves. The rules are in protocol.py."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from torch.distributed import TCPStore
from torch.distributed.elastic.rendezvous.api import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousError,
    RendezvousStateError,
    RendezvousTimeoutError,
)

from .backend import AzureTableRendezvousBackend
from .bell import REFUSED, SILENT, Bell, ring_all
from .errors import Unreachable
from .events import note
from .protocol import Joined, Limits, Node, Round, Times, Unreadable, View, changes, next_round
from .silences import Silences

# Between two looks of a node that waits. Whoever begins a round rings the others, so they seldom wait that long.
FIRST_PAUSE, LONGEST_PAUSE, GROWTH = 0.1, 1.0, 1.3
REGROUP_PAUSE, SURPLUS_PAUSE = 0.2, 5.0
# The first of those that wait writes the round; the next in line does so if nothing happened for that long.
TURN = 0.05
# At work: a look for so many heartbeats; one a second while somebody is silent or the workers stand still, which is
# asked more often, for it costs nothing.
LOOKS = 3
SUSPICIOUS_PAUSE = 1.0
STILL_PAUSE = 0.25
RUNG_PAUSE = 0.2
# So many times longer may a node be silent while our workers are at work and we don't know whether they get on.
AT_WORK = 3

logger = logging.getLogger(__name__)


class Member:
    """A node of a run. `join` and `leave` are called by one thread; another beats and looks while the team works.

    `changed` is called by that thread, with the round's number and the reasons, when its team should meet again;
    `stands_still` says whether this node's workers do, or None if nobody knows.
    """

    def __init__(
        self, backend: AzureTableRendezvousBackend, limits: Limits, times: Times, address: str, workers: int = 1
    ) -> None:
        self._backend = backend
        self._patient = backend.patience
        self._limits, self._times = limits, times
        self._rung = threading.Event()
        name = f"{address}_{os.getpid():07d}_{uuid.uuid4().hex[:6]}"
        self._bell = Bell(name, address, self._rung)
        self.me = Node(name, ticket=0, workers=workers, address=address, bell=self._bell.port)
        self.view = View()
        self._token: object = None
        self._silences = Silences(times.interval)
        self._refused: dict[str, int] = {}  # whose bell refused, and its heartbeat then: a later one takes it back
        self._unheard: frozenset[str] = frozenset()  # who did not answer its bell after the last look at work
        self._watcher: threading.Thread | None = None
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self.meeting: TCPStore | None = None
        note("node", name=name)
        self.changed: Callable[[int, list[str]], None] = lambda _number, _why: None
        self.stands_still: Callable[[], bool | None] = lambda: None
        self.waited: Callable[[], None] = lambda: None  # called at each turn of a wait; may raise

    @property
    def silence(self) -> float:
        """How long a node may be silent that others wait for, in seconds."""
        return self._times.silence

    # --- joining ------------------------------------------------------------------------------------------------------

    def join(self) -> Joined:
        """Wait for a round, with a ticket that was never used. Raises RendezvousClosedError, RendezvousTimeoutError."""
        self._stop_watching()
        self._backend.patience = self._patient
        # The workers meet at the first node of a team. Any may become that, so each is prepared; each round is new.
        self.meeting = TCPStore(self.me.address, 0, None, True, wait_for_workers=False)
        self._say(ticket=self.me.ticket + 1, joined=-1, left=False, done=False, port=self.meeting.port)
        note("node waits", ticket=self.me.ticket)
        waiter = _Waiter(self)
        while not (joined := waiter.turn()):
            self.waited()
        if joined.rank:
            self.meeting = None
        note("node joined", round=joined.round.number, rank=joined.rank, team=len(joined.round.team))
        self._say(joined=joined.round.number)
        self._watch()
        return joined

    def _say(self, **facts: object) -> None:
        self.me = replace(self.me, beat=self.me.beat + 1, **facts)  # type: ignore[arg-type]
        self._backend.tell(self.me)

    def look(self) -> View:
        """Read what all say, and judge who is gone. Any thread may look."""
        with self._lock:
            return self._look()

    def _look(self) -> View:
        found, nodes = self._backend.look()
        self._token = found[1] if found else None
        try:
            current = Round.of(found[0]) if found else Round()
        except Unreadable as error:
            raise RendezvousStateError(str(error)) from error
        self._silences.note(nodes.values())
        still = {name: node.beat for name, node in nodes.items()}
        self._refused = {name: beat for name, beat in self._refused.items() if still.get(name) == beat}
        self.view = View(current, nodes, frozenset(self._refused) - {self.me.name})
        return self.view

    def _call(self, nodes: Iterable[Node], enough: threading.Event | None = None) -> dict[str, str]:
        """Ring these, until `enough` is set, and note whose process is gone."""
        called = [node for node in nodes if node.name != self.me.name]
        answers = ring_all(called, enough)
        refused = {node.name: node.beat for node in called if answers.get(node.name) == REFUSED}
        if refused.keys() - self._refused.keys():
            note("bell refused", nodes=sorted(refused))
        self._refused = {**self._refused, **refused}  # a new one: another thread may be reading
        return answers

    def _silent(self, seconds: float) -> View:
        """The last view, without those that refused or were silent for that long."""
        gone = (self._silences.longer_than(seconds) | self._refused.keys()) - {self.me.name}
        self.view = replace(self.view, gone=frozenset(gone))
        return self.view

    def write(self, new: Round) -> bool:
        """Make this the round, if the one that was seen last is still there."""
        token = self._backend.replace(new.text(), self._token)
        if token:
            note("round written", round=new.number, team=len(new.team), closed=new.closed)
            self._token = token
            self.view = replace(self.view, round=new)
        return token is not None

    # --- at work ------------------------------------------------------------------------------------------------------

    def why_meet_again(self) -> list[str]:
        """Why the team should meet again, as of the last look; it costs no request and never blocks."""
        return changes(self.view, self.me, self._limits)

    def _watch(self) -> None:
        self._stop = threading.Event()
        self._backend.patience = self._times.heartbeat
        self._watcher = threading.Thread(target=self._keep_watch, args=(self._stop,), name="watch", daemon=True)
        self._watcher.start()

    def _stop_watching(self) -> None:
        self._stop.set()
        self._rung.set()
        if self._watcher and self._watcher is not threading.current_thread():
            self._watcher.join()
        self._watcher = None

    def _keep_watch(self, stop: threading.Event) -> None:
        interval, looked_at, rung = self._times.interval, time.monotonic(), False
        beat_at = looked_at + interval * random.uniform(0.5, 1)  # noqa: S311 (spreads load; no secret)
        look_at = looked_at + interval
        while not stop.is_set():
            now = time.monotonic()
            if self._rung.wait(max(0.0, min(beat_at, look_at, now + STILL_PAUSE) - now)):
                self._rung.clear()
                rung = True
            if stop.is_set():
                return
            now, still = time.monotonic(), self.stands_still()
            if still:  # nobody looks more often then: all of a team that stands still ring one another
                look_at = min(look_at, looked_at + SUSPICIOUS_PAUSE)
            with contextlib.suppress(RendezvousError), self._told():
                if now >= beat_at:
                    beat_at = now + interval
                    self._say()
                if now >= look_at or (rung and not still):
                    looked_at, look_at = now, now + SUSPICIOUS_PAUSE  # if it fails
                    pause, rung = RUNG_PAUSE if rung else 0, False
                    self.look()
                    looked_at = time.monotonic()
                    look_at = looked_at + self._judge(still, stop)
                    stop.wait(pause)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except RendezvousError as error:
            logger.warning("the table cannot be asked just now, training goes on: %s", error)
            raise

    def _judge(self, still: bool | None, stop: threading.Event) -> float:
        """After a look at work: say what changed, ring who may be gone, and give the seconds until the next look.

        Gone is who is silent for long and let its bell ring after the look before: so nobody waits for it once more.
        Its process may live and only its way to the table be broken; as long as steps are made, it works.
        """
        times, unheard, self._unheard = self._times, self._unheard, frozenset()
        team = {node.name: node for node in map(self.view.nodes.get, self.view.round.names) if node}
        quiet = self._silences.longer_than(0.1) & team.keys() - {self.me.name}
        gone: set[str] = set()
        if still or (quiet and still is None):
            silent = self._silences.longer_than(times.silence if still else times.silence * AT_WORK)
            gone = silent - (team.keys() - unheard)
        self._say_changes(gone)
        if not still and not quiet:
            return times.interval * LOOKS
        answers = self._call((node for node in team.values() if still or node.name in quiet), stop)
        if REFUSED in answers.values():
            self._say_changes(gone)
        if still is False:
            return times.interval * LOOKS
        self._unheard = frozenset(name for name, answer in answers.items() if answer == SILENT)
        return SUSPICIOUS_PAUSE

    def _say_changes(self, gone: set[str]) -> None:
        self.view = replace(self.view, gone=frozenset((gone | self._refused.keys()) - {self.me.name}))
        if why := self.why_meet_again():
            note("node sees a change", why=why)
            self.changed(self.me.joined, why)

    # --- leaving ------------------------------------------------------------------------------------------------------

    def step_out(self) -> None:
        """Be out of the round, and not wait for the next one, until `join` is called again."""
        self._stop_watching()
        self._backend.patience = self._times.leave
        note("node leaves")
        if not self.me.left:
            with contextlib.suppress(RendezvousError):
                self._say(left=True, joined=-1)
        others = [node for node in map(self.view.nodes.get, self.view.round.names) if node]
        ring_all(node for node in others if node.name != self.me.name and not node.left)

    def announce(self) -> None:
        """Say that this node will go; its workers still are where they are."""
        self.step_out()

    def leave(self) -> None:
        """Say that this node goes, so that nobody waits for its silence, ring its team, and answer no more."""
        if not self.me.left:
            self.step_out()
        self._bell.close()
        self.meeting = None  # now: as the interpreter ends, a TCPStore may wait for ever (torch 2.14)

    def finish(self, patience: float) -> None:
        """Say that this node's work is done, and wait until all of the team are; the last closes the run.

        So many seconds it also waits for a table that is away. Raises RendezvousError.
        """
        self._stop_watching()
        deadline = time.monotonic() + patience
        while True:
            self._backend.patience = self._times.close
            try:
                return self._finish(deadline)
            except RendezvousConnectionError as error:
                if not isinstance(error.__cause__, Unreachable) or time.monotonic() > deadline:
                    raise
                logger.warning("the work is done, and the table is waited for: %s", error)

    def _finish(self, deadline: float) -> None:
        self._say(done=True)
        while not self.look().round.closed:
            team = [node for node in map(self.view.nodes.get, self.view.round.names) if node]
            self._call(node for node in team if not node.done and not node.left)
            view = self._silent(self._times.silence * AT_WORK)
            busy = [held for held in view.holding() if not view.nodes[held.name].done]
            if not busy or time.monotonic() > deadline:
                self.close("done")
                return
            self._rung.clear()
            self._rung.wait(LONGEST_PAUSE)
            self._say()

    def close(self, why: str) -> None:
        """End the run for all, in these words; the first that closes it decides which. Raises RendezvousError."""
        self._stop_watching()
        self._backend.patience = self._times.close
        deadline = time.monotonic() + self._times.close
        while not self.look().round.closed:
            if self.write(replace(self.view.round, closed=why)):
                break
            if time.monotonic() > deadline:
                raise RendezvousTimeoutError(f"the run could not be closed within {self._times.close:g} s")
        self.leave()


class _Waiter:
    """One wait for a round: what has to be remembered from one look to the next."""

    def __init__(self, member: Member) -> None:
        self._member, self._times, self._limits = member, member._times, member._limits
        self._deadline = time.monotonic() + self._times.join
        self._beat_at = time.monotonic() + self._times.interval
        self._enough_since: float | None = None
        self._ready_since: float | None = None
        self._ring_at = 0.0
        self._pause = FIRST_PAUSE

    def turn(self) -> Joined | None:
        """Look once, and do what the rules say; sleep if there is nothing to do."""
        member, now = self._member, time.monotonic()
        member._rung.clear()
        member.look()
        view = member._silent(self._times.silence)
        if (rank := view.round.place_of(member.me)) is not None:
            return Joined(view.round, rank)
        if view.round.closed:
            raise RendezvousClosedError(view.round.closed)
        if (holding := view.holding()) and self._may_ring(view, now):
            member._call((view.nodes[held.name] for held in holding), member._rung)
            view = member._silent(self._times.silence)
        self._check_time(view, now)
        new = next_round(view, self._limits, self._last_call_is_over(view))
        self._ready_since = (self._ready_since or time.monotonic()) if new else None
        if new and self._my_turn(view) and (joined := self._begin()):
            return joined
        if now >= self._beat_at:
            self._beat_at = now + self._times.interval
            member._say()
        self._sleep(view)
        return None

    def _may_ring(self, view: View, now: float) -> bool:
        """A survivor rings the others at each look, one that is new now and then, and one too many not at all."""
        if self._member.me.name in view.round.names:
            return True
        if len(view.round.team) >= self._limits.most or now < self._ring_at:
            return False
        self._ring_at = now + self._times.interval
        return True

    def _check_time(self, view: View, now: float) -> None:
        if len(view.holding()) >= self._limits.most:  # a node too many waits until there is a place for it
            self._deadline = now + self._times.join
        if now > self._deadline:
            there = len(view.waiting())
            self._member.leave()
            raise RendezvousTimeoutError(
                f"{there} of at least {self._limits.least} nodes were there within {self._times.join:g} s"
            )

    def _last_call_is_over(self, view: View) -> bool:
        """Whether enough have waited for so long, by our own clock."""
        now = time.monotonic()
        enough = len(view.waiting()) >= self._limits.least and not view.holding()
        self._enough_since = (self._enough_since or now) if enough else None
        return self._enough_since is not None and now - self._enough_since >= self._times.last_call

    def _my_turn(self, view: View) -> bool:
        """The first in line writes at once, the others later and later: all might, and one of them may be dead."""
        names = [node.name for node in view.waiting()]
        if self._ready_since is None or self._member.me.name not in names:
            return False
        return time.monotonic() - self._ready_since >= TURN * names.index(self._member.me.name)

    def _begin(self) -> Joined | None:
        """Ring all that are to take part, leave out the dead, and write the round; ring again to tell them."""
        member = self._member
        member._call(member.view.waiting())
        view = member._silent(self._times.silence)
        new = next_round(view, self._limits, self._last_call_is_over(view))
        rank = new.place_of(member.me) if new else None
        if not new or not member.write(new):
            return None
        threading.Thread(target=self._tell, args=(new, view), daemon=True).start()
        return Joined(new, rank) if rank is not None else None

    def _tell(self, new: Round, view: View) -> None:
        """Ring those that are in, and delete the rows of those that are gone. One that lives writes its row again."""
        me = self._member.me.name
        ring_all(view.nodes[member.name] for member in new.team if member.name != me)
        with contextlib.suppress(RendezvousError):
            for name in view.gone & view.nodes.keys():
                self._member._backend.forget(name)

    def _sleep(self, view: View) -> None:
        if self._ready_since or self._member.me.name in view.round.names:
            pause = TURN if self._ready_since else REGROUP_PAUSE
        else:
            full = len(view.holding()) >= self._limits.most
            pause, self._pause = self._pause, min(self._pause * GROWTH, SURPLUS_PAUSE if full else LONGEST_PAUSE)
        self._member._rung.wait(pause * random.uniform(0.5, 1))  # noqa: S311 (spreads load; no secret)
