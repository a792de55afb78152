"""The links from this node to the others, inferred from ringing their bells."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

# A node is unreachable after MISSES unanswered rings over at least MISSING_SECONDS without a step.
MISSES, MISSING_SECONDS = 3, 2.0
# A node is reachable again after HEALED_SECONDS of answers. A link that is lost again within STEADY_SECONDS of its
# first answer must then answer for longer than before. So a flapping link costs its nodes two rounds in total, and not
# one round for each failure.
HEALED_SECONDS, STEADY_SECONDS = 1.5, 15.0


@dataclass
class Link:
    """The link to one node. `since`: the time of the first of several unanswered rings in a row; `back`: the time
    of the first answer after the node was unreachable. `proof`: for how many seconds the node must answer before
    it counts as reachable."""

    misses: int = 0
    since: float = 0.0
    lost: bool = False
    back: float | None = None
    proof: float = HEALED_SECONDS


class Links:
    """The links to all nodes. A node without a record counts as reachable."""

    def __init__(self) -> None:
        self._links: dict[str, Link] = {}
        self._healed: dict[str, float] = {}  # the time of a healed link's first answer

    @property
    def lost(self) -> frozenset[str]:
        """Return the unreachable nodes."""
        return frozenset(name for name, link in list(self._links.items()) if link.lost)

    @property
    def doubts(self) -> frozenset[str]:
        """Return the nodes that have missed some rings, but too few to count as unreachable."""
        return frozenset(name for name, link in list(self._links.items()) if not link.lost)

    def heard(self, name: str, now: float) -> None:
        link = self._links.get(name)
        if not link:
            return
        if link.lost and link.back is None:
            link.back = now
        if link.lost and link.back is not None:
            if now - link.back < link.proof:
                return
            self._healed[name] = link.back
        del self._links[name]

    def missed(self, name: str, now: float) -> None:
        link = self._links.setdefault(name, Link(since=now))
        link.misses, link.back = link.misses + 1, None
        if not link.lost and link.misses >= MISSES and now - link.since >= MISSING_SECONDS:
            self._lose(name, link, now)

    def reached(self, name: str) -> None:
        """Record that the node was reached, with any answer, and drop doubts about the node."""
        if (link := self._links.get(name)) and not link.lost:
            del self._links[name]

    def lose(self, name: str, now: float) -> None:
        """Record that the node is alive but refuses connections; no further tries are needed."""
        link = self._links.setdefault(name, Link())
        link.back = None
        if not link.lost:
            self._lose(name, link, now)

    def _lose(self, name: str, link: Link, now: float) -> None:
        link.lost = True
        stood = now - self._healed.get(name, now - STEADY_SECONDS)
        link.proof = max(HEALED_SECONDS, stood) if stood < STEADY_SECONDS else HEALED_SECONDS

    def trust(self) -> None:
        """Record every doubted node as reachable, because this node has exchanged data with them."""
        for name in self.doubts:
            self.reached(name)

    def keep(self, names: Collection[str]) -> None:
        """Forget every node but these."""
        for name in self._links.keys() - set(names):
            self._links.pop(name, None)
        for name in self._healed.keys() - set(names):
            self._healed.pop(name, None)
