"""A node's view of its run: the node reads the table, rings the other nodes, and decides which nodes are gone or
unreachable.

A node of the current round whose port refuses the connection counts as gone at once, so a killed process costs no time.
If this node later shows that it is alive, or if a node does not answer at all, the node counts as unreachable; then
only a row that is no longer updated means that the node is dead.
"""

from __future__ import annotations

import logging
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from .backend import AzureTableRendezvousBackend, Snapshot
from .bell import ANSWERS, REFUSED
from .events import note
from .links import Links
from .means import Means
from .protocol import Change, Limits, Node, Round, Times, Unreadable, View, changes, larger_team
from .silences import Silences

# An unreadable row is deleted if it stays unchanged for this many times the silence of a dead node.
UNREADABLE = 2
# Seconds for which a larger set of nodes must reach each other before it replaces a team that it does not fully
# contain: links heal one after another.
GIVE_WAY_SECONDS = 3.0

logger = logging.getLogger(__name__)


class Lookout:
    """The view of one node; Member represents the node itself.

    `changed` is called during work, with the round's number and the reasons, when the team should meet again. `unsure`
    is called when the table is unreachable, so that the node can't tell how long its round remains valid.
    `stands_still` returns whether this node's workers stand still, or None if this is unknown.
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
        self.backend, self.limits, self.times, self.means = backend, limits, times, means or Means()
        self.rung = threading.Event()
        name = f"{address}_{os.getpid():07d}_{uuid.uuid4().hex[:6]}"
        self.bell = self.means.bell(name, address, self.rung)
        self.me = Node(name, ticket=0, workers=workers, address=address, bell=self.bell.port, most=limits.most)
        self.view = View()
        self.seen = Snapshot(None, None, {}, {}, {}, {})
        self.links = Links()
        self.silences = Silences(times.interval, self.means.now)
        self._unreadable = Silences(times.interval, self.means.now)
        self._closed: frozenset[str] = frozenset()  # nodes whose port refused the last ring
        self._refused: dict[str, int | None] = {}  # refusing holders of the round; their heartbeat in the next read
        self._warned: set[str] = set()
        self._outnumbered_since: float | None = None
        self._told_at = self._sure_at = self.means.now()
        self._lock = self.means.lock()
        note("node", name=name)
        self.unsure: Callable[[], None] | None = None  # None: its workers never pause
        self.changed: Callable[[int, list[Change]], None] = lambda _number, _why: None
        self.stands_still: Callable[[], bool | None] = lambda: None

    @property
    def silence(self) -> float:
        """Return the longest allowed silence of a node, in seconds, while others wait for the node."""
        return self.times.silence

    def say(self, **facts: object) -> None:
        """Write this node's row, with these facts and the unreachable nodes."""
        with self._lock:
            began, unreached = self.means.now(), tuple(sorted(self.unreached()))
            self.me = replace(self.me, beat=self.me.beat + 1, unreached=unreached, holds=self._holds, **facts)  # type: ignore[arg-type]
            self.backend.write_node(self.me, in_one=self.view.in_one())
            self._told_at = began
            if self.means.now() - self._sure_at < self.times.lease_of(
                len(self.view.round.team), self._holds
            ):  # otherwise the write came too late, and the next read decides
                self._sure_at = began

    def may_work(self) -> bool:
        """Return whether no other node can have treated this node's round as abandoned: the heartbeats reached the
        table in time."""
        return self.means.now() - self._sure_at < self.times.working(len(self.view.round.team), self._holds)

    @property
    def _holds(self) -> bool:
        return self.unsure is not None

    def unreached(self) -> frozenset[str]:
        """Return the nodes with a row that are unreachable, or refused a moment ago."""
        return frozenset((self.links.lost | self._refused.keys()) & self.view.nodes.keys()) - {self.me.name}

    def refresh(self) -> View:
        """Read all rows, and decide which nodes are gone. Any thread may call this method."""
        with self._lock:
            return self._refresh()

    def _refresh(self) -> View:
        self.seen = seen = self.backend.snapshot()
        known = self.view.nodes
        nodes = {**{name: known[name] for name in seen.unreadable if name in known}, **seen.nodes}
        if self.me.name in nodes:
            nodes[self.me.name] = self.me
        self._warn_of(seen.unreadable)
        current = self._round(seen.state)
        deleted = [Node(name, beat=-1) for name in current.names - nodes.keys()]
        self.silences.note([*nodes.values(), *deleted])
        self._unreadable.note(Node(name) for name in seen.unreadable)
        self._refused = self._still_refused(View(current, nodes))
        self.links.keep(nodes)
        self.view = View(current, nodes, self._presumed(current, nodes))
        if self.me.joined == current.number and current.place_of(self.me) is not None:
            self._sure_at = max(self._sure_at, self._told_at)
        return self.view

    def _round(self, state: bytes | None) -> Round:
        try:
            return Round.of(state) if state is not None else Round()
        except Unreadable as error:
            self._warn_of({"": f"{error}; it counts as none, and the next round replaces it"})
            return Round()

    def _warn_of(self, reasons: dict[str, str]) -> None:
        for why in set(reasons.values()) - self._warned:
            self._warned.add(why)
            logger.warning("%s", why)

    def _still_refused(self, view: View) -> dict[str, int | None]:
        """Return the nodes with a refusal and no later sign of life. A node with a sign of life is unreachable, not
        gone.
        """
        still: dict[str, int | None] = {}
        holding = {member.name for member in view.holding()}
        for name, beat in self._refused.items():
            node = view.nodes.get(name)
            if node and not node.left and name in holding and beat in (None, node.beat):
                still[name] = node.beat
            elif node and not node.left:
                self.links.lose(name, self.means.now())
        return still

    def _presumed(self, current: Round, nodes: Mapping[str, Node]) -> frozenset[str]:
        """Return the nodes that count as gone after a refusal, if this node reaches at least half of the living nodes
        of the run's work.

        The fewer nodes it reaches, the more likely this node itself is cut off. The round alone is not enough, because
        it shrinks when links are refused one after another. A round that never included this node may still be at work.
        """
        alive = {node.name for node in nodes.values() if node.worked and not node.left}
        whole = current.names | (alive - self.silences.longer_than(self.times.silence))
        refused = current.names & self._refused.keys() - {self.me.name}
        away = refused | (whole & self.links.lost)
        ours = self.me.name in current.names
        return frozenset(refused) if ours and 2 * len(away) <= len(whole) else frozenset()

    def call(
        self, nodes: Iterable[Node], enough: threading.Event | None = None, doubting: bool = False
    ) -> dict[str, str]:
        """Ring these nodes, until `enough` is set, and record which nodes answered, which processes are gone and which
        nodes are unreachable.

        With `doubting`, an answer does not remove an existing doubt, so a flapping link counts as lost.
        """
        called = [node for node in nodes if node.name != self.me.name]
        answers = self.means.ring_all(called, enough)
        holding = {member.name for member in replace(self.view, gone=frozenset()).holding()}
        refused = dict(self._refused)
        self._closed = (self._closed - answers.keys()) | {name for name, answer in answers.items() if answer == REFUSED}
        for name, answer in answers.items():
            if answer == ANSWERS:
                refused.pop(name, None)
                if not doubting or name not in self.links.doubts:
                    self.links.heard(name, self.means.now())
            elif answer != REFUSED:
                self.links.missed(name, self.means.now())
            elif name in holding and self.me.name in self.view.round.names and name not in self.links.lost:
                refused.setdefault(name, None)
                self.links.reached(name)
            else:  # the node waits, or may be alive: its row decides
                self.links.lose(name, self.means.now())
        if refused.keys() - self._refused.keys():
            note("bell refused", nodes=sorted(refused))
        self._refused = refused  # a new dict, because another thread may be reading the old one
        return answers

    def probe(self, enough: threading.Event | None = None) -> None:
        """Ring the unreachable nodes, to find out whether they are still unreachable."""
        lost = self.links.lost
        self.call((node for node in self.view.nodes.values() if node.name in lost and not node.left), enough)

    def judged(self, seconds: float) -> View:
        """Return the last view, without the nodes that count as gone after a refusal or this long a silence."""
        silent = self.silences.longer_than(seconds)
        if self.me.name not in self.view.round.names:
            silent -= self._leased(silent)
        return self.count_gone(silent)

    def _leased(self, silent: set[str]) -> set[str]:
        """Return the silent nodes that form the team of a round without this node.

        Such a team may be at work without the table and without a link to this node, as long as its lease lasts. The
        lease is counted from the last write of its row, by the service's clock, or by how long this node has observed
        the silence. The process of a node is gone if its port refuses.
        """
        team = silent & self.view.round.names - self._closed
        holds = {name for name in team if (node := self.view.nodes.get(name)) and node.holds}
        lease = self.times.lease_of(len(self.view.round.team), holds == self.view.round.names)
        old = {name for name, age in self.seen.ages.items() if age >= lease}
        return team - self.silences.longer_than(lease) - old

    def count_gone(self, silent: Iterable[str]) -> View:
        """Return the last view, without these nodes and the nodes that count as gone after a refusal."""
        gone = (frozenset(silent) | self._presumed(self.view.round, self.view.nodes)) - {self.me.name}
        self.view = replace(self.view, gone=gone)
        return self.view

    def abandoned(self) -> frozenset[str]:
        """Return the nodes whose row has been unreadable and unchanged for so long that no process will rewrite it."""
        return frozenset(self._unreadable.longer_than(self.times.silence * UNREADABLE))

    def write(self, new: Round) -> bool:
        """Replace the round, if the table still holds the round that this node saw last."""
        token = self.backend.replace(new.text(), self.seen.token)
        if token:
            note("round written", round=new.number, team=len(new.team), closed=new.closed)
            self.view = replace(self.view, round=new)
        return token is not None

    def why_meet_again(self) -> list[Change]:
        """Return the reasons for the team to meet again, according to the last read. Costs no request and never blocks.

        Waiting nodes with a long silence are left out: a host that died while it waited is no reason to meet.
        """
        silent = self.silences.longer_than(self.times.silence) - self.view.round.names
        view = replace(self.view, gone=self.view.gone | silent)
        me = replace(self.me, unreached=tuple(sorted(self.links.lost)))
        view = replace(view, nodes={**view.nodes, me.name: me})
        if not larger_team(view, self.limits):
            self._outnumbered_since = None
            return changes(view, me, self.limits)
        now = self.means.now()
        self._outnumbered_since = self._outnumbered_since or now
        return changes(view, me, self.limits, gives_way=now - self._outnumbered_since >= GIVE_WAY_SECONDS)
