"""Whom this node reaches: what rings at the others' bells have shown."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

# Who lets its bell ring so many times, over at least so many seconds in which no step is made, is out of reach.
MISSES, MISSING_SECONDS = 3, 2.0
# It is within reach again when it has answered for so long: a link that comes and goes costs its nodes once.
HEALED_SECONDS = 8.0


@dataclass
class Link:
    """To one node. `since` is the first miss in a row, `back` the first answer of one that was out of reach."""

    misses: int = 0
    since: float = 0.0
    lost: bool = False
    back: float | None = None


class Links:
    """To all nodes; one of which nothing is noted is within reach."""

    def __init__(self) -> None:
        self._links: dict[str, Link] = {}

    @property
    def lost(self) -> frozenset[str]:
        """Who is out of reach."""
        return frozenset(name for name, link in list(self._links.items()) if link.lost)

    @property
    def doubts(self) -> frozenset[str]:
        """Who has not answered, but not so often that it is out of reach."""
        return frozenset(name for name, link in list(self._links.items()) if not link.lost)

    def heard(self, name: str, now: float) -> None:
        link = self._links.get(name)
        if not link:
            return
        if link.lost and link.back is None:
            link.back = now
        if not link.lost or (link.back is not None and now - link.back >= HEALED_SECONDS):
            del self._links[name]

    def missed(self, name: str, now: float) -> None:
        link = self._links.setdefault(name, Link(since=now))
        link.misses, link.back = link.misses + 1, None
        link.lost = link.lost or (link.misses >= MISSES and now - link.since >= MISSING_SECONDS)

    def settle(self, name: str) -> None:
        """It was reached, whatever it said: no doubt is left."""
        if (link := self._links.get(name)) and not link.lost:
            del self._links[name]

    def lose(self, name: str) -> None:
        """It lives and refuses: nothing need be tried again."""
        link = self._links.setdefault(name, Link())
        link.lost, link.back = True, None

    def trust(self) -> None:
        """All that are not out of reach are within: there was an exchange with them."""
        for name in self.doubts:
            self.settle(name)

    def keep(self, names: Collection[str]) -> None:
        """Forget all others."""
        for name in self._links.keys() - set(names):
            self._links.pop(name, None)
