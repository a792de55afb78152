"""Drops whose events never arrived: the reconcile timer finds them by their folders, route by route."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.drops.find_unannounced import LOOKS_FOR_ALL
from shared.kernel.memory import Memory
from shared.kernel.storage import FolderPage, Place
from shared.reconcile import reconcile
from tests.fakes.world import ROUTE, World, trainers_folder

ROUTES = [f"r{number}" for number in range(6)]


class Listings:
    """The blobs of a world, which record the folders listed since `routes` was last called."""

    def __init__(self, world: World) -> None:
        self._blobs = world.blobs
        self._listed: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._blobs, name)

    def folders(self, place: Place, token: str = "", limit: int = 5000) -> FolderPage:
        self._listed.append(place.prefix)
        return self._blobs.folders(place, token, limit)

    def routes(self) -> list[str]:
        listed, self._listed = self._listed, []
        return [prefix.rstrip("/") for prefix in listed if prefix]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path), [replace(ROUTE, name=name) for name in ROUTES])


def test_a_drop_without_any_event_is_found_within_three_periods(world: World) -> None:
    """This holds for any route and any process; each period lists a third of the quiet routes."""
    listings: Any = Listings(world)
    system = replace(world.system, blobs=listings)
    for route in ROUTES:
        world.blobs.put("drops", f"{route}/first/1.bin")
    reconcile(system)
    assert listings.routes() == ROUTES, "a process that has just begun looks at all"
    reconcile(system)
    assert listings.routes() == ROUTES, "where something was missed it looks again"
    for route in ROUTES:
        world.blobs.put("drops", f"{route}/second/1.bin")
        looks = []
        while f"{route}/second" not in {str(drop.key) for drop in world.drops.open()}:
            reconcile(system)
            looks.append(listings.routes())
        assert len(looks) <= LOOKS_FOR_ALL
        reconcile(system)
        assert route in listings.routes()
        for _ in range(LOOKS_FOR_ALL):
            reconcile(system)
            assert len(listings.routes()) == len(ROUTES) // LOOKS_FOR_ALL


def test_a_walk_that_is_not_at_its_end_goes_on_each_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk of a route with many drops continues each period, and another process resumes where this one
    stopped."""
    monkeypatch.setattr("shared.drops.find_unannounced.FOLDERS_A_LOOK", 2)
    for number in range(9):
        world.blobs.put("drops", f"r0/d{number}/1.bin")
    for looks in range(1, 4):
        reconcile(world.system)
        assert len(world.drops.rows) == 2 * looks
    reconcile(replace(world.system, memory=Memory()))
    assert len(world.drops.rows) == 8
