"""Hops: an upload's consequences are handled in the invocation of its event, and queues take over the rest."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from functions import queues
from shared.kernel.storage import Blob, Place
from shared.runs.model import RunState
from tests.fakes.world import World, trainers_folder


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(trainers_folder(tmp_path))
    world.goes_on = True
    return world


def test_one_invocation_to_an_accepted_job_and_two_to_an_archive(world: World) -> None:
    """The marker's event seals the drop and submits its job; the job's last event ends the run and archives it."""
    world.upload("mnist/a/1.bin", b"x")
    world.upload("mnist/a/_SUCCESS")
    world.deliver_all()
    while world.handle("drop-events"):
        pass
    run = world.only_run()
    assert list(world.jobs.jobs) == [run.name]
    assert not world.queues.visible("submissions")
    assert not world.queues.counts(["submissions"])["submissions"]

    world.job_goes(run.name, "Completed")
    world.deliver_all()
    while world.handle("job-events"):
        pass
    assert world.only_run().archive.at is not None


@pytest.mark.parametrize("name", ["mnist/a.zip"])
def test_an_archive_needs_no_second_look(world: World, name: str) -> None:
    """A drop of a single file is checked by its own event."""
    world.upload(name, b"x")
    world.deliver_all()
    assert world.handle("drop-events")
    assert len(world.jobs.jobs) == 1


def test_what_cannot_go_on_comes_by_its_message(world: World) -> None:
    """While Azure ML doesn't answer, the run waits on its queue, and the drop is sealed anyway."""
    world.jobs.down = True
    world.upload("mnist/a/_SUCCESS")
    world.upload("mnist/a/1.bin", b"x")
    world.deliver_all()
    while world.handle("drop-events"):
        pass
    assert world.only_run().progress.state is RunState.RECEIVED
    assert world.queues.counts(["submissions"]) == {"submissions": 1}
    world.jobs.down = False
    world.clock.advance(61)
    world.run_until_idle()
    assert list(world.jobs.jobs) == [world.only_run().name]


def test_a_closing_event_that_comes_often_checks_its_drop_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Event Grid may deliver the marker's event several times at once. A process lists the drop for one of them;
    the others find the drop closed."""
    world.upload("mnist/a/1.bin", b"x")
    world.run_until_idle()
    event = json.dumps(world.upload("mnist/a/_SUCCESS")).encode()
    world.clock.advance(2)
    listings, another = list[Place](), threading.Event()
    paged = world.blobs.paged

    def slow(place: Place, token: str = "") -> Iterator[tuple[str, Blob]]:
        listings.append(place)
        if len(listings) > 1:
            another.set()
        another.wait(0.3)  # time for another thread to begin a listing
        return paged(place, token)

    monkeypatch.setattr(world.blobs, "paged", slow)
    monkeypatch.setattr(queues, "the_system", lambda: world.system)
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(queues.receive, "drop-events", event) for _ in range(4)]:
            done.result(10)
    assert len(listings) == 1
    assert list(world.jobs.jobs) == [world.only_run().name]
