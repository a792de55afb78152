"""A small run is archived by the step that ends it, and every other run by a message."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from shared.kernel.errors import Unavailable
from shared.notices.compose import compose
from shared.runs.model import Run, RunState
from shared.runs.results import archive
from tests.fakes.parts import changed
from tests.fakes.ports import Crash
from tests.fakes.world import World, trainers_folder


class Away:
    """Blobs that can be read, but not copied at the moment."""

    def __init__(self, blobs: object) -> None:
        self._blobs = blobs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)

    def copy(self, *_: object) -> Any:
        raise Unavailable("the storage does not answer")


@pytest.fixture
def ended(tmp_path: Path) -> World:
    """A run whose job has just completed, with the event still in the queue."""
    world = World(trainers_folder(tmp_path))
    world.complete("1.bin")
    world.job_goes(world.only_run().name, "Running")
    world.deliver_all()
    world.run_until_idle()
    world.job_goes(world.only_run().name, "Completed")
    world.deliver_all()
    return world


def waiting(world: World) -> int:
    return sum("ArchiveRun" in message.text for message in world.queues.messages.get("background", ()))


def assert_whole(world: World) -> None:
    run, manifest = world.only_run(), world.manifest(world.only_run())
    assert (run.progress.state, manifest["run"]["state"]) == (RunState.COMPLETED, "completed")
    assert [moment["state"] for moment in manifest["run"]["history"]] == [
        moment.state for moment in run.progress.history
    ]
    assert {file["name"] for file in manifest["files"]} | {"manifest.json"} == world.archived(run)
    assert (run.archive.at is not None, run.measured.best["test_accuracy"]) == (True, 0.9)


def test_a_small_run_ends_and_is_archived_in_one_write(ended: World) -> None:
    """The run's last step writes the archive's content, and sends no message; the event is published before."""
    ended.handle("job-events")
    assert_whole(ended)
    assert waiting(ended) == 0
    assert [event.kind for event in ended.events.published][-1] == "RunArchived"


@pytest.mark.parametrize(("limit", "least"), [("AT_ONCE_FILES", 1), ("AT_ONCE_BYTES", 1)])
def test_what_is_much_to_copy_is_left_to_a_message(
    ended: World, monkeypatch: pytest.MonkeyPatch, limit: str, least: int
) -> None:
    """A run with many files or bytes ends at once, and is archived afterwards."""
    monkeypatch.setattr(archive, limit, least)
    ended.handle("job-events")
    assert (ended.only_run().progress.state, ended.only_run().archive.at, waiting(ended)) == (
        RunState.COMPLETED,
        None,
        1,
    )
    ended.run_until_idle()
    assert_whole(ended)


def test_outputs_that_changed_after_the_end_are_named(ended: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs that another job overwrote before the archive are named; logs are not, because they always arrive
    late."""
    monkeypatch.setattr(archive, "AT_ONCE_FILES", 1)
    ended.handle("job-events")
    ended.clock.advance(3600)
    run = ended.only_run().name
    ended.blobs.put("azureml-blobstore", f"trainyard/{run}/models/model.pt", b"another's")
    ended.blobs.put("azureml", f"ExperimentRun/dcid.{run}/user_logs/std_log_process_0.txt", b"late\n")
    ended.run_until_idle()
    assert_whole(ended)
    assert ended.manifest(ended.only_run())["changed_after_end"] == ["models/model.pt"]


def test_outputs_that_stayed_are_not_named(ended: World) -> None:
    """A run with unchanged outputs names none, however late it is archived."""
    ended.clock.advance(30)
    ended.handle("job-events")
    assert ended.manifest(ended.only_run())["changed_after_end"] == []


def test_a_run_ends_while_its_archive_cannot_be_written(ended: World) -> None:
    """An archive that fails delays no state; a message tries it again."""
    whole = ended.system
    ended.system = replace(whole, blobs=cast("Any", Away(ended.blobs)))
    ended.handle("job-events")
    assert (ended.only_run().progress.state, ended.only_run().archive.at, waiting(ended)) == (
        RunState.COMPLETED,
        None,
        1,
    )
    ended.system = whole
    ended.run_until_idle()
    assert_whole(ended)


def test_a_notice_waits_for_the_write_that_makes_it_true(ended: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notice whose message arrives before the run's last step is sent by its next attempt."""

    def dies(*_: object, **__: object) -> None:
        raise Crash("before the step")

    name, update = ended.only_run().name, ended.runs.update
    monkeypatch.setattr(ended.runs, "update", dies)
    ended.handle("job-events")
    assert [event.kind for event in ended.events.published][-1] == "RunArchived"
    with pytest.raises(Unavailable, match="has not been updated yet"):
        compose(ended.system.runs, "RunArchived", name, ended.clock(), {"run": name})
    monkeypatch.setattr(ended.runs, "update", update)
    ended.settle()
    assert_whole(ended)
    notice = compose(ended.system.runs, "RunArchived", name, ended.clock(), {"run": name})
    assert notice is not None
    assert "completed" in notice.title


def test_runs_that_a_look_finds_over_are_archived_by_messages(ended: World) -> None:
    """A handler that checks many runs copies nothing, and sends messages instead."""
    ended.queues.messages.pop("job-events")
    ended.clock.advance(600)
    ended.reconcile()
    while ended.queues.visible("checks"):
        ended.handle("checks")
    assert (ended.only_run().progress.state, waiting(ended)) == (RunState.COMPLETED, 1)
    ended.run_until_idle()
    assert_whole(ended)


def test_a_run_that_goes_on_is_not_archived(ended: World) -> None:
    """Only a step that ends a run archives it."""
    run: Run = changed(ended.only_run(), state=RunState.RUNNING)
    assert archive.archive_at_once(ended.system, run) == run
