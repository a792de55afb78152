"""How long the other nodes have been silent, measured between this node's own reads of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .protocol import Node


class Silences:
    """The time for which each node's heartbeat has not changed, measured between this node's reads.

    Silence is the time between this node's own successful reads, at most one interval each. So neither another node's
    clock, nor an outage of the table, nor a pause of this process counts against any node.
    """

    def __init__(self, interval: float, now: Callable[[], float]) -> None:
        self._interval, self._now = interval, now
        self._checked_at = self._now()
        self._last: dict[str, tuple[int, float]] = {}

    def note(self, nodes: Iterable[Node]) -> None:
        now = self._now()
        passed, self._checked_at = min(now - self._checked_at, self._interval), now
        before, self._last = self._last, {}
        for node in nodes:
            beat, silence = before.get(node.name, (node.beat, -passed))
            self._last[node.name] = (node.beat, silence + passed if beat == node.beat else 0.0)

    def longer_than(self, seconds: float) -> set[str]:
        return {name for name, (_, silence) in self._last.items() if silence >= seconds}
