"""One node's part in the rendezvous: joining and leaving rounds. The rules are in protocol.py.

lookout.py is the node's view of the run, waiter.py its wait for a round, and watch.py its activity while its team
works.
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

# Pauses between two reads of a node that is done and waits for the others, and between two rings without an answer.
FINISH_PAUSE, CALL_AGAIN = 1.0, 0.2

logger = logging.getLogger(__name__)


class Member(Lookout):
    """One node of a run. One thread calls `join` and `leave`; another thread sends heartbeats and reads the table
    during the team's work.
    """

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
        """Wait for a round, with a new ticket. Raises RendezvousClosedError or RendezvousTimeoutError."""
        self._stop_watching()
        self.backend.patience = self._patient
        self._roll_call()
        # The workers meet at the first node of a team. Any node may become the first, so each prepares a store.
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
        """Find this node's reachable nodes before the node's row announces the wait: other nodes hold the round until
        then.

        A newcomer rings the nodes at work. A node that was at work itself rings its whole team if it does not know yet
        why the round broke; otherwise it rings only the nodes that did not answer before.
        """
        if not self.me.ticket:
            self.refresh()
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
        """Return whether this round is still valid. If the table can't be reached, a round counts as valid only as long
        as no other node can have replaced it.

        Waits for an unreachable table. Raises RendezvousConnectionError if the table refuses the credential for long,
        because an expired credential is renewed only in a new process.
        """
        deadline = self.means.now() + self.times.read
        while not self.may_work():
            try:
                self.say()
                if self.refresh().round.number != number:
                    return False
            except RendezvousError as error:
                if isinstance(error.__cause__, Denied) and self.means.now() > deadline:
                    raise
                logger.warning("a worker waits until the table can be asked whether its round stands: %s", error)
                self.means.wait(threading.Event(), FINISH_PAUSE)
        return self.view.round.number == number

    def is_awaited(self) -> bool:
        """Return whether another node of this node's round waits for the next round, by the last view."""
        team = [node for node in map(self.view.nodes.get, self.view.round.names - {self.me.name}) if node]
        return any(node.joined < 0 and not node.left and node.name not in self.view.gone for node in team)

    # --- leaving ------------------------------------------------------------------------------------------------------

    def step_out(self) -> None:
        """Leave the round, and don't wait for the next round until `join` is called again."""
        self._stop_watching()
        self.backend.patience = self.times.leave
        note("node leaves")
        if not self.me.left:
            with contextlib.suppress(RendezvousError):
                self.say(left=True, joined=-1)
        others = [node for node in map(self.view.nodes.get, self.view.round.names) if node]
        self.means.ring_all(node for node in others if node.name != self.me.name and not node.left)

    def announce(self) -> None:
        """Announce this node's leave; the workers still run."""
        self.step_out()

    def leave(self) -> None:
        """Announce this node's leave, so that no other node waits for its silence; ring the team, and stop
        answering.
        """
        if not self.me.left:
            self.step_out()
        self.bell.close()
        self.meeting = None  # now: at interpreter shutdown, a TCPStore may wait forever (torch 2.14)

    def finish(self, patience: float) -> None:
        """Announce that this node's work is done, and wait until the whole team's work is done. The last node closes
        the run.

        Also waits at most `patience` seconds for a table that can't be reached. Raises RendezvousError.
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
        while not self.refresh().round.closed:
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
        """Close the run for all nodes with this reason. The reason of the first close counts. Raises
        RendezvousError."""
        self._stop_watching()
        self.backend.patience = self.times.close
        deadline = self.means.now() + self.times.close
        while not self.refresh().round.closed:
            if self.write(replace(self.view.round, closed=why)):
                break
            if self.means.now() > deadline:
                raise RendezvousTimeoutError(f"the run could not be closed within {self.times.close:g} s")
        self.leave()
