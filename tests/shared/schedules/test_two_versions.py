"""Schedules while the previous version still works on the same rows, as during a deployment.

`OldVersion` does what that version did, copied from its code. It knows only `counted`, the number of files in the
route's drops at the last firing. It refuses a request with an unknown field, and leaves every other column unchanged.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shared.drops.model import Drop, DropState
from shared.kernel.drop_key import DropKey
from shared.kernel.person import Person
from shared.runs.intake.request import RunRequest
from shared.schedules import fire, plan
from shared.schedules.messages import CheckSchedule
from shared.schedules.model import Schedule
from shared.schedules.plan import ScheduleSpec
from tests.fakes.world import World, trainers_folder

ENOUGH = 3


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(trainers_folder(tmp_path))
    world.blobs.put("drops", "mnist/a/1.bin")
    return world


class OldRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The fields that a request had in the previous version: a firing fails on any other."""

    trainer: str | None = None
    template: str | None = None
    job: dict[str, Any] | None = None
    batchai: dict[str, Any] | None = None
    parameters: dict[str, Any] = {}
    data: str | None = None
    nodes: float | dict[str, float] | None = None
    resubmissions: float | None = None
    cluster: str | None = None
    experiment: str | None = None
    timeout_seconds: float | None = None
    keep_warm_seconds: float | None = None
    tags: dict[str, str] = {}
    from_run: str | None = None


class OldVersion:
    def __init__(self, world: World) -> None:
        self.world = world

    def closes(self, name: str, files: int) -> None:
        """Close a drop without a row for the closing."""
        self.world.drops.insert(
            Drop(DropKey("mnist", name), DropState.SEALED, "t", self.world.clock(), generation=1, blobs=files)
        )

    def looks(self, made: Schedule) -> bool:
        """Check the schedule; return whether that starts a run."""
        stored = self.world.schedules.get(made.id)
        assert stored is not None
        msgspec.convert(stored.value.request, OldRequest)
        there = sum(drop.blobs for drop in self.world.drops.listed("mnist"))
        if there - stored.value.counted < made.new_files:
            return False
        self.world.schedules.update(stored, counted=there, number=stored.value.number + 1)
        return True


def closes(world: World, name: str, files: int) -> None:
    """Close a drop with this version."""
    stored = world.drops.insert(Drop(DropKey("mnist", name), DropState.OPEN, "t", world.clock()))
    closing = replace(stored.value, state=DropState.SEALING, generation=1, blobs=files, sealed_at=world.clock())
    world.drops.replace(replace(closing, state=DropState.SEALED), world.drops.replace(closing, stored))
    world.clock.advance(200)


def looks(world: World, made: Schedule) -> bool:
    """Check the schedule with this version; return whether that starts a run."""
    before = len(world.schedules.firings(made.id))
    fire.check_schedule(world.system, CheckSchedule(made.id))
    return len(world.schedules.firings(made.id)) > before


def add(world: World) -> Schedule:
    request = RunRequest(template="mnist", data="drops/mnist/a")
    return plan.add(world.system, world.schedules, ScheduleSpec(request, route="mnist", new_files=ENOUGH))


def test_a_new_schedule_is_none_of_old_files_for_the_version_before(world: World) -> None:
    """Files that were in the route at the schedule's creation are not new to either version."""
    old = OldVersion(world)
    old.closes("earlier", 10)
    made = add(world)
    assert not old.looks(made)
    assert not looks(world, made)
    closes(world, "a", ENOUGH)
    assert old.looks(made)
    assert not looks(world, made)


def test_a_firing_of_this_version_is_known_to_the_one_before(world: World) -> None:
    """Files that started a run in this version start no second run in the previous version."""
    made = add(world)
    closes(world, "a", ENOUGH)
    assert looks(world, made)
    assert not OldVersion(world).looks(made)


def test_closings_by_the_version_before_are_counted_after_hours(world: World) -> None:
    """These closings have no row, so all drops are counted from time to time."""
    made = add(world)
    OldVersion(world).closes("a", ENOUGH)
    assert not looks(world, made)
    world.clock.advance(7 * 3600)
    assert looks(world, made)
    assert not looks(world, made)


def test_a_schedule_that_counted_closings_alone_learns_what_lay_there(world: World) -> None:
    """A row without `counted_for` continues from its count, and does not fire for older files."""
    OldVersion(world).closes("earlier", 10)
    made = add(world)
    stored = world.schedules.get(made.id)
    assert stored is not None
    world.schedules.update(stored, counted=0, counted_for=None, recounted_at=None)
    closes(world, "a", 1)
    assert not looks(world, made)
    closes(world, "b", 2)
    assert looks(world, made)
    assert not OldVersion(world).looks(made)


def test_a_pause_by_the_version_before_is_nobodys(world: World) -> None:
    """The previous version resumes and pauses without recording who. Then `paused_by` belongs to an earlier pause,
    and is not shown."""
    made = add(world)
    world.clock.advance(1)
    plan.pause(world.system, world.schedules, made.id, True, Person("ann"))
    stored = world.schedules.get(made.id)
    assert stored is not None
    assert stored.value.pauser_is_known
    world.clock.advance(1)
    resumed = world.schedules.update(stored, paused=False, decided_until=world.clock())
    world.clock.advance(1)
    assert not world.schedules.update(resumed, paused=True).value.pauser_is_known
