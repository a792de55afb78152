"""A removal deletes everything that was requested and nothing that is in use, and records who asked."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from shared.api import queries
from shared.api.requests import RunListQuery
from shared.drops import retrain
from shared.jobs.route import Retention
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Conflict, Impossible, NotFound
from shared.kernel.person import Person
from shared.kernel.storage import Place
from shared.kernel.versioned import Stored
from shared.removals import retention, usage
from shared.removals.model import RemovalKind
from shared.removals.remove import RemovalRequest, remove_drop, remove_run, send_again
from shared.runs.data import kept_listing
from shared.runs.intake import create, retry_and_continue
from shared.runs.intake.request import RunRequest
from shared.runs.messages import SubmitRun
from shared.runs.model import Run, RunState
from shared.runs.progress import submit
from shared.runs.results import artifacts
from tests.fakes.crashing import Crash
from tests.fakes.features import DATA_FILES
from tests.fakes.parts import changed
from tests.fakes.world import ROUTE, World, trainers_folder

KEY = DropKey("mnist", "a")
RULES = Retention(checkpoints=7, copies=30, drops=90)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path), [replace(ROUTE, retention=RULES)])


def trained(world: World, raw: str = "Completed", name: str = "a") -> Run:
    """Return a drop's run, ended in this state and archived."""
    known = set(world.runs.rows)
    for file in ("1.bin", "_SUCCESS"):
        world.upload(f"mnist/{name}/{file}")
    world.deliver_all()
    world.run_until_idle()
    (run,) = set(world.runs.rows) - known
    world.job_goes(run, raw)
    world.deliver_all()
    world.run_until_idle()
    return world.runs.get(run).value


def left(world: World, container: str, prefix: str = "") -> list[str]:
    return [blob.name for blob in world.blobs.list(Place(container, prefix))]


def test_a_removed_run_leaves_its_record(world: World) -> None:
    """The archive, the checkpoints and all job output are deleted; other runs' files stay; the record says who and
    when."""
    run, other = trained(world), trained(world, name="b")
    world.blobs.put("azureml", f"ExperimentRun/dcid.{run.name}/model/MLmodel", b"saved through MLflow")
    asked = remove_run(world.system, world.removals, run.name, RemovalRequest(Person("ada", "0a1b")))
    assert remove_run(world.system, world.removals, run.name, RemovalRequest(Person("eve"))) == asked
    world.run_until_idle()

    (removal,) = world.removals.newest()
    assert (removal.by, removal.by_id, removal.what, removal.done_at is not None) == (
        "ada",
        "0a1b",
        RemovalKind.RUN,
        True,
    )
    assert removal.files == 9
    assert left(world, "output", f"digits/{run.name}/") == [f"digits/{run.name}/{name}" for name in DATA_FILES]
    for container in ("output", "azureml-blobstore", "azureml"):
        names = left(world, container)
        assert [name for name in names if run.name in name and not name.endswith(tuple(DATA_FILES))] == []
        assert [name for name in names if other.name in name]
    kept = world.runs.get(run.name).value
    assert (kept.removed.by, kept.removed.by_id, kept.progress.state) == ("ada", "0a1b", run.progress.state)
    assert [row["run"] for row in queries.runs(world.system, RunListQuery())["runs"]] == [other.name]
    with pytest.raises(NotFound, match="by ada"):
        artifacts.artifacts(world.system, run.name)


def test_a_removed_drop_is_gone_with_its_generations(world: World) -> None:
    """The drop's files, record and generations are deleted; the run's file list is deleted once the run is removed
    too."""
    run = trained(world)
    remove_drop(world.system, world.removals, KEY, RemovalRequest(Person("ada", "0a1b")))
    world.run_until_idle()
    assert left(world, "drops") == []
    assert (world.drops.get(KEY), world.drops.generations(KEY)) == (None, [])
    assert kept_listing(world.system.blobs, f"digits/{run.name}") is not None, "the archive's manifest names it"
    world.clock.advance(10)
    for file in ("1.bin", "_SUCCESS"):
        world.upload(f"mnist/a/{file}")
    world.deliver_all()
    world.run_until_idle()
    again = world.drops.get(KEY)
    assert again is not None
    assert (again.value.generation, again.value.run) == (1, run.name), "the same content has the run that it had"


def test_what_is_in_use_is_refused(world: World) -> None:
    """A live run, an open drop, and a drop that a run trains on can't be removed."""
    world.upload("mnist/a/1.bin")
    world.deliver_all()
    world.run_until_idle()
    with pytest.raises(Conflict, match="open"):
        remove_drop(world.system, world.removals, KEY, RemovalRequest())
    world.upload("mnist/a/_SUCCESS")
    world.deliver_all()
    world.run_until_idle()
    run = world.only_run().name
    with pytest.raises(Conflict, match="Cancel it"):
        remove_run(world.system, world.removals, run, RemovalRequest())
    with pytest.raises(Conflict, match=run):
        remove_drop(world.system, world.removals, KEY, RemovalRequest())
    assert world.removals.newest() == []


def test_what_is_uploaded_meanwhile_stays(world: World) -> None:
    """An upload between the request and the deletion is not part of the removal."""
    trained(world)
    remove_drop(world.system, world.removals, KEY, RemovalRequest())
    world.clock.advance(1)
    world.upload("mnist/a/2.bin")
    world.deliver_all()
    world.run_until_idle()
    assert left(world, "drops") == ["mnist/a/2.bin"]


def test_what_is_uploaded_in_the_same_second_stays(world: World) -> None:
    """A removal deletes the content with which the drop closed, by etag. Uploads in the second of the request, or
    over an old name, stay."""
    trained(world)
    remove_drop(world.system, world.removals, KEY, RemovalRequest())
    world.upload("mnist/a/1.bin", b"new")
    world.upload("mnist/a/2.bin")
    world.handle("background")
    assert left(world, "drops") == ["mnist/a/1.bin", "mnist/a/2.bin"]


def test_a_drop_that_is_being_removed_is_not_trained_again(world: World) -> None:
    """Between the request and the deletion nothing can be trained; an upload opens the drop as usual."""
    trained(world)
    remove_drop(world.system, world.removals, KEY, RemovalRequest())
    with pytest.raises(Conflict, match="being removed"):
        retrain.train_again(world.system, KEY)


@pytest.mark.parametrize("path", ["mnist/a", "mnist/a/1.bin", "mnist"])
def test_a_drop_that_a_live_run_names_by_its_path_stays(world: World, path: str) -> None:
    """A run whose job names the drop, one of its files or its whole route protects the drop, although no drop
    started the run."""
    done = trained(world)
    job = {"command": "true", "compute": "azureml:cpu-cluster", "environment": "azureml:e:1"}
    job["inputs"] = {"data": {"type": "uri_folder", "path": f"azureml://datastores/drops/paths/{path}"}}  # type: ignore[assignment]
    reader = create.create_run(world.system, RunRequest(job=job))
    assert reader.asked.drop == ""
    with pytest.raises(Conflict, match=f"Run {reader.name} trains on drop mnist/a"):
        remove_drop(world.system, world.removals, KEY, RemovalRequest())
    world.runs.update(old := world.runs.get(reader.name), changed(old.value, state=RunState.FAILED))
    remove_drop(world.system, world.removals, KEY, RemovalRequest())
    assert done.asked.drop == str(KEY)


@pytest.mark.parametrize("word", ["before", "half", "after"])
def test_a_removal_that_dies_is_finished(tmp_path: Path, word: str) -> None:
    """Wherever the handler dies, its message is delivered again and the result is the same."""
    for at in range(1, 30):
        world = World(trainers_folder(tmp_path))
        run = trained(world)
        remove_run(world.system, world.removals, run.name, RemovalRequest(Person("ada", "0a1b")))
        schedule = iter([""] * (at - 1) + [word])
        for _ in range(4):
            world.handle("background", crashes=schedule)
            world.clock.advance(6)
        assert left(world, "azureml-blobstore") == [], f"call {at}"
        assert world.removals.newest()[0].done_at, f"call {at}"


def test_a_removal_whose_message_was_lost_is_sent_again(world: World) -> None:
    """A repeated request, or the daily timer an hour later, sends the message of an unfinished removal again."""
    for again in (False, True):
        run = trained(world, name="b" if again else "a")
        remove_run(world.system, world.removals, run.name, RemovalRequest(Person("ada")))
        world.queues.messages["background"].clear()
        send_again(world.system.queues, world.system.clock, world.removals)
        assert world.queues.messages["background"] == [], "its message may be on its way"
        if again:
            remove_run(world.system, world.removals, run.name, RemovalRequest(Person("eve")))
        else:
            world.clock.advance(3601)
            send_again(world.system.queues, world.system.clock, world.removals)
        world.run_until_idle()
        removal = world.removals.newest()[0]
        assert (removal.name, removal.by, removal.done_at is not None) == (run.name, "ada", True)
    world.clock.advance(3601)
    send_again(world.system.queues, world.system.clock, world.removals)
    assert world.queues.messages["background"] == []


def test_retention_reads_no_run_on_its_own_that_is_not_due(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that are not due, already removed, or protected are read only as part of a list's page."""
    runs = [trained(world, name=name) for name in ("a", "b", "c")]
    asked: list[str] = []
    get = world.runs.get

    def noted(name: str) -> Stored[Run]:
        asked.append(name)
        return get(name)

    monkeypatch.setattr(world.runs, "get", noted)
    assert retention.enforce(world.system, world.removals) == []
    assert asked == []
    world.clock.advance(8 * 86400)
    assert len(retention.enforce(world.system, world.removals)) == len(runs)
    world.run_until_idle()
    asked.clear()
    assert retention.enforce(world.system, world.removals) == []
    assert asked == []
    remove_drop(world.system, world.removals, KEY, RemovalRequest())
    assert asked == []


def test_retention_keeps_what_a_kept_model_came_from(world: World) -> None:
    """Checkpoints and copies are deleted after their days; data only if its runs left no model, or the model is
    gone."""
    good, bad = trained(world), trained(world, "Failed", "b")
    plan = {(going.what, going.name) for going in retention.plan(world.system)}
    assert plan == {(RemovalKind.CHECKPOINTS, good.name)}
    assert retention.enforce(world.system, world.removals) == []
    world.clock.advance(8 * 86400)
    assert [going.name for going in retention.enforce(world.system, world.removals)] == [good.name]
    world.run_until_idle()
    assert retention.enforce(world.system, world.removals) == []
    names = left(world, "azureml-blobstore")
    assert f"trainyard/{good.name}/checkpoints/1/state" not in names
    assert f"trainyard/{bad.name}/checkpoints/1/state" in names
    world.clock.advance(100 * 86400)
    retention.enforce(world.system, world.removals)
    world.run_until_idle()
    assert left(world, "drops") == ["mnist/a/1.bin", "mnist/a/_SUCCESS"]
    assert left(world, "output", f"digits/{good.name}/models/") == [f"digits/{good.name}/models/model.pt"]
    remove_run(world.system, world.removals, good.name, RemovalRequest())
    world.run_until_idle()
    retention.enforce(world.system, world.removals)
    world.run_until_idle()
    assert left(world, "drops") == []
    assert {removal.by for removal in world.removals.newest()} == {"", "retention"}


def gone_on(world: World, run: Run, epochs: int) -> Run:
    """Return a run that continued from this one, and ended."""
    following = retry_and_continue.continue_run(world.system, run.name, {"epochs": epochs})
    world.run_until_idle()
    world.job_goes(following.name, "Completed")
    world.deliver_all()
    world.run_until_idle()
    return world.runs.get(following.name).value


def test_what_runs_share_stays_for_those_that_are_kept(world: World) -> None:
    """Checkpoints of runs that continue one another are deleted with the last kept run, whichever run is removed
    first."""
    first = trained(world)
    second = gone_on(world, first, 3)
    shared = f"trainyard/{first.name}/checkpoints/1/state"
    for run in (first, second):
        assert shared in left(world, "azureml-blobstore")
        remove_run(world.system, world.removals, run.name, RemovalRequest())
        world.run_until_idle()
        assert left(world, "output", f"digits/{run.name}/models/") == []
    assert shared not in left(world, "azureml-blobstore")


def test_retention_lets_the_last_run_decide(world: World) -> None:
    """A completed run's checkpoints stay while a run continues from them, and until the days of the last one are
    over."""
    first = trained(world)
    world.clock.advance(6 * 86400)
    second = gone_on(world, first, 3)
    third = retry_and_continue.continue_run(world.system, second.name, {"epochs": 5})
    world.clock.advance(30 * 86400)

    def cleared() -> list[str]:
        found = retention.enforce(world.system, world.removals)
        world.run_until_idle()
        return [going.name for going in found if going.what is RemovalKind.CHECKPOINTS]

    shared = f"trainyard/{first.name}/checkpoints/1/state"
    assert cleared() == []
    world.job_goes(third.name, "Completed")
    world.deliver_all()
    world.run_until_idle()
    assert cleared() == []
    assert shared in left(world, "azureml-blobstore")
    world.clock.advance(8 * 86400)
    assert cleared() == [third.name]
    assert shared not in left(world, "azureml-blobstore")


def test_a_model_that_a_run_begins_with_stays(world: World) -> None:
    """Retention keeps a model while a run that starts from it has not ended. A later run finds the model in the
    archive: the model is restored before the job is sent, however often that breaks off, and deleted again
    afterwards."""
    first, other = trained(world), trained(world, name="b")
    world.runs.update(
        old := world.runs.get(other.name), changed(old.value, from_run=first.name, state=RunState.RUNNING)
    )
    world.clock.advance(31 * 86400)

    def copies() -> set[str]:
        found = retention.enforce(world.system, world.removals)
        world.run_until_idle()
        return {going.name for going in found if going.what is RemovalKind.COPIES}

    model = f"trainyard/{first.name}/models/"
    assert first.name not in copies()
    world.runs.update(old := world.runs.get(other.name), changed(old.value, state=RunState.COMPLETED))
    assert first.name in copies()
    assert left(world, "azureml-blobstore", model) == []
    again = retry_and_continue.retry_run(world.system, other.name)
    for calls in range(40):
        with suppress(Crash):
            submit.submit_run(world.crashing([*["pass"] * calls, "half"]), SubmitRun(again.name))
            break
    assert world.runs.get(again.name).value.jobs.job == again.name
    assert (
        [name.rpartition("/")[2] for name in left(world, "azureml-blobstore", model)]
        == [name.rpartition("/")[2] for name in left(world, "output", f"digits/{first.name}/models/")]
        != []
    )
    assert first.name not in copies()
    world.job_goes(again.name, "Completed")
    world.deliver_all()
    world.run_until_idle()
    assert first.name in copies()
    remove_run(world.system, world.removals, first.name, RemovalRequest())
    world.run_until_idle()
    with pytest.raises(Impossible, match="it was removed"):
        retry_and_continue.retry_run(world.system, again.name)


def test_the_plan_is_told_a_week_before(world: World) -> None:
    """The plan lists, with its time, everything that is due within a week, before anything is deleted."""
    run = trained(world)
    world.clock.advance(85 * 86400)
    remove_run(world.system, world.removals, run.name, RemovalRequest())
    world.run_until_idle()
    (going,) = retention.plan(world.system)
    drop = world.drops.get(KEY)
    assert drop is not None
    assert drop.value.sealed_at is not None
    assert (going.what, going.name, going.at) == (
        RemovalKind.DROP,
        "mnist/a",
        drop.value.sealed_at + timedelta(days=90),
    )
    assert left(world, "drops") != []


def test_usage_counts_every_byte_once(world: World) -> None:
    """The kinds add up to all existing blobs, and the holders add up to the kinds."""
    trained(world)
    found = usage.usage(world.system.jobs, world.system.blobs)
    every = [c.blob.size for container in world.blobs.containers.values() for c in container.values()]
    assert found.kinds.total() == sum(every) == found.holders.total()
    assert found.files.total() == len(every)
    assert set(found.kinds) == {"drops", "archives", "lists", "checkpoints", "copies", "logs"}
