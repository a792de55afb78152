"""Data cards over HTTP: of a generation, of a run, and the difference between two cards."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.data_checks import cards, pictures
from shared.data_checks.cards import CardQuery, CardsQuery
from shared.kernel.errors import Impossible, NotFound
from shared.kernel.places import DROPS_CONTAINER
from tests.shared.data_checks.test_sealing_checks import KEY, close, picture, put_pictures, world_of


def test_cards_of_generations_and_runs(tmp_path: Path) -> None:
    """Each generation keeps its card, a run has the card of its data, and a difference is listed class by class."""
    world = world_of(tmp_path)
    put_pictures(world)
    close(world)
    first = world.only_run().name
    world.clock.advance(60)
    world.blobs.put(DROPS_CONTAINER, f"{KEY}/train/ant/new.png", picture(300))
    close(world)
    of_run = cards.get_card(world.system, CardQuery(first))
    assert of_run == {**cards.get_card(world.system, CardQuery(f"{KEY}@1")), "of": first}
    newest = cards.get_card(world.system, CardQuery(str(KEY)))
    assert (newest["verdict"], newest["card"]["totals"]["train"]) == ("fine", 25)
    assert cards.diff_cards(world.system, CardsQuery(first, f"{KEY}@2"))["changes"][:1] == ["files: 48 -> 49 (+1)"]
    assert "train ant: 12 -> 13 (+1)" in cards.diff_cards(world.system, CardsQuery(f"{KEY}@1", f"{KEY}@2"))["changes"]


def test_what_has_no_card_is_told(tmp_path: Path) -> None:
    """An open drop, an unknown generation and unchecked data have no card, and the answer says so."""
    world = world_of(tmp_path)
    put_pictures(world)
    close(world)
    with pytest.raises(Impossible, match="drop --check"):
        cards.get_card(world.system, CardQuery(f"{KEY}@now"))
    with pytest.raises(NotFound, match="has no generation 9; it has: 1"):
        cards.get_card(world.system, CardQuery(f"{KEY}@9"))
    world.blobs.containers["output"] = {}
    with pytest.raises(NotFound, match="No data card of"):
        cards.get_card(world.system, CardQuery(str(KEY)))


def test_pictures_of_a_generation_are_addresses(tmp_path: Path) -> None:
    """The same eight pictures are returned each time, without SVG, hidden files, or pictures that were overwritten
    since."""
    world = world_of(tmp_path)
    put_pictures(world)
    for name in ("train/ant/evil.svg", "train/ant/.hidden.png", "train/ant/Thumbs.db"):
        world.blobs.put(DROPS_CONTAINER, f"{KEY}/{name}", b"<svg onload=alert(1)>")
    close(world)
    told = pictures.list_pictures(world.system, CardQuery(f"{KEY}@1"))["pictures"]
    assert len(told) == 8
    assert all(path.endswith(".png") and ".hidden" not in path for path in told)
    for path, url in told.items():
        assert url.startswith(f"https://fake.blob/drops/{KEY}/{path}?sp=r&")
    assert pictures.list_pictures(world.system, CardQuery(f"{KEY}@1"))["pictures"].keys() == told.keys()
    gone, other = list(told)[:2]
    world.blobs.delete(DROPS_CONTAINER, f"{KEY}/{gone}")
    world.blobs.put(DROPS_CONTAINER, f"{KEY}/{other}", picture(500))
    assert list(pictures.list_pictures(world.system, CardQuery(f"{KEY}@1"))["pictures"]) == list(told)[2:]
    with pytest.raises(Impossible, match="closed generation"):
        pictures.list_pictures(world.system, CardQuery(f"{KEY}@now"))
