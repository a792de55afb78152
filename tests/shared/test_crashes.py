"""One crash at every port call of the whole story in turn: before, half-way through and after the call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shared.drops.model import DropState
from shared.messages.declared import QUEUES
from shared.runs.model import RunState
from tests.fakes.crashing import Counting
from tests.fakes.world import ROUTE, World, trainers_folder

PLAIN = {"1.bin": b"x", "2.bin": b"x", "_SUCCESS": b""}
JOB = b"code: ./src\ncommand: python train.py\nenvironment: azureml:e:1\n"
WITH_CODE = {"1.bin": b"x", "src/train.py": b"x", "src/lib/a.py": b"y", "job.yaml": JOB, "_SUCCESS": b""}
ROUTES = [replace(ROUTE, allow=frozenset({"code"}))]


def tell(world: World, crashes: Counting, files: dict[str, bytes]) -> None:
    """Upload the files of a drop, let the job run, and archive the run. Messages whose handler died are delivered
    again."""
    for name, data in files.items():
        world.upload(f"mnist/a/{name}", data)
        world.clock.advance(1)
    for raw in ("", "Running", "Completed"):
        for name in world.jobs.jobs if raw else ():
            world.job_goes(name, raw)
        world.deliver_all()
        for _ in range(3):
            while any(world.handle(queue, crashes=crashes) for queue in QUEUES):
                pass
            world.clock.advance(61 if world.goes_on else 6)


def new_world(tmp: Path, goes_on: bool) -> World:
    world = World(trainers_folder(tmp), ROUTES)
    world.goes_on = goes_on
    return world


def calls_of_the_story(tmp: Path, files: dict[str, bytes], goes_on: bool) -> int:
    world, crashes = new_world(tmp, goes_on), Counting(0, "")
    tell(world, crashes, files)
    assert world.only_run().archive.at
    return crashes.taken


@pytest.mark.parametrize(
    ("files", "goes_on"),
    [(PLAIN, True), (WITH_CODE, False), (WITH_CODE, True)],
    ids=["data, at once", "data and code, by messages", "data and code, at once"],
)
@pytest.mark.parametrize("word", ["before", "half", "after"])
def test_a_crash_anywhere_changes_nothing_in_the_end(
    tmp_path: Path, word: str, files: dict[str, bytes], goes_on: bool
) -> None:
    """Wherever a handler dies, retries alone lead to one run, one job and one complete archive."""
    calls = calls_of_the_story(tmp_path, files, goes_on)
    for at in range(1, calls + 1):
        world, crashes = new_world(tmp_path, goes_on), Counting(at, word)
        tell(world, crashes, files)
        world.settle()
        run = world.only_run()

        assert list(world.jobs.jobs) == [run.name], f"call {at}"
        assert run.progress.state is RunState.COMPLETED, f"call {at}"
        assert run.archive.at, f"call {at}"
        assert [drop.state for drop in world.drops.listed()] == [DropState.SEALED], f"call {at}"
        archived = {file["name"] for file in world.manifest(run)["files"]}
        assert archived == {
            "data.json.gz",
            "data.card.json",
            "logs/std_log_process_0.txt",
            "models/model.pt",
            "metrics/metrics.jsonl",
        }, f"call {at}"
        assert len(world.blobs.copied) == len(set(world.blobs.copied)), f"call {at}: a blob was copied twice"
        assert not world.unsettled(), f"call {at}"
    assert calls > 40, "the story must go through every handler"
