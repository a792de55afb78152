"""Find drops that no event told of. Events get lost; the names of the folders don't.

A walk over each route's folders goes on where it stopped, some thousand names at a time, so that a look costs the same
however many drops were ever made. Where all fit into one look, each look sees all.
"""

from __future__ import annotations

import logging

from shared.drops.collect import open_drop
from shared.drops.model import DropState
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Changed
from shared.kernel.places import DROPS_CONTAINER
from shared.kernel.storage import Place
from shared.system import System

log = logging.getLogger(__name__)

FOLDERS_A_LOOK = 5000  # one request's worth


def find_missed_drops(system: System, route: str) -> None:
    """Open those of the route's next folders that have no drop, or were rejected before the route existed."""
    walk = f"missed/{route}"
    begin = system.drops.cursor(walk)
    page = system.blobs.folders(Place(DROPS_CONTAINER, f"{route}/"), begin, FOLDERS_A_LOOK)
    if page.names:
        known = system.drops.codes(route, page.names[0], page.names[-1])
        for name in page.names:
            if known.get(name, "unknown_route") == "unknown_route":
                _open_missed(system, DropKey(route, name))
    if page.token != begin:
        system.drops.move_cursor(walk, page.token)


def _open_missed(system: System, key: DropKey) -> None:
    stored = system.drops.get(key)
    if stored and not (stored.value.state is DropState.REJECTED and stored.value.code == "unknown_route"):
        return
    try:
        open_drop(system, stored, key, look_after=0.0)
    except Changed:
        log.info("drop %s: its event came after all", key)
