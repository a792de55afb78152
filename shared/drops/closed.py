"""The closed drops of a route, by closing time."""

from __future__ import annotations

from datetime import datetime

from shared.drops.model import Drop, DropState
from shared.drops.ports import Drops

PAGE = 1000  # drops per read


def closed_since(drops: Drops, route: str, since: datetime | None = None) -> list[Drop]:
    """The route's drops that closed after this moment, or all closed drops, in the order of closing."""
    chosen, after = list[Drop](), None
    while True:
        page = drops.listed(route, after, PAGE)
        chosen += [drop for drop in page if drop.sealed_at and _counts(drop) and (not since or drop.sealed_at > since)]
        if len(page) < PAGE:
            return sorted(chosen, key=lambda drop: (drop.sealed_at, drop.key))
        after = page[-1].key


def _counts(drop: Drop) -> bool:
    return drop.state is DropState.SEALED and drop.removed_at is None
