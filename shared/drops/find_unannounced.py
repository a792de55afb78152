"""Find drops that no event told of. Events get lost; the names of the folders don't.

A walk over each route's folders goes on where it stopped, some thousand names at a time, so that a look costs the same
however many drops were ever made. Where all fit into one look, each look at the route sees all.

Listing folders is the dearest request there is, and mostly finds nothing. So a route is looked at every time only if
its last look found something, or did not come to the end; the others by turns.
"""

from __future__ import annotations

import logging

from shared.drops.checks import open_drop
from shared.drops.model import DropState
from shared.drops.ports import DropPorts
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Changed
from shared.kernel.memory import Memory, Topic
from shared.kernel.places import DROPS_CONTAINER
from shared.kernel.storage import Place
from shared.kernel.turns import Turns

log = logging.getLogger(__name__)

FOLDERS_A_LOOK = 5000  # one request's worth
LOOKS_FOR_ALL = 3  # so a drop without any event waits for three periods at most


class Walks:
    """How far the walks over the routes' folders have come, as this process knows it."""

    def __init__(self) -> None:
        self._turns = Turns(LOOKS_FOR_ALL)
        self._begins: dict[str, str] = {}

    def due(self, ports: DropPorts) -> list[str]:
        """Those of the routes that somebody ever uploaded to whose turn it is. One request, and one for new routes."""
        top = ports.blobs.folders(Place(DROPS_CONTAINER, ""), limit=FOLDERS_A_LOOK)
        there = sorted(ports.routes) if top.token else sorted({*ports.routes}.intersection(top.names))
        unread = [route for route in there if route not in self._begins]
        begins = ports.drops.cursors([_walk(route) for route in unread])
        self._begins |= {route: begins[_walk(route)] for route in unread}
        return self._turns.next(there)

    def find_missed_drops(self, ports: DropPorts, route: str) -> None:
        """Open those of its next folders that have no drop, or were rejected before the route existed."""
        self._turns.saw({route: 1})  # whatever fails below, the next time looks again
        begin, opened = self._begins[route], 0
        page = ports.blobs.folders(Place(DROPS_CONTAINER, f"{route}/"), begin, FOLDERS_A_LOOK)
        if page.names:
            codes = ports.drops.codes(route, page.names[0], page.names[-1])
            for name in page.names:
                if codes.get(name, "unknown_route") == "unknown_route":
                    opened += _open_missed(ports, DropKey(route, name))
        if page.token != begin:
            ports.drops.move_cursor(_walk(route), page.token)
            self._begins[route] = page.token
        self._turns.saw({route: opened + bool(page.token)})


WALKS = Topic[Walks]("walks over the routes' folders")


def walks(memory: Memory) -> Walks:
    """Those of this process."""
    return memory.one(WALKS, Walks)


def _walk(route: str) -> str:
    return f"missed/{route}"


def _open_missed(ports: DropPorts, key: DropKey) -> bool:
    stored = ports.drops.get(key)
    if stored and not (stored.value.state is DropState.REJECTED and stored.value.code == "unknown_route"):
        return False
    try:
        open_drop(ports, stored, key, look_after=0.0)
    except Changed:
        log.info("drop %s: its event came after all", key)
        return False
    return True
