"""Random schedules of duplicates, disorder, loss, overwrites and crashes between any two writes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from shared import system
from shared.drops.decide import survey
from shared.drops.model import DropKey, DropState
from shared.events import incoming
from shared.kernel.storage import Place
from shared.runs.model import FINAL
from tests.world import World, trainers_folder

FILES = ("mnist/a/1.bin", "mnist/a/2.bin", "mnist/a/_SUCCESS", "mnist/b/1.bin", "mnist/c.zip", "nowhere/d/1.bin")
some_index = st.integers(0, 50)


@st.composite
def crash(draw: st.DrawFn) -> list[str]:
    """No crash, or one at some port call of the handler."""
    return [""] * draw(st.integers(0, 14)) + [draw(st.sampled_from(["", "before", "half", "after"]))]


class Schedules(RuleBasedStateMachine):
    """Whatever the schedule: no content trains twice, no drop is forgotten, no archive is said complete that isn't."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.lost: list[dict[str, Any]] = []
        self.world = World(trainers_folder(Path(self.folder.name)))

    def teardown(self) -> None:
        try:
            self.nothing_is_lost()
        finally:
            self.folder.cleanup()

    @rule(name=st.sampled_from(FILES), data=st.sampled_from([b"x", b"y"]))
    def upload(self, name: str, data: bytes) -> None:
        self.world.upload(name, b"" if name.endswith("_SUCCESS") else data)

    @rule(index=some_index, keep=st.booleans())
    def deliver(self, index: int, keep: bool) -> None:
        if events := self.world.in_flight:
            self.world.deliver(events[index % len(events)])
            if not keep:
                events.pop(index % len(events))

    @rule(index=some_index)
    def lose_event(self, index: int) -> None:
        if events := self.world.in_flight:
            self.lost.append(events.pop(index % len(events)))

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def handle(self, data: st.DataObject) -> None:
        queue = data.draw(st.sampled_from(self.waiting()))
        self.world.handle(queue, data.draw(some_index), data.draw(crash()))

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def poison(self, data: st.DataObject) -> None:
        body = self.world.poison(data.draw(st.sampled_from(self.waiting())), data.draw(some_index))
        if "event" in body:
            self.lost.append(incoming.decode(body["event"].encode()))

    def waiting(self) -> list[str]:
        return [queue for queue in system.QUEUES if self.world.queues.visible(queue)]

    @rule()
    def handle_all(self) -> None:
        self.world.run_until_idle()

    @rule(seconds=st.sampled_from([1, 10, 61, 700]))
    def wait(self, seconds: int) -> None:
        self.world.clock.advance(seconds)

    @rule(raw=st.sampled_from(["Running", "Queued", "Completed", "Failed", "Canceled"]), index=some_index)
    def job_goes(self, raw: str, index: int) -> None:
        if alive := [n for n, j in self.world.jobs.jobs.items() if j.raw in ("Running", "Queued")]:
            self.world.job_goes(alive[index % len(alive)], raw)

    @rule(crashes=crash())
    def reconcile(self, crashes: list[str]) -> None:
        self.world.reconcile(crashes)

    @rule(down=st.booleans())
    def azure_ml_answers(self, down: bool) -> None:
        self.world.jobs.down = down

    @invariant()
    def no_content_trains_twice(self) -> None:
        runs = self.world.runs.newest(1000)
        assert len({(run.drop, run.fingerprint) for run in runs}) == len(runs)
        assert set(self.world.jobs.jobs) <= {run.name for run in runs}

    @invariant()
    def complete_means_complete(self) -> None:
        for run in self.world.runs.newest(1000):
            if manifest := self.world.manifest(run):
                assert run.state in FINAL
                assert {file["name"] for file in manifest["files"]} <= self.world.archived(run)
            assert manifest or run.archived_at is None

    @rule()
    def nothing_is_lost(self) -> None:
        """When everything heals, every drop is closed, every run is archived, and the newest content was trained."""
        self.world.jobs.down = False
        self.world.settle()
        drops = list(self.world.drops.listed())
        assert all(drop.state in (DropState.SEALED, DropState.REJECTED) for drop in drops)
        assert all(drop.run in self.world.runs.rows for drop in drops if drop.state is DropState.SEALED)
        for run in self.world.runs.newest(1000):
            assert run.state in FINAL
            assert run.archived_at
            assert run.name in self.world.jobs.jobs
            files = {file["name"] for file in self.world.manifest(run)["files"]}
            assert "logs/std_log_process_0.txt" in files
            assert self.world.jobs.jobs[run.name].raw == "Canceled" or "models/model.pt" in files
        assert not self.world.unsettled()
        self.newest_content_was_trained()
        uploaded = {"/".join(name.split("/")[:2]) for name in self.world.blobs.containers.get("drops", {})}
        assert {str(drop.key) for drop in drops} >= {name for name in uploaded if name.startswith("mnist/")}

    def newest_content_was_trained(self) -> None:
        """Of every drop whose events all arrived. A lost one of a drop that was sealed before can't be made good."""
        lost = {DropKey.of(event["subject"].partition("/blobs/")[2]) for event in self.lost}
        for drop in self.world.drops.listed():
            if drop.state is DropState.SEALED and drop.key not in lost and not drop.key.is_archive():
                blobs = self.world.blobs.list(Place("drops", drop.key.prefix()))
                assert survey(drop.key, blobs).fingerprint == drop.fingerprint


Schedules.TestCase.settings = settings(
    max_examples=400, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
TestSchedules = Schedules.TestCase
