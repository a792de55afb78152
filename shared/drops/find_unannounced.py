"""Find drops whose events were lost, by the names of their folders.

A walk over each route's folders covers some thousand names per call and continues where the last call stopped, so a
call costs the same however many drops exist. If all names fit into one call, each call covers the whole route.

Listing folders is the most expensive storage request, and mostly finds nothing. A route is therefore listed at every
call only if the last call found something or did not reach the end; other routes take turns.
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

FOLDERS_A_LOOK = 5000  # the names in one request
LOOKS_FOR_ALL = 3  # so a drop without an event waits for at most three periods


class Walks:
    """This process's positions in the walks over the routes' folders."""

    def __init__(self) -> None:
        self._turns = Turns(LOOKS_FOR_ALL)
        self._begins: dict[str, str] = {}

    def due(self, ports: DropPorts) -> list[str]:
        """The due routes with uploads. Costs one request, and a second request for new routes."""
        top = ports.blobs.folders(Place(DROPS_CONTAINER, ""), limit=FOLDERS_A_LOOK)
        there = sorted(ports.routes) if top.token else sorted({*ports.routes}.intersection(top.names))
        unread = [route for route in there if route not in self._begins]
        begins = ports.drops.cursors([_walk(route) for route in unread])
        self._begins |= {route: begins[_walk(route)] for route in unread}
        return self._turns.next(there)

    def find_missed_drops(self, ports: DropPorts, route: str) -> None:
        """Open drops for the next folders without a drop, or with a drop rejected before the route existed."""
        self._turns.saw({route: 1})  # if the code below fails, the next call lists this route again
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
    """The walks of this process."""
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
