"""Notes and tags that people put on runs, on fakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.api import queries
from shared.api.requests import RunListQuery
from shared.kernel.errors import Changed, Impossible, NotFound
from shared.kernel.person import NOBODY, Person
from shared.kernel.versioned import Stored
from shared.runs.model import Run
from shared.runs.views import notes_and_tags
from tests.fakes.parts import changed
from tests.fakes.world import World, trainers_folder
from tests.shared.runs.test_comparing import run

NAME = "mnist-0000000000000001"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(trainers_folder(tmp_path))
    world.runs.insert(run(NAME, tags={"team": "vision", "project": "digits"}))
    return world


def test_a_note_says_who_and_when(world: World) -> None:
    """A run keeps its notes in order, at most twenty; a note that is sent twice is stored once."""
    notes_and_tags.add_note(world.system.runs, world.system.clock, NAME, "too high", Person("ann", "0a1b"))
    notes_and_tags.add_note(world.system.runs, world.system.clock, NAME, "too high", Person("ann", "0a1b"))
    notes_and_tags.add_note(world.system.runs, world.system.clock, NAME, "too high", Person("bob"))
    told = queries.run(world.system, NAME)["notes"]
    assert [(note["text"], note["by"], note["by_id"]) for note in told] == [
        ("too high", "ann", "0a1b"), ("too high", "bob", ""),
    ]  # fmt: skip
    assert told[0]["at"] == world.clock().isoformat()
    for number in range(notes_and_tags.MOST_NOTES - 2):
        notes_and_tags.add_note(world.system.runs, world.system.clock, NAME, f"{number}", Person("ann"))
    with pytest.raises(Impossible, match="has 20 notes"):
        notes_and_tags.add_note(world.system.runs, world.system.clock, NAME, "one more", Person("ann"))
    with pytest.raises(NotFound):
        notes_and_tags.add_note(world.system.runs, world.system.clock, "mnist-0000000000000009", "x", Person("ann"))


def test_tags_are_changed(world: World) -> None:
    """Tags are set and removed, and find the run from then on; the tag of the paying project stays."""
    for _ in range(2):  # the second time changes nothing, and is not in the audit
        notes_and_tags.change_tags(world.system, NAME, {"stage": "draft"}, ["team"], Person("ann", "0a1b"))
    (entry,) = queries.run(world.system, NAME)["audit"]
    assert (entry["what"], entry["by"], entry["by_id"]) == ("tags: stage=draft, without team", "ann", "0a1b")
    assert queries.run(world.system, NAME)["tags"] == {"project": "digits", "stage": "draft"}
    assert [row["run"] for row in queries.runs(world.system, RunListQuery(where="stage=draft"))["runs"]] == [NAME]
    assert queries.runs(world.system, RunListQuery(where="team=vision"))["runs"] == []
    with pytest.raises(Impossible, match="which budget pays"):
        notes_and_tags.change_tags(world.system, NAME, {"project": "other"}, [], NOBODY)
    with pytest.raises(Impossible, match="at most 15 tags"):
        notes_and_tags.change_tags(world.system, NAME, {f"t{n}": "x" for n in range(15)}, [], NOBODY)


def test_what_others_write_meanwhile_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A note is added to the newest row: neither a concurrent step of the run nor the note is lost."""
    update, other = world.runs.update, iter(["it ended"])

    def late(stored: Stored[Run], after: Run) -> Stored[Run]:
        if reason := next(other, ""):
            update(stored, changed(stored.value, reason=reason))
            raise Changed("someone was quicker")
        return update(stored, after)

    monkeypatch.setattr(world.runs, "update", late)
    told = notes_and_tags.add_note(world.system.runs, world.system.clock, NAME, "seen", Person("ann"))
    assert changed(told, notes=()).progress.reason == "it ended"
    assert [note.text for note in told.people.notes] == ["seen"]
