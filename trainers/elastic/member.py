"""One node's part in the rendezvous: it joins rounds and leaves. The rules are in protocol.py.

lookout.py is what it sees, waiter.py its wait for a round, watch.py what it does while its team works.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch.distributed.elastic.rendezvous.api import (
    RendezvousConnectionError,
    RendezvousError,
    RendezvousTimeoutError,
)

from .backend import AzureTableRendezvousBackend
from .errors import Denied, Unreachable
from .events import note
from .lookout import Lookout
from .means import Means
from .protocol import Joined, Limits, Times
from .waiter import OtherProgram, Waiter
from .watch import AT_WORK, Watch

# Between two looks of a node that is done and waits for the others; and between two calls of who did not answer.
FINISH_PAUSE, CALL_AGAIN = 1.0, 0.2

logger = logging.getLogger(__name__)


class Member(Lookout):
    """A node of a run. `join` and `leave` are called by one thread; another beats and looks while the team works."""

    def __init__(
        self,
        backend: AzureTableRendezvousBackend,
        limits: Limits,
        times: Times,
        address: str,
        workers: int = 1,
        means: Means | None = None,
    ) -> None:
        super().__init__(backend, limits, times, address, workers, means)
        self._patient = backend.patience
        self._ended: Callable[[], None] = lambda: None
        self._stop = threading.Event()
        self.meeting: Any = None
        self.waited: Callable[[], None] = lambda: None  # called at each turn of a wait; may raise

    # --- joining ------------------------------------------------------------------------------------------------------

    def join(self) -> Joined:
        """Wait for a round, with a ticket that was never used. Raises RendezvousClosedError, RendezvousTimeoutError."""
        self._stop_watching()
        self.backend.patience = self._patient
        self._roll_call()
        # The workers meet at the first node of a team. Any may become that, so each is prepared; each round is new.
        self.meeting = self.means.meeting(self.me.address)
        self.say(ticket=self.me.ticket + 1, joined=-1, left=False, done=False, port=self.meeting.port)
        note("node waits", ticket=self.me.ticket, unreached=list(self.me.unreached))
        waiter = Waiter(self)
        try:
            while not (joined := waiter.turn()):
                self.waited()
        except (RendezvousTimeoutError, OtherProgram):
            self.leave()
            raise
        if joined.rank:
            self.meeting = None
        note("node joined", round=joined.round.number, rank=joined.rank, team=len(joined.round.team))
        self._warn_of_arguments(joined)
        self.say(joined=joined.round.number, worked=joined.round.number)
        self._watch()
        return joined

    def _warn_of_arguments(self, joined: Joined) -> None:
        team = [node for node in map(self.view.nodes.get, joined.round.names) if node]
        others = sorted(node.name for node in team if node.arguments not in ("", self.me.arguments))
        if others and self.me.arguments:
            why = f"{len(others)} of {len(team)} nodes, {others[0]} among them, give their workers other arguments"
            self._warn_of({"": f"{why} than this one; all train as one run"})

    def _roll_call(self) -> None:
        """Know whom this node reaches before its row says that it waits: the round is held until then.

        A newcomer calls those at work; who was at work itself calls its team if nothing says yet why the round broke,
        else only those that did not answer before.
        """
        if not self.me.ticket:
            self.look()
        team = {name: node for name in self.view.round.names if (node := self.view.nodes.get(name))}
        called = team.keys() - {self.me.name} - self.links.lost - self.view.gone
        if self.me.ticket and self.why_meet_again():
            called &= self.links.doubts
        while called := {name for name in called if not team[name].left}:
            self.call(team[name] for name in called)
            called &= self.links.doubts
            if called:
                self.means.wait(threading.Event(), CALL_AGAIN)

    def _watch(self) -> None:
        self._stop = stop = threading.Event()
        self.backend.patience = self.times.heartbeat
        watch = Watch(self, stop)
        self._ended = self.means.start("watch", watch.run)

    def _stop_watching(self) -> None:
        self._stop.set()
        self.rung.set()
        self._ended()
        self._ended = lambda: None

    def confirm(self, number: int) -> bool:
        """Whether this round stands. While the table can't be asked, only as long as nobody can have replaced it.

        Waits for a table that is away; raises RendezvousConnectionError if it refuses the credential for long: one that
        has expired comes back with another process alone.
        """
        deadline = self.means.now() + self.times.read
        while not self.may_work():
            try:
                self.say()
                if self.look().round.number != number:
                    return False
            except RendezvousError as error:
                if isinstance(error.__cause__, Denied) and self.means.now() > deadline:
                    raise
                logger.warning("a worker waits until the table can be asked whether its round stands: %s", error)
                self.means.wait(threading.Event(), FINISH_PAUSE)
        return self.view.round.number == number

    # --- leaving ------------------------------------------------------------------------------------------------------

    def step_out(self) -> None:
        """Be out of the round, and not wait for the next one, until `join` is called again."""
        self._stop_watching()
        self.backend.patience = self.times.leave
        note("node leaves")
        if not self.me.left:
            with contextlib.suppress(RendezvousError):
                self.say(left=True, joined=-1)
        others = [node for node in map(self.view.nodes.get, self.view.round.names) if node]
        self.means.ring_all(node for node in others if node.name != self.me.name and not node.left)

    def announce(self) -> None:
        """Say that this node will go; its workers still are where they are."""
        self.step_out()

    def leave(self) -> None:
        """Say that this node goes, so that nobody waits for its silence, ring its team, and answer no more."""
        if not self.me.left:
            self.step_out()
        self.bell.close()
        self.meeting = None  # now: as the interpreter ends, a TCPStore may wait for ever (torch 2.14)

    def finish(self, patience: float) -> None:
        """Say that this node's work is done, and wait until all of the team are; the last closes the run.

        So many seconds it also waits for a table that is away. Raises RendezvousError.
        """
        self._stop_watching()
        deadline = self.means.now() + patience
        while True:
            self.backend.patience = self.times.close
            try:
                return self._finish(deadline)
            except RendezvousConnectionError as error:
                if not isinstance(error.__cause__, Unreachable) or self.means.now() > deadline:
                    raise
                logger.warning("the work is done, and the table is waited for: %s", error)

    def _finish(self, deadline: float) -> None:
        self.say(done=True)
        while not self.look().round.closed:
            team = [node for node in map(self.view.nodes.get, self.view.round.names) if node]
            self.call(node for node in team if not node.done and not node.left)
            view = self.judged(self.times.silence * AT_WORK)
            done = {node.name for node in view.nodes.values() if node.done}
            busy = [held for held in view.holding() if held.name not in done]
            if not busy or self.means.now() > deadline:
                self.close("done")
                return
            self.rung.clear()
            self.means.wait(self.rung, FINISH_PAUSE)
            self.say()

    def close(self, why: str) -> None:
        """End the run for all, in these words; the first that closes it decides which. Raises RendezvousError."""
        self._stop_watching()
        self.backend.patience = self.times.close
        deadline = self.means.now() + self.times.close
        while not self.look().round.closed:
            if self.write(replace(self.view.round, closed=why)):
                break
            if self.means.now() > deadline:
                raise RendezvousTimeoutError(f"the run could not be closed within {self.times.close:g} s")
        self.leave()
