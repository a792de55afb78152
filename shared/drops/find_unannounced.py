"""Find drops that no event told of. Events get lost; the names of the folders don't.

A walk over each route's folders goes on where it stopped, some thousand names at a time, so that a look costs the same
however many drops were ever made. Where all fit into one look, each look sees all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Protocol

from shared.drops.checks import open_drop
from shared.drops.model import DropState
from shared.drops.ports import HasDrops
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Changed
from shared.kernel.has import HasBlobs, HasClock, HasQueues, HasTokens
from shared.kernel.places import DROPS_CONTAINER
from shared.kernel.storage import Place

log = logging.getLogger(__name__)

FOLDERS_A_LOOK = 5000  # one request's worth


class Ports(HasClock, HasTokens, HasQueues, HasBlobs, HasDrops, Protocol):
    """What is needed here from outside."""


def routes_with_folders(ports: Ports, routes: Iterable[str]) -> dict[str, str]:
    """Those of the routes that somebody ever uploaded to, each with where its walk goes on. Two requests."""
    top = ports.blobs.folders(Place(DROPS_CONTAINER, ""), limit=FOLDERS_A_LOOK)
    there = sorted(routes) if top.token else sorted({*routes}.intersection(top.names))
    walks = ports.drops.cursors([_walk(route) for route in there])
    return {route: walks[_walk(route)] for route in there}


def find_missed_drops(ports: Ports, route: str, begin: str) -> None:
    """Open those of the route's next folders that have no drop, or were rejected before the route existed."""
    page = ports.blobs.folders(Place(DROPS_CONTAINER, f"{route}/"), begin, FOLDERS_A_LOOK)
    if page.names:
        codes = ports.drops.codes(route, page.names[0], page.names[-1])
        for name in page.names:
            if codes.get(name, "unknown_route") == "unknown_route":
                _open_missed(ports, DropKey(route, name))
    if page.token != begin:
        ports.drops.move_cursor(_walk(route), page.token)


def _walk(route: str) -> str:
    return f"missed/{route}"


def _open_missed(ports: Ports, key: DropKey) -> None:
    stored = ports.drops.get(key)
    if stored and not (stored.value.state is DropState.REJECTED and stored.value.code == "unknown_route"):
        return
    try:
        open_drop(ports, stored, key, look_after=0.0)
    except Changed:
        log.info("drop %s: its event came after all", key)
