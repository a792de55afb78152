"""Work of any size in a queue's message ends well before functionTimeout, and the next message continues it."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from shared.events.announce import queue_notice
from shared.events.messages import Announce
from shared.jobs.route_model import RouteModel
from shared.kernel.drop_key import DropKey
from shared.kernel.index_settings import ROOT
from shared.kernel.person import NOBODY
from shared.kernel.storage import Blob, Place
from shared.messages.declared import QUEUES
from shared.notices.model import Channel, NoticeKind, Subscription
from shared.notices.ports import Post
from shared.removals.model import RemovalKind
from shared.removals.remove import RemovalRequest, clear, remove_run
from shared.runs.content import survey
from shared.runs.intake.create import create_run
from shared.runs.intake.request import RunRequest
from shared.runs.messages import CheckData, CheckHour
from shared.runs.model import Run
from shared.schedules.messages import CheckSchedule
from shared.schedules.model import CatchUp, Overlap, Schedule
from tests.fakes.storage import Clock
from tests.fakes.world import ROUTE, World, trainers_folder

KEY = DropKey("mnist", "a")
HOURS, MINUTES, SECONDS = map(int, json.loads((ROOT / "host.json").read_text())["functionTimeout"].split(":"))
LIMIT = timedelta(hours=HOURS, minutes=MINUTES, seconds=SECONDS) / 2
FILES = 600
RUNS = 200
MANY = 100  # blobs after which a listing may continue in another message
CALL = 0.2  # seconds per call
ITEM = 0.3  # seconds per item that a call yields, which add up to the listing of a very large folder
SLOW = (
    "drops",
    "runs",
    "queues",
    "blobs",
    "jobs",
    "clusters",
    "decisions",
    "samples",
    "leases",
    "books",
    "events",
    "schedules",
    "removals",
)


class Slow:
    """A port whose calls take time: each copy a second, each removal a third of a second."""

    def __init__(self, port: Any, clock: Clock) -> None:
        self._port, self._clock = port, clock

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        return self._slowed(method) if callable(method) else method

    def _slowed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._clock.advance(CALL)
            result = method(*args, **kwargs)
            return self._items(result) if inspect.isgenerator(result) else result

        return call

    def _items(self, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            self._clock.advance(ITEM)
            yield item

    def copy(self, copies: Any, *rest: Any) -> Iterator[Any]:
        made = len(self._port.copied)
        for blob in self._port.copy(copies, *rest):
            self._clock.advance(len(self._port.copied) - made)  # an existing copy takes no time
            made = len(self._port.copied)
            yield blob

    def remove_listed(self, container: str, blobs: Any) -> None:
        going = list(blobs)
        self._clock.advance(0.3 * len(going))
        self._port.remove_listed(container, going)


def slow(world: World) -> None:
    """Make every port slow from now on."""
    ports: dict[str, Any] = {name: Slow(getattr(world.system, name), world.clock) for name in SLOW}
    world.system = replace(world.system, **ports)
    object.__setattr__(world, "crashing", lambda _: world.system)
    notices: Any = Slow(world.notices, world.clock)
    world.system = replace(world.system, post=Post(notices, world.sender))


def ended(world: World, files: int) -> Run:
    """Return a just completed run whose job wrote this many files; its last event is in its queue."""
    world.complete("1.bin")
    run = world.only_run()
    world.job_goes(run.name, "Running")
    world.deliver_all()
    world.run_until_idle()
    for number in range(files):
        world.blobs.put("azureml-blobstore", f"trainyard/{run.name}/models/{number:04}.pt", b"x")
    world.job_goes(run.name, "Completed")
    world.deliver_all()
    return run


Done = Callable[[], object]


def an_archive_of_many_files(world: World) -> Done:
    ended(world, FILES)
    slow(world)
    return lambda: world.only_run().archive.at


def a_run_with_as_many_files_as_its_last_step_copies(world: World) -> Done:
    ended(world, 90)
    slow(world)
    return lambda: world.only_run().archive.at


def a_removal_of_many_files(world: World) -> Done:
    run = ended(world, FILES)
    world.run_until_idle()
    slow(world)
    asked = remove_run(world.system, world.removals, run.name, RemovalRequest(NOBODY))
    return lambda: world.removals.get(asked.what, asked.name, asked.asked_at).done_at  # type: ignore[union-attr]


def a_drop_of_many_files(world: World) -> Done:
    """The drop is listed before it is sealed, and once more afterwards."""
    world.blobs.page = MANY // 2
    for number in range(2 * FILES):
        world.blobs.put("drops", f"mnist/a/{number:04}.bin", b"x")
    world.upload("mnist/a/_SUCCESS")
    world.deliver_all()
    slow(world)
    return lambda: world.runs.rows and not world.queues.messages["drop-events"]


def the_same_looked_at_by_its_event(world: World) -> Done:
    world.goes_on = True
    return a_drop_of_many_files(world)


def a_drop_whose_data_are_compared(world: World) -> Done:
    for number in range(2 * FILES):
        world.blobs.put("drops", f"mnist/a/{number:04}.bin", b"x")
    world.complete("1.bin")
    run = world.only_run()
    world.queues.send(CheckData(run.name))
    slow(world)
    return lambda: "not known" in world.only_run().data.note


def an_hour_of_many_runs(world: World) -> Done:
    """All runs of the hour ended without an event."""
    world.blobs.put("drops", "mnist/a/1.bin")
    for number in range(RUNS):
        create_run(world.system, RunRequest(template="mnist", data="drops/mnist/a"), f"key{number}")
    world.run_until_idle()
    for job in list(world.jobs.jobs):
        world.job_goes(job, "Failed")
    world.in_flight.clear()
    world.queues.send(CheckHour(world.runs.hours()[0]))
    slow(world)
    return lambda: not world.runs.live()


def a_model_that_is_brought_back(world: World) -> Done:
    """The job's output is deleted, and the run's archive still has it."""
    template = replace(ROUTE.template, tags={"trainyard.from_model": "--from-model"})
    world.system = replace(world.system, routes={"mnist": replace(ROUTE, template=template)})
    run = ended(world, FILES)
    world.run_until_idle()
    clear(world.system, world.removals, RemovalKind.COPIES, run.name, RemovalRequest(NOBODY))
    world.run_until_idle()
    wish = RunRequest(template="mnist", data="drops/mnist/a", from_run=run.name)
    second = create_run(world.system, wish, "second").name
    slow(world)
    return lambda: world.runs.get(second).value.jobs.job


def an_event_for_many_subscribers(world: World) -> Done:
    for number in range(FILES):
        name = f"s{number:04}"
        kinds = (NoticeKind.POISON,)
        world.notices.add(Subscription(name, kinds, Channel.WEBHOOK, "https://example.com/x", world.clock()))
    queue_notice(world.system, "MessagePoisoned", "archives/0", {"queue": "archives"})
    slow(world)
    return lambda: len(world.notices.rows) == FILES


def a_schedule_that_missed_much(world: World) -> Done:
    world.blobs.put("drops", "mnist/a/1.bin")
    request, now = {"template": "mnist", "data": "drops/mnist/a"}, world.clock()
    rules: dict[str, Any] = {"catch_up": CatchUp.ALL, "overlap": Overlap.ALLOW}
    behind = now - timedelta(minutes=FILES)
    world.schedules.add(Schedule("often", request, behind, behind, "* * * * *", **rules))
    world.queues.send(CheckSchedule("often"))
    slow(world)
    return lambda: len(world.runs.rows) >= FILES


def a_lifecycle_event(world: World) -> Done:
    world.queues.send(Announce("RunSubmitted", "mnist-1", world.clock(), {}))
    slow(world)
    return lambda: world.events.published


def a_champion_of_much_data(world: World) -> Done:
    """The champion's model and its data have many files, and each file is hashed."""
    world.system = replace(world.system, routes={"mnist": replace(ROUTE, model=RouteModel("churn", "accuracy", 0.0))})
    for number in range(FILES // 2):
        world.blobs.put("drops", f"mnist/a/{number:04}.bin", b"x")
    run = ended(world, 0)
    world.blobs.remove("azureml-blobstore", [f"trainyard/{run.name}/models/model.pt"])
    for number in range(90):
        world.blobs.put("azureml-blobstore", f"trainyard/{run.name}/models/{number:04}.json", b"{}")
    row = json.dumps({"step": 1, "accuracy": 1.0}).encode()
    world.blobs.put("azureml-blobstore", f"trainyard/{run.name}/metrics/metrics.jsonl", row)
    slow(world)
    return lambda: world.models.get("churn")


SCENARIOS: dict[str, tuple[Callable[[World], Done], ...]] = {
    "drop-events": (a_drop_of_many_files, the_same_looked_at_by_its_event),
    "submissions": (a_model_that_is_brought_back,),
    "job-events": (a_run_with_as_many_files_as_its_last_step_copies,),
    "checks": (
        an_hour_of_many_runs,
        a_drop_whose_data_are_compared,
        a_run_with_as_many_files_as_its_last_step_copies,
        a_schedule_that_missed_much,
        a_champion_of_much_data,
    ),
    "background": (
        an_archive_of_many_files,
        a_lifecycle_event,
        an_event_for_many_subscribers,
        a_removal_of_many_files,
    ),
}


def test_every_queue_has_its_longest_work() -> None:
    """A new queue needs a scenario here."""
    assert SCENARIOS.keys() == {*QUEUES}


@pytest.mark.parametrize("scenario", list(dict.fromkeys(chain(*SCENARIOS.values()))))
def test_no_message_takes_long(
    scenario: Callable[[World], Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each message of a queue ends within half of functionTimeout, and the work still finishes."""
    monkeypatch.setattr("shared.runs.content.MANY", MANY)
    monkeypatch.setattr(
        "shared.data_checks.at_sealing.MOST_LISTED", MANY
    )  # as in the app: at most the number of one listing
    world = World(trainers_folder(tmp_path))
    done = scenario(world)
    handled, longest = set[str](), dict[str, timedelta]()
    for _ in range(1000):
        for queue in QUEUES:
            began: datetime = world.clock()
            if world.handle(queue):
                handled.add(queue)
                longest[queue] = max(longest.get(queue, timedelta(0)), world.clock() - began)
        if done():
            break
        world.clock.advance(1)
    assert done()
    assert max(longest.values()) < LIMIT, longest
    assert {queue for queue, some in SCENARIOS.items() if scenario in some} <= handled


def test_an_archive_that_takes_several_messages_is_whole(tmp_path: Path) -> None:
    """The manifest has all files once, and no failure is recorded in between."""
    world = World(trainers_folder(tmp_path))
    done, messages = an_archive_of_many_files(world), 0
    while not done():
        messages += world.handle("background")
        world.handle("job-events")
        world.clock.advance(1)
    names = [file["name"] for file in world.manifest(world.only_run())["files"]]
    assert messages >= 3
    assert len(names) == len(set(names))
    assert {f"models/{number:04}.pt" for number in range(FILES)} <= set(names)
    assert world.only_run().archiving.error == ""


def test_a_removal_that_takes_several_messages_counts_all(tmp_path: Path) -> None:
    """The record counts the blobs that earlier messages removed, and is done when everything is removed."""
    world = World(trainers_folder(tmp_path))
    done, messages = a_removal_of_many_files(world), 0
    while not done():
        messages += world.handle("background")
        world.clock.advance(1)
    (removal,) = world.removals.newest()
    assert messages >= 2
    assert removal.files >= 2 * FILES
    assert world.archived(world.only_run()) <= {"data.json.gz", "data.card.json"}  # both stay as long as the drop


def test_a_drop_that_takes_several_messages_makes_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The drop's fingerprint and counts are those of a single pass, and no file is omitted or read twice; uploads
    to another drop change nothing. A drop with more files than allowed is refused."""
    monkeypatch.setattr("shared.runs.content.MANY", MANY)
    monkeypatch.setattr(
        "shared.data_checks.at_sealing.MOST_LISTED", MANY
    )  # as in the app: at most the number of one listing
    world, messages = World(trainers_folder(tmp_path)), 0
    done = a_drop_of_many_files(world)
    whole = survey(KEY, world.blobs.list(Place("drops", KEY.prefix())))
    while not done():
        messages += world.handle("drop-events") and not world.runs.rows
        world.blobs.put("drops", f"mnist/b/{messages}.bin", b"x")
        world.clock.advance(1)
    drop = world.drops.rows[KEY].value
    assert messages >= 2
    assert (drop.fingerprint, drop.blobs, drop.bytes) == (whole.fingerprint, whole.blobs, whole.bytes)
    assert (drop.generation, len(world.runs.rows)) == (1, 1)
    monkeypatch.setattr("shared.drops.collect.MOST", MANY)
    world.upload("mnist/a/one_more.bin")
    world.upload("mnist/a/_SUCCESS")
    world.deliver_all()
    while world.handle("drop-events"):
        world.clock.advance(1)
    assert world.drops.rows[KEY].value.code == "too_many_files"


@pytest.mark.parametrize("blobs", [0, 1, MANY - 1, MANY, MANY + 1, 3 * MANY])
def test_a_marker_is_no_content_wherever_a_listing_is_cut(blobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fingerprint is the same with and without `_SUCCESS`. Up to MANY files it is the plain hash of their
    lines, as in every earlier version."""
    monkeypatch.setattr("shared.runs.content.MANY", MANY)
    monkeypatch.setattr(
        "shared.data_checks.at_sealing.MOST_LISTED", MANY
    )  # as in the app: at most the number of one listing
    files = [Blob(f"mnist/a/{number:04}", "e", number, "m") for number in range(blobs)]
    marked = survey(KEY, [Blob("mnist/a/+", "e", 1, "m"), Blob("mnist/a/_SUCCESS", "e", 0), *files])
    plain = survey(KEY, [Blob("mnist/a/+", "e", 1, "m"), *files])
    assert marked.fingerprint == plain.fingerprint
    lines = "".join(f"{blob.name}\0m\0{blob.size}\n" for blob in (Blob("mnist/a/+", "e", 1), *files))
    assert (plain.fingerprint == hashlib.sha256(lines.encode()).hexdigest()) is (blobs < MANY)
