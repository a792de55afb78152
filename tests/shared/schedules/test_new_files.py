"""Schedules that wait for new files in a route: which files count, and that each counts once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.drops.model import Drop, DropState
from shared.kernel.drop_key import DropKey
from shared.runs.intake.request import RunRequest
from shared.schedules import fire, plan
from shared.schedules.messages import CheckSchedule
from shared.schedules.model import Outcome, Overlap, Schedule
from shared.schedules.plan import ScheduleSpec
from tests.fakes.crashing import Crash
from tests.fakes.world import World, trainers_folder

RUN = RunRequest(template="mnist", data="drops/mnist/a")


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(trainers_folder(tmp_path))
    made.blobs.put("drops", "mnist/a/1.bin")
    return made


def test_new_files_start_a_run(world: World) -> None:
    """A route is trained again when the configured number of new files has arrived, and the count starts anew."""
    world.blobs.delete("drops", "mnist/a/1.bin")
    wish = ScheduleSpec(
        RunRequest(template="mnist", data="workspaceblobstore/base"), route="mnist", new_files=4, overlap=Overlap.ALLOW
    )
    made = plan.add(world.system, world.schedules, wish)
    for number, expected in ((1, 0), (2, 1), (3, 1), (4, 2)):
        for name in ("1.bin", "2.bin", "_SUCCESS"):
            world.upload(f"mnist/drop-{number}/{name}")
        world.deliver_all()
        world.run_until_idle()
        world.clock.advance(300)
        world.run_until_idle()
        for _ in range(2):
            world.reconcile()
            world.run_until_idle()
        assert len(world.schedules.firings(made.id)) == expected, number
    assert world.schedules.firings(made.id)[0].facts["new"] == 6


def test_new_files_wait_for_the_last_run_though_one_failed_between(world: World) -> None:
    """After a failed start, `overlap` still refers to the run before."""
    wish = ScheduleSpec(RUN, route="mnist", new_files=2)
    made = plan.add(world.system, world.schedules, wish)
    before = world.schedules.get(made.id)
    assert before is not None
    world.schedules.update(before, last_run="mnist-earlier")
    for name in ("1.bin", "2.bin", "_SUCCESS"):
        world.upload(f"mnist/b/{name}")
    world.deliver_all()
    world.run_until_idle()
    world.blobs.delete("drops", "mnist/a/1.bin")  # the data of the schedule's own request
    for _ in range(2):
        world.clock.advance(300)
        world.reconcile()
        world.run_until_idle()
    [firing] = world.schedules.firings(made.id)
    after = world.schedules.get(made.id)
    assert after is not None
    assert (firing.outcome, after.value.last_run) == (Outcome.FAILED, "mnist-earlier")


def test_new_files_are_counted_without_the_drops_that_were_ever_made(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check reads only the closings since the last check; it reads the drops once, for a schedule of an earlier
    version."""
    made = plan.add(world.system, world.schedules, ScheduleSpec(RUN, route="mnist", new_files=3))
    _closed_with(world, "a", 1)
    with monkeypatch.context() as without:
        without.setattr(world.drops, "listed", None)
        assert _after_a_look(world, made).arrived == 1
        _closed_with(world, "b", 1)
        world.clock.advance(200)
        assert _after_a_look(world, made).arrived == 2
    stored = world.schedules.get(made.id)
    assert stored is not None
    world.schedules.update(stored, arrived=0, counted_until=None, counted=1)  # as an older version left it
    assert _after_a_look(world, made).arrived == 1
    _closed_with(world, "c", 2)
    world.clock.advance(200)
    assert (_after_a_look(world, made).number, len(world.schedules.firings(made.id))) == (1, 1)


def test_a_firing_that_died_is_counted_once(world: World) -> None:
    """A check that died after claiming a firing keeps its files in that firing: only later files are new."""
    made = plan.add(world.system, world.schedules, ScheduleSpec(RUN, route="mnist", new_files=2))
    _closed_with(world, "a", 2)
    stored = world.schedules.get(made.id)
    assert stored is not None
    world.clock.advance(200)
    with pytest.MonkeyPatch.context() as dying:
        dying.setattr(world.schedules, "update", _dies)
        with pytest.raises(Crash):
            fire.check_schedule(world.system, CheckSchedule(made.id))
    _closed_with(world, "b", 1)
    world.clock.advance(200)
    assert (_after_a_look(world, made).number, _after_a_look(world, made).arrived) == (1, 1)
    assert [firing.facts["new"] for firing in world.schedules.firings(made.id)] == [2]


def _closed_with(world: World, name: str, files: int) -> None:
    """Close a drop of the route now, with this many files."""
    stored = world.drops.insert(Drop(DropKey("mnist", name), DropState.OPEN, "t", world.clock()))
    closing = replace(stored.value, state=DropState.SEALING, generation=1, blobs=files, sealed_at=world.clock())
    world.drops.replace(replace(closing, state=DropState.SEALED), world.drops.replace(closing, stored))
    world.clock.advance(200)


def _after_a_look(world: World, made: Schedule) -> Schedule:
    fire.check_schedule(world.system, CheckSchedule(made.id))
    stored = world.schedules.get(made.id)
    assert stored is not None
    return stored.value


def _dies(*_: Any, **__: Any) -> None:
    raise Crash
