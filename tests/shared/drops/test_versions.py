"""Drops are versions of data: each generation keeps its file list, and any two can be compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.drops import retrain, versions
from shared.drops.diff import DataFile, compare, read_ref
from shared.drops.model import DropState
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Conflict, Impossible, NotFound
from shared.removals.remove import RemovalRequest, remove_drop
from shared.runs.intake.create import create_run
from shared.runs.intake.request import RunRequest
from tests.fakes.world import World, trainers_folder

KEY = DropKey("mnist", "a")
LISTS = st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(0, 2), st.sampled_from("xyz")))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def close(world: World, **contents: str) -> str:
    """Upload these files and the marker to mnist/a, let the drop close, and return its run."""
    for name, text in contents.items():
        world.upload(f"mnist/a/{name}", text.encode())
    world.clock.advance(10)
    world.upload("mnist/a/_SUCCESS", b"")
    world.deliver_all()
    world.run_until_idle()
    world.clock.advance(10)
    world.run_until_idle()
    found = world.drops.get(KEY)
    assert found is not None
    return found.value.run


def test_each_generation_keeps_its_files(world: World) -> None:
    """Each closing with new content creates a generation with its file list, and its run names the generation."""
    first, second = close(world, one="1", two="2"), close(world, two="22", three="3")

    assert [(g.number, g.run, g.blobs) for g in versions.generations(world.system.drops, world.system.routes, KEY)] == [
        (2, second, 4),
        (1, first, 3),
    ]
    assert world.runs.get(second).value.asked.generation == 2
    assert [file.path for file in versions.files(world.system, "mnist/a@1")] == ["one", "two"]
    assert versions.files(world.system, second) == versions.files(world.system, "mnist/a")
    found = versions.diff(world.system, "mnist/a@1", "drops/mnist/a@2")
    assert [[file.path for file in part] for part in (found.added, found.changed, found.gone)] == [
        ["three"],
        ["two"],
        [],
    ]


def test_what_lies_there_now_can_be_compared(world: World) -> None:
    """`@now` is the drop as the storage lists it now, whatever was closed before."""
    close(world, one="1", two="2")
    world.blobs.delete("drops", "mnist/a/one")
    found = versions.diff(world.system, "mnist/a", "mnist/a@now")
    assert ([file.path for file in found.gone], found.same) == (["one"], 1)


def test_content_that_comes_back_has_the_run_that_it_had(world: World) -> None:
    """Content that returns is a new generation with the first one's run and list."""
    first = close(world, one="1")
    close(world, one="2")
    assert close(world, one="1") == first
    third, _, oldest = versions.generations(world.system.drops, world.system.routes, KEY)
    assert (third.number, third.run, third.fingerprint) == (3, first, oldest.fingerprint)
    assert versions.diff(world.system, "mnist/a@1", "mnist/a@3").same == 1


def test_a_generation_of_an_older_version_is_shown(world: World) -> None:
    """A drop that was closed before generations were kept shows its last generation, from its own record."""
    run = close(world, one="1")
    world.drops.kept.clear()
    assert [(g.number, g.run) for g in versions.generations(world.system.drops, world.system.routes, KEY)] == [(1, run)]


def test_what_is_not_there_says_what_is(world: World) -> None:
    """An unknown drop, an unknown generation and an unknown form of name are refused with the choices."""
    close(world, one="1")
    with pytest.raises(NotFound, match="it has: 1"):
        versions.files(world.system, "mnist/a@7")
    with pytest.raises(NotFound, match="Routes: mnist"):
        versions.generations(world.system.drops, world.system.routes, DropKey("mnist", "b"))
    for text in ("mnist", "mnist/a/b", "mnist/a@new", "", "run-x y"):
        with pytest.raises((Impossible, NotFound)):
            versions.files(world.system, text)


def test_a_run_shows_its_own_files_when_its_drop_was_removed(world: World) -> None:
    """A drop that was removed starts again at generation 1; an earlier run still lists the files that it used."""
    run = close(world, one="1", two="2")
    world.job_goes(run, "Completed")
    world.deliver_all()
    world.run_until_idle()
    remove_drop(world.system, world.removals, KEY, RemovalRequest())
    world.run_until_idle()
    assert [file.path for file in versions.files(world.system, run)] == ["one", "two"]
    world.clock.advance(10)
    other = close(world, three="3")
    assert world.runs.get(other).value.asked.generation == world.runs.get(run).value.asked.generation == 1
    assert [file.path for file in versions.files(world.system, run)] == ["one", "two"]
    assert [file.path for file in versions.files(world.system, other)] == ["three"]


def test_a_name_may_hold_an_at_sign() -> None:
    """Only a number, `now` or `latest` after the last @ is a version; anything else belongs to the name, also of a
    rejected drop."""
    assert read_ref("r/a@b").key == DropKey("r", "a@b")
    assert (read_ref("r/a@b@12").key.name, read_ref("r/a@b@12").number) == ("a@b", 12)
    assert read_ref("drops/r/a@now/").now


def test_the_same_content_is_trained_again_when_asked(world: World) -> None:
    """`again` creates one more run per key, named after the route, with the drop's job and generation. An open drop
    and a key that created another run are refused."""
    run = close(world, one="1")
    made = retrain.train_again(world.system, KEY, "k")
    assert retrain.train_again(world.system, KEY, "k").name == made.name != run
    assert (made.asked.generation, made.asked.retry_of, made.asked.drop) == (1, run, "mnist/a")
    assert made.asked.timeout_seconds == world.runs.get(run).value.asked.timeout_seconds == 3600
    assert str(made.asked.request.outputs["models"].path).endswith(f"/{made.name}/models/")
    further = retrain.train_again(world.system, KEY).name
    assert further not in (made.name, run)
    assert made.name.startswith("mnist-")
    assert further.startswith("mnist-")
    create_run(
        world.system, RunRequest(template="mnist", data="azureml://datastores/workspaceblobstore/paths/p"), "taken"
    )
    with pytest.raises(Conflict, match="another request"):
        retrain.train_again(world.system, KEY, "taken")
    world.upload("mnist/a/two")
    world.deliver_all()
    world.run_until_idle()
    assert world.drops.rows[KEY].value.state is DropState.OPEN
    with pytest.raises(Conflict, match="open"):
        retrain.train_again(world.system, KEY)


@given(LISTS, LISTS)
def test_a_difference_makes_one_list_of_the_other(
    before: dict[str, tuple[int, str]], after: dict[str, tuple[int, str]]
) -> None:
    """Applying the removed, changed and added files to the first list gives the second, and no file is named twice."""
    old, new = ([DataFile(path, *rest) for path, rest in each.items()] for each in (before, after))
    found = compare(old, new)
    made = {file.path: file for file in old if file not in found.gone} | {
        file.path: file for file in (*found.added, *found.changed)
    }
    assert made == {file.path: file for file in new}
    assert found.same + len(found.changed) + len(found.added) == len(new)
