"""Schedules while the version before is still at work on the same rows, as during a deployment.

`OldVersion` is what that version did, written down from its code: it knows `counted` alone, which is how many files the
route's drops held at the last firing, refuses a request with a field that it lacks, and leaves every other column as it
was.
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
    """The fields that a request had then: a firing fails of any other."""

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
        """It leaves a drop, and no row of its closing."""
        self.world.drops.insert(
            Drop(DropKey("mnist", name), DropState.SEALED, "t", self.world.clock(), generation=1, blobs=files)
        )

    def looks(self, made: Schedule) -> bool:
        """Whether it makes a run."""
        stored = self.world.schedules.get(made.id)
        assert stored is not None
        msgspec.convert(stored.value.request, OldRequest)
        there = sum(drop.blobs for drop in self.world.drops.listed("mnist"))
        if there - stored.value.counted < made.new_files:
            return False
        self.world.schedules.update(stored, counted=there, number=stored.value.number + 1)
        return True


def closes(world: World, name: str, files: int) -> None:
    """A closing by this version."""
    stored = world.drops.insert(Drop(DropKey("mnist", name), DropState.OPEN, "t", world.clock()))
    closing = replace(stored.value, state=DropState.SEALING, generation=1, blobs=files, sealed_at=world.clock())
    world.drops.replace(replace(closing, state=DropState.SEALED), world.drops.replace(closing, stored))
    world.clock.advance(200)


def looks(world: World, made: Schedule) -> bool:
    """Whether this version makes a run."""
    before = len(world.schedules.firings(made.id))
    fire.check_schedule(world.system, CheckSchedule(made.id))
    return len(world.schedules.firings(made.id)) > before


def add(world: World) -> Schedule:
    request = RunRequest(template="mnist", data="drops/mnist/a")
    return plan.add(world.system, world.schedules, ScheduleSpec(request, route="mnist", new_files=ENOUGH))


def test_a_new_schedule_is_none_of_old_files_for_the_version_before(world: World) -> None:
    """What lay in the route when it was made is not new to either version."""
    old = OldVersion(world)
    old.closes("earlier", 10)
    made = add(world)
    assert not old.looks(made)
    assert not looks(world, made)
    closes(world, "a", ENOUGH)
    assert old.looks(made)
    assert not looks(world, made)


def test_a_firing_of_this_version_is_known_to_the_one_before(world: World) -> None:
    """The files that made a run make no second one there."""
    made = add(world)
    closes(world, "a", ENOUGH)
    assert looks(world, made)
    assert not OldVersion(world).looks(made)


def test_closings_by_the_version_before_are_counted_after_hours(world: World) -> None:
    """They leave no row of their own; all drops are counted now and then."""
    made = add(world)
    OldVersion(world).closes("a", ENOUGH)
    assert not looks(world, made)
    world.clock.advance(7 * 3600)
    assert looks(world, made)
    assert not looks(world, made)


def test_a_schedule_that_counted_closings_alone_learns_what_lay_there(world: World) -> None:
    """A row without `counted_for` goes on with what it counted, and fires for nothing older."""
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
    """It resumes and pauses without writing who: then `paused_by` is of an earlier pause, and not shown."""
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
