"""A removal deletes only what existed when the removal was requested, whatever is uploaded before it is carried
out."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from shared.drops.model import Drop, DropState
from shared.jobs.route import Retention
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Changed, Conflict
from shared.kernel.storage import Place
from shared.removals import reach, retention
from shared.removals.model import RemovalKind
from shared.removals.remove import RemovalRequest, clear, remove_drop, remove_run, send_again
from shared.runs.intake import retry_and_continue
from shared.runs.messages import SubmitRun
from shared.runs.model import Run
from shared.runs.progress import submit
from tests.fakes.parts import changed
from tests.fakes.world import ROUTE, World, trainers_folder

KEY = DropKey("mnist", "a")
RULES = Retention(checkpoints=7, copies=30, drops=90)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path), [replace(ROUTE, retention=RULES)])


def trained(world: World, name: str = "a") -> Run:
    """Return a world with a drop whose run is completed and archived."""
    known = set(world.runs.rows)
    upload(world, "1.bin", "2.bin", "_SUCCESS", name=name)
    (run,) = set(world.runs.rows) - known
    world.job_goes(run, "Completed")
    world.deliver_all()
    world.run_until_idle()
    return world.runs.get(run).value


def upload(world: World, *files: str, data: bytes = b"x", name: str = "a", but: str = "") -> None:
    """Upload files into the drop, and handle all messages except those of one queue."""
    for file in files:
        world.upload(f"mnist/{name}/{file}", b"" if file == "_SUCCESS" else data)
    world.deliver_all()
    queues = [queue for queue in ("drop-events", "submissions", "background") if queue != but]
    while any(world.handle(queue) for queue in queues):
        pass


def later(world: World, seconds: float) -> None:
    """Let time pass second by second, and handle all messages."""
    for _ in range(int(seconds)):
        world.clock.advance(1)
        world.run_until_idle()


def left(world: World, container: str, prefix: str = "") -> list[str]:
    return [blob.name for blob in world.blobs.list(Place(container, prefix))]


def drop(world: World) -> Drop:
    stored = world.drops.get(KEY)
    assert stored is not None
    return stored.value


def test_the_next_generation_stays_and_is_sealed_after_the_removal(world: World) -> None:
    """An upload between a removal's request and its message waits for the removal, and is then sealed with its
    files."""
    first = trained(world)
    world.clock.advance(60)
    remove_drop(world.system, world.removals, KEY, RemovalRequest())
    upload(world, "3.bin", "_SUCCESS", data=b"new", but="background")
    later_drop = drop(world)
    assert (later_drop.state, later_drop.generation) == (DropState.OPEN, 1), "the removal is not carried out yet"
    later(world, 10)
    assert left(world, "drops") == ["mnist/a/3.bin", "mnist/a/_SUCCESS"]
    assert (drop(world).state, drop(world).generation, drop(world).removed_at) == (DropState.SEALED, 2, None)
    assert drop(world).run != first.name
    assert drop(world).blobs == 2, "files that were to be removed are no part of the next generation"
    assert [removal.done_at is not None for removal in world.removals.newest()] == [True]


def test_the_same_files_uploaded_again_stay(world: World) -> None:
    """The same content, uploaded again before the removal is carried out, has other etags and is not deleted."""
    trained(world)
    world.clock.advance(60)
    remove_drop(world.system, world.removals, KEY, RemovalRequest())
    upload(world, "1.bin", "2.bin", "_SUCCESS", but="background")
    later(world, 10)
    assert left(world, "drops") == ["mnist/a/1.bin", "mnist/a/2.bin", "mnist/a/_SUCCESS"]
    assert drop(world).state is DropState.SEALED


def test_what_was_uploaded_again_before_the_request_goes(world: World) -> None:
    """A drop that closed again with the same content is removed, although its generation's list has older etags."""
    trained(world)
    world.clock.advance(60)
    upload(world, "1.bin", "2.bin", "_SUCCESS")
    later(world, 60)
    assert drop(world).generation == 1
    remove_drop(world.system, world.removals, KEY, RemovalRequest())
    world.run_until_idle()
    assert left(world, "drops") == []
    assert world.drops.get(KEY) is None


def test_a_drop_is_not_held_up_by_a_removal_that_was_never_recorded(world: World) -> None:
    """The request may die between the mark on the drop and the record. A later upload removes the mark."""
    trained(world)
    stored = world.drops.get(KEY)
    assert stored is not None
    world.drops.replace(replace(stored.value, removed_at=world.clock()), stored)
    world.clock.advance(10)
    upload(world, "3.bin", "_SUCCESS", data=b"new")
    later(world, 90)
    assert (drop(world).state, drop(world).generation, drop(world).removed_at) == (DropState.SEALED, 2, None)
    assert "mnist/a/1.bin" in left(world, "drops")


def test_a_drop_sends_for_the_removal_that_it_waits_for(world: World) -> None:
    """If the removal's message is lost, the check of the waiting drop sends another message."""
    trained(world)
    world.clock.advance(60)
    remove_drop(world.system, world.removals, KEY, RemovalRequest())
    world.queues.messages["background"].clear()
    upload(world, "3.bin", "_SUCCESS", data=b"new")
    later(world, 90)
    assert left(world, "drops") == ["mnist/a/3.bin", "mnist/a/_SUCCESS"]
    assert drop(world).generation == 2


def test_a_removal_that_lost_its_mark_deletes_nothing(world: World) -> None:
    """The removal of a drop that was opened, removed and uploaded again finds another mark, or none."""
    trained(world)
    world.clock.advance(60)
    asked = remove_drop(world.system, world.removals, KEY, RemovalRequest())
    world.run_until_idle()
    upload(world, "1.bin", "_SUCCESS")
    world.removals.put(asked)
    world.clock.advance(3601)
    send_again(world.system.queues, world.system.clock, world.removals)
    world.run_until_idle()
    assert left(world, "drops") == ["mnist/a/1.bin", "mnist/a/_SUCCESS"]
    assert world.removals.newest()[0].done_at


def test_a_removal_of_the_previous_version_reaches_no_new_files(world: World) -> None:
    """A record without a reach deletes what its mark and the time of its request allow."""
    trained(world)
    world.clock.advance(60)
    asked = remove_drop(world.system, world.removals, KEY, RemovalRequest())
    world.removals.put(replace(asked, reach=None))
    world.clock.advance(10)
    upload(world, "1.bin", "_SUCCESS", data=b"new", but="background")
    later(world, 10)
    assert left(world, "drops") == ["mnist/a/1.bin", "mnist/a/_SUCCESS"]


def test_copies_that_a_run_brings_back_meanwhile_stay(world: World) -> None:
    """A run starts from the model between a retention request and its message: the restored files stay."""
    first, other = trained(world), trained(world, "b")
    world.runs.update(old := world.runs.get(other.name), changed(old.value, from_run=first.name))
    world.clock.advance(31 * 86400)
    asked = {going.what for going in retention.enforce(world.system, world.removals) if going.name == first.name}
    assert RemovalKind.COPIES in asked
    again = retry_and_continue.retry_run(world.system, other.name)
    submit.submit_run(world.system, SubmitRun(again.name))
    world.run_until_idle()
    model = f"trainyard/{first.name}/models/"
    assert left(world, "azureml-blobstore", model) == [f"{model}model.pt"]
    assert world.runs.get(first.name).value.removed.cleared == (str(RemovalKind.CHECKPOINTS),)


def test_copies_of_a_run_in_use_keep_no_mark(world: World) -> None:
    """A refused removal of copies leaves the run as it was."""
    first, other = trained(world), trained(world, "b")
    old = world.runs.get(other.name)
    world.runs.update(old, changed(old.value, from_run=first.name))
    again = retry_and_continue.retry_run(world.system, other.name)
    with pytest.raises(Conflict, match=again.name):
        clear(world.system, world.removals, RemovalKind.COPIES, first.name, RemovalRequest())
    assert world.runs.get(first.name).value.removed.cleared == ()
    assert world.removals.newest() == []


def test_checkpoints_of_a_run_that_goes_on_stay(world: World) -> None:
    """A removal deletes the paths of its request only, and is refused while a run continues from the checkpoints."""
    first = trained(world)
    following = retry_and_continue.continue_run(world.system, first.name, {"epochs": 3})
    with pytest.raises(Conflict, match=following.name):
        clear(world.system, world.removals, RemovalKind.CHECKPOINTS, first.name, RemovalRequest())


def test_what_a_late_job_writes_after_the_request_stays(world: World) -> None:
    """A run's removal deletes nothing that was written well after its request."""
    run = trained(world)
    remove_run(world.system, world.removals, run.name, RemovalRequest())
    world.clock.advance(30)
    world.blobs.put("azureml-blobstore", f"trainyard/{run.name}/checkpoints/9/state", b"late")
    world.run_until_idle()
    assert left(world, "azureml-blobstore") == [f"trainyard/{run.name}/checkpoints/9/state"]


def test_only_the_reach_lists_blobs() -> None:
    """No other module of removals lists blobs to delete them, and every removal is created with its reach."""
    folder = Path(reach.__file__).parent
    others = {path.name: path.read_text() for path in folder.glob("*.py") if path.name not in ("reach.py", "usage.py")}
    assert [name for name, text in others.items() if "blobs.list(" in text] == []
    with pytest.raises(TypeError, match="reach"):
        RemovalRequest().removal(RemovalKind.DROP, "mnist/a", timedelta())  # type: ignore[call-arg,arg-type]


def test_two_requests_of_one_drop_are_one_removal(world: World) -> None:
    """A repeated request returns the waiting removal, and sends its message again."""
    trained(world)
    asked = remove_drop(world.system, world.removals, KEY, RemovalRequest())
    world.clock.advance(1)
    assert remove_drop(world.system, world.removals, KEY, RemovalRequest()) == asked
    sent = [message for message in world.queues.messages["background"] if "CarryOutRemoval" in message.text]
    assert len(sent) == 2


def test_an_upload_during_the_request_wins(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upload that opens the drop before the mark is written ends the request, and nothing is removed."""
    trained(world)
    world.clock.advance(60)
    needing = world.system.named.needing_drop

    def opens(key: DropKey) -> list[str]:
        upload(world, "3.bin")
        return needing(key)

    monkeypatch.setattr(type(world.system.named), "needing_drop", lambda _, key: opens(key))
    with pytest.raises(Changed):
        remove_drop(world.system, world.removals, KEY, RemovalRequest())
    assert world.removals.newest() == []
