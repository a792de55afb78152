"""Whatever its size, work in a queue's message ends well before functionTimeout, and the next message goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.kernel import places
from shared.kernel.person import NOBODY
from shared.kernel.settings import ROOT
from shared.removals.remove import Asked, remove_run
from tests.fakes.storage import Clock
from tests.fakes.world import World, trainers_folder

HOURS, MINUTES, SECONDS = map(int, json.loads((ROOT / "host.json").read_text())["functionTimeout"].split(":"))
LIMIT = timedelta(hours=HOURS, minutes=MINUTES, seconds=SECONDS) / 2
FILES = 600


class Slow:
    """Blobs of which each copy takes a second, and each removal a third of one."""

    def __init__(self, blobs: Any, clock: Clock) -> None:
        self._blobs, self._clock = blobs, clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)

    def copy(self, copies: Any, *rest: Any) -> Iterator[Any]:
        made = len(self._blobs.copied)
        for blob in self._blobs.copy(copies, *rest):
            self._clock.advance(len(self._blobs.copied) - made)  # what is there already takes no time
            made = len(self._blobs.copied)
            yield blob

    def remove(self, container: str, names: list[str]) -> None:
        self._clock.advance(0.3 * len(names))
        self._blobs.remove(container, names)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A run of many files has just completed."""
    world = World(trainers_folder(tmp_path))
    world.complete("1.bin")
    world.job_goes(world.only_run().name, "Running")
    world.deliver_all()
    world.run_until_idle()
    folder = f"trainyard/{world.only_run().name}/models"
    for number in range(FILES):
        world.blobs.put("azureml-blobstore", f"{folder}/{number:04}.pt", b"x")
    world.job_goes(world.only_run().name, "Completed")
    world.deliver_all()
    object.__setattr__(world.system, "blobs", Slow(world.blobs, world.clock))
    monkeypatch.setattr(world, "crashing", lambda _: world.system)
    return world


def longest(world: World, done: Callable[[], object]) -> tuple[timedelta, int]:
    """Handles messages until it is done. Returns the time of the longest, and how many there were of one queue."""
    longest, handled = timedelta(0), dict[str, int]()
    for _ in range(100):
        for queue in places.QUEUES:
            began: datetime = world.clock()
            if world.handle(queue):
                handled[queue] = handled.get(queue, 0) + 1
                longest = max(longest, world.clock() - began)
        if done():
            break
        world.clock.advance(1)
    return longest, max(handled.values())


def test_an_archive_of_many_files_takes_several_messages(world: World) -> None:
    """Each copies for some minutes; the manifest has all files once, and there is no failure in between."""
    time, messages = longest(world, lambda: world.only_run().archive.at)
    assert time < LIMIT
    assert messages >= 3
    names = [file["name"] for file in world.manifest(world.only_run())["files"]]
    assert len(names) == len(set(names))
    assert {f"models/{number:04}.pt" for number in range(FILES)} <= set(names)
    assert world.only_run().archive.error == ""


def test_a_removal_of_many_files_takes_several_messages(world: World) -> None:
    """What was removed before counts into its record, which is done when everything is gone."""
    longest(world, lambda: world.only_run().archive.at)
    asked = remove_run(world.system, world.removals, world.only_run().name, Asked(NOBODY))
    time, _ = longest(world, lambda: world.removals.get(asked.what, asked.name, asked.asked_at).done_at)  # type: ignore[union-attr]
    done = world.removals.get(asked.what, asked.name, asked.asked_at)
    assert done is not None
    assert done.done_at is not None
    assert done.files >= 2 * FILES
    assert world.archived(world.only_run()) <= {"data.json.gz"}  # what it was trained on is its record's
    assert time < 2 * LIMIT  # one batch of a listing may take as long once more
