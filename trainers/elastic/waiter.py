"""A node's wait for a round: the node reads the table, rings other nodes, writes the round on its turn, and waits for a
ring.
"""

from __future__ import annotations

import contextlib
import random

from torch.distributed.elastic.rendezvous.api import RendezvousClosedError, RendezvousError, RendezvousTimeoutError

from .backend import Snapshot
from .lookout import Lookout
from .protocol import Joined, Round, View, next_round
from .watch import PROBE_PAUSE

# Pauses between two reads of a waiting node. A node that begins a round rings the others, so pauses rarely get long.
FIRST_PAUSE, LONGEST_PAUSE, GROWTH = 0.1, 1.0, 1.3
REGROUP_PAUSE, SURPLUS_PAUSE = 0.2, 5.0
# The first waiting node writes the round; the next in line writes it if nothing has happened for this long.
TURN = 0.05


class OtherProgram(ValueError):
    """The run with this id runs another program."""


class Waiter:
    """One wait for a round, and the state between two reads of the table."""

    def __init__(self, member: Lookout) -> None:
        self._member, self._times, self._limits = member, member.times, member.limits
        self._deadline = self._member.means.now() + self._times.join
        self._beat_at = self._member.means.now() + self._times.interval
        self._enough_since: float | None = None
        self._ready_since: float | None = None
        self._ring_at, self._probe_at = 0.0, self._member.means.now() + PROBE_PAUSE
        self._pause = FIRST_PAUSE
        self._beats: dict[str, int] = {}  # each node's heartbeat when it was first seen

    def turn(self) -> Joined | None:
        """Read the table once, and act by the rules; sleep if there is nothing to do."""
        member, now = self._member, self._member.means.now()
        member.rung.clear()
        member.refresh()
        view = member.judged(self._times.silence)
        if (rank := view.round.place_of(member.me)) is not None:
            return Joined(view.round, rank)
        if view.round.closed:
            raise RendezvousClosedError(view.round.closed)
        self._check_program(view)
        if (holding := view.holding()) and self._may_ring(view, now):
            names = {held.name for held in holding} - member.links.lost
            member.call((node for node in view.nodes.values() if node.name in names), member.rung)
            view = member.judged(self._times.silence)
        self._check_time(view, now)
        new = next_round(view, self._limits, self._last_call_is_over(view))
        self._ready_since = (self._ready_since or member.means.now()) if new else None
        if new and self._my_turn(new) and (joined := self._begin(new)):
            return joined
        if now >= self._beat_at or set(member.me.unreached) != member.unreached():
            if set(member.me.unreached) - member.unreached():  # a link has healed: the others are rung at the next turn
                self._ring_at, self._pause = 0.0, FIRST_PAUSE
            self._beat_at = now + self._times.interval
            member.say()
        if not new:
            self._probe(now)
        self._sleep(view)
        return None

    def _check_program(self, view: View) -> None:
        """Give up a run in which a living node runs another program than this node."""
        ours, theirs = self._member.me.program, view.program()
        living = [node for node in view.nodes.values() if node.beat != self._beats.setdefault(node.name, node.beat)]
        if ours and theirs not in ("", ours) and any(node.program == theirs for node in living):
            raise OtherProgram(
                f"the id is another run's: its nodes run {theirs}, this one {ours}; give each run an id of its own"
            )

    def _probe(self, now: float) -> None:
        """Ring the unreachable nodes from time to time, because this node waits for as long as they are
        unreachable."""
        if self._member.links.lost and now >= self._probe_at:
            self._member.probe(self._member.rung)
            self._probe_at = self._member.means.now() + PROBE_PAUSE

    def _may_ring(self, view: View, now: float) -> bool:
        """Return whether this node may ring the others now: a survivor may ring at each read, a newcomer from time
        to time, and a surplus node only if the others are silent."""
        if self._member.me.name in view.round.names:
            return True
        silent = view.round.names & self._member.silences.longer_than(self._times.silence)
        if now < self._ring_at or (len(view.round.team) >= view.most(self._limits) and not silent):
            return False
        self._ring_at = now + self._times.interval
        return True

    def _check_time(self, view: View, now: float) -> None:
        working = {held.name for held in view.holding()}
        full = len(working) >= view.most(self._limits)
        if full or working & self._member.links.lost:  # no limit until there is a free place or a working link
            self._deadline = now + self._times.join
        if now > self._deadline:
            there = len(view.waiting())
            raise RendezvousTimeoutError(
                f"{there} of at least {self._limits.least} nodes were there within {self._times.join:g} s"
            )

    def _last_call_is_over(self, view: View) -> bool:
        """Return whether enough nodes have waited for long enough, by this node's own clock."""
        now = self._member.means.now()
        enough = len(view.waiting()) >= self._limits.least and not view.holding()
        self._enough_since = (self._enough_since or now) if enough else None
        return self._enough_since is not None and now - self._enough_since >= self._times.last_call

    def _my_turn(self, new: Round) -> bool:
        """Return whether this node should write the round. The first node of the team writes at once, and each next
        node a little later, because any of them may be dead."""
        rank = new.place_of(self._member.me)
        if self._ready_since is None or rank is None:
            return False
        return self._member.means.now() - self._ready_since >= TURN * rank

    def _begin(self, planned: Round) -> Joined | None:
        """Ring the nodes of the new team, leave out dead nodes, write the round, and ring again to announce the round.

        A node that does not answer is rung again at the next turn, until it answers or counts as unreachable.
        """
        member = self._member
        member.call(node for node in member.view.waiting() if node.name in planned.names)
        if member.links.doubts & planned.names:
            return None
        view, seen = member.judged(self._times.silence), member.seen
        new = next_round(view, self._limits, self._last_call_is_over(view))
        rank = new.place_of(member.me) if new else None
        if not new or rank is None or not member.write(new):
            return None
        member.means.start("announce", lambda: self._announce(new, view, seen))
        return Joined(new, rank)

    def _announce(self, new: Round, view: View, seen: Snapshot) -> None:
        """Ring the members of the new round, and delete the rows of the nodes that are gone, if the rows are
        unchanged."""
        me = self._member.me.name
        self._member.means.ring_all(view.nodes[member.name] for member in new.team if member.name != me)
        with contextlib.suppress(RendezvousError):
            for name in (view.gone | self._member.abandoned()) & seen.versions.keys():
                self._member.backend.forget(name, seen.versions[name])

    def _sleep(self, view: View) -> None:
        if self._ready_since or self._member.me.name in view.round.names:
            pause = TURN if self._ready_since else REGROUP_PAUSE
        else:
            full = len(view.holding()) >= view.most(self._limits)
            pause, self._pause = self._pause, min(self._pause * GROWTH, SURPLUS_PAUSE if full else LONGEST_PAUSE)
            pause = min(pause, PROBE_PAUSE) if self._member.links.lost else pause
        self._member.means.wait(self._member.rung, pause * random.uniform(0.5, 1))  # noqa: S311 (spreads load; no secret)
