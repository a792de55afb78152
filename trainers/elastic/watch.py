"""A node's activity while its team works: the node sends heartbeats, reads the table, and rings nodes that may be
gone."""

from __future__ import annotations

import contextlib
import logging
import random
import threading
from collections.abc import Iterator

from torch.distributed.elastic.rendezvous.api import RendezvousError

from .bell import REFUSED, SILENT
from .events import note
from .lookout import Lookout
from .protocol import Node

# Heartbeats between two reads of the table. While a node is silent or the workers stand still, there is one read a
# second. Whether the workers stand still is checked more often, because it costs nothing. A node that did not answer
# while the workers stand still is rung again soon.
LOOKS = 3
SUSPICIOUS_PAUSE, DOUBT_PAUSE = 1.0, 0.1
STILL_PAUSE = 0.25
RUNG_PAUSE = 0.2
# Pause between two rings of unreachable nodes.
PROBE_PAUSE = 0.25
# Factor on a node's allowed silence while this node's workers are at work and their progress is unknown.
AT_WORK = 3

logger = logging.getLogger(__name__)


class Watch:
    """The watch over one round. `run` runs the watch; `stop` ends it."""

    def __init__(self, lookout: Lookout, stop: threading.Event) -> None:
        self._lookout, self._stop = lookout, stop
        self._times, self._now = lookout.times, lookout.means.now
        self._checked_at = self._now()
        self._beat_at = self._checked_at + self._times.interval * random.uniform(0.5, 1)  # noqa: S311 (spreads load)
        self._check_at, self._probe_at = self._checked_at + self._times.interval, self._checked_at
        self._rung, self._sure = False, True
        self._unheard: frozenset[str] = frozenset()  # nodes without an answer after the last read

    def run(self) -> None:
        while not self._stop.is_set():
            self._turn()

    def _turn(self) -> None:
        lookout, rung = self._lookout, self._lookout.rung
        due = min(self._beat_at, self._check_at, self._now() + STILL_PAUSE)  # PROBE_PAUSE is not shorter
        if lookout.means.wait(rung, max(0.0, due - self._now())):
            rung.clear()
            self._rung = True
        if self._stop.is_set():
            return
        now, still = self._now(), lookout.stands_still()
        if still:  # one read a second is enough: nodes of a team that stands still ring one another
            self._check_at = min(self._check_at, self._checked_at + SUSPICIOUS_PAUSE)
        with contextlib.suppress(RendezvousError), self._warn_if_away():
            said, healed = set(lookout.me.unreached), set(lookout.me.unreached) - lookout.unreached()
            if now >= self._beat_at or lookout.links.lost - said or healed:
                self._rung = self._rung or bool(healed)  # a node that waits behind this link may join now
                self._beat_at = now + self._times.interval
                lookout.say()
            if now >= self._check_at or (self._rung and not still):
                self._check(now, still)
        if lookout.unsure and not lookout.may_work() and self._sure:
            lookout.unsure()
        self._sure = lookout.may_work()
        if lookout.links.lost and now >= self._probe_at:
            lookout.probe(rung)  # a ring ends the call, so the next read is not late
            self._probe_at = self._now() + PROBE_PAUSE

    def _check(self, now: float, still: bool | None) -> None:
        self._checked_at, self._check_at = now, now + SUSPICIOUS_PAUSE  # if it fails
        pause, self._rung = RUNG_PAUSE if self._rung else 0, False
        self._lookout.refresh()
        self._checked_at = self._now()
        self._check_at = self._checked_at + self._judge(still)
        self._lookout.means.wait(self._stop, pause)

    @contextlib.contextmanager
    def _warn_if_away(self) -> Iterator[None]:
        try:
            yield
        except RendezvousError as error:
            logger.warning("the table cannot be asked just now, training goes on: %s", error)
            raise

    def _judge(self, still: bool | None) -> float:
        """After a read: report changes, ring the nodes that may be gone, and return the seconds until the next read.

        A node counts as gone if it has been silent for long and did not answer its bell after the previous read. So no
        further wait is needed. Its process may be alive with only its link to the table broken; as long as the team
        makes steps, the node works.
        """
        lookout, times = self._lookout, self._times
        unheard, self._unheard = self._unheard, frozenset()
        team = {node.name: node for node in map(lookout.view.nodes.get, lookout.view.round.names) if node}
        quiet = lookout.silences.longer_than(0.1) & team.keys() - {lookout.me.name}
        gone: set[str] = set()
        if still or (quiet and still is None):
            silent = lookout.silences.longer_than(times.silence if still else times.silence * AT_WORK)
            gone = silent - (team.keys() - unheard)
        self._say_changes(gone)
        if not still and not quiet:  # unreachable nodes may form the larger team
            return times.interval * (1 if lookout.links.lost else LOOKS)
        answers = self._ring([node for node in team.values() if still or node.name in quiet], still)
        if REFUSED in answers.values() or lookout.links.lost & team.keys():
            self._say_changes(gone)
        if still is False:
            return times.interval * LOOKS
        self._unheard = frozenset(name for name, answer in answers.items() if answer == SILENT)
        return DOUBT_PAUSE if lookout.links.doubts & team.keys() else SUSPICIOUS_PAUSE

    def _ring(self, nodes: list[Node], still: bool | None) -> dict[str, str]:
        answers = self._lookout.call(nodes, self._stop, doubting=still is True)
        if not still:  # a late answer proves nothing against a link that carries steps
            self._lookout.links.trust()
        return answers

    def _say_changes(self, gone: set[str]) -> None:
        lookout = self._lookout
        lookout.count_gone(gone)
        if why := lookout.why_meet_again():
            note("node sees a change", why=[str(change) for change in why])
            lookout.changed(lookout.me.joined, why)
