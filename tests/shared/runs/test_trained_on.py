"""Which data a run trained on: what can be proved, and where each run shows it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shared.jobs.model import JobTimes
from shared.kernel.storage import Blob
from shared.runs.intake.retry_and_continue import retry_run
from shared.runs.trained_on import TrainedOn, differences, judge
from tests.fakes.world import World, trainers_folder

BEGAN = datetime(2026, 1, 1, 12, tzinfo=UTC)
JOB = JobTimes(BEGAN, BEGAN + timedelta(minutes=10))
MINUTE = timedelta(minutes=1)
MADE = BEGAN - 2 * MINUTE
RECORDED = Blob("r/d/1.bin", "e1", 3, "aa")


def blob(etag: str, md5: str, written: timedelta, size: int = 3) -> Blob:
    return Blob("r/d/1.bin", etag, size, md5, BEGAN + written)


@pytest.mark.parametrize(
    ("now", "jobs", "verdict"),
    [
        (blob("e1", "aa", -MINUTE), [JOB], TrainedOn.RECORDED),
        (blob("e2", "aa", -3 * MINUTE), [JOB], TrainedOn.RECORDED),  # the same bytes again, before the run was created
        (blob("e2", "aa", -MINUTE), [JOB], TrainedOn.UNKNOWN),  # the job may have started earlier, on a lost node
        (blob("e2", "aa", MINUTE), [JOB], TrainedOn.UNKNOWN),  # the content in between is unknown
        (blob("e2", "bb", -MINUTE), [JOB], TrainedOn.OTHER),
        (blob("e2", "", -MINUTE, size=4), [JOB], TrainedOn.OTHER),
        (blob("e2", "", -MINUTE), [JOB], TrainedOn.UNKNOWN),  # a blob of several blocks, maybe the same bytes
        (blob("e2", "bb", MINUTE), [JOB], TrainedOn.UNKNOWN),
        (blob("e2", "bb", timedelta(seconds=-1)), [JOB], TrainedOn.UNKNOWN),  # clocks may differ by more
        (blob("e2", "bb", 20 * MINUTE), [JOB], TrainedOn.UNKNOWN),
        (blob("e2", "bb", MINUTE), [JOB, JobTimes(BEGAN + 5 * MINUTE)], TrainedOn.OTHER),  # a later attempt read it
        (blob("e2", "bb", -MINUTE), [JobTimes()], TrainedOn.UNKNOWN),
        (None, [JOB], TrainedOn.UNKNOWN),
    ],
)
def test_only_what_is_proved_is_said(now: Blob | None, jobs: list[JobTimes], verdict: TrainedOn) -> None:
    """An etag proves that nothing changed; a write proves other data only for a job that started after the write."""
    found = list(differences({RECORDED.name: RECORDED}, {now.name: now} if now else {}))
    judged = judge("r/d", found, jobs, MADE)
    assert judged.trained_on is verdict
    assert bool(judged.why) is (verdict is not TrainedOn.RECORDED)


def test_a_doubt_names_file_and_times() -> None:
    """What can't be proved is listed with its file, the time of its write, and the time of the job."""
    found = list(differences({RECORDED.name: RECORDED}, {RECORDED.name: blob("e2", "bb", MINUTE)}))
    assert judge("r/d", found, [JOB], MADE).why == (
        "Whether it trained on the recorded data is unknown: r/d/1.bin was written at 2026-01-01 12:01:00 UTC. Its "
        "job began at 2026-01-01 12:00:00 UTC and ended at 2026-01-01 12:10:00 UTC."
    )


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def submitted(world: World) -> str:
    world.complete("1.bin", "2.bin")
    world.clock.advance(60)
    return world.only_run().name


def says(world: World) -> str:
    """Return what the first run says, after checking that its manifest says the same."""
    run = min(world.runs.newest(), key=lambda run: run.created_at)
    archived = world.manifest(run)["run"]
    assert (archived["trained_on"], archived["data_note"]) == (run.data.trained_on, run.data.note)
    return run.data.trained_on


def goes(world: World, job: str, *raws: str) -> None:
    for raw in raws:
        world.job_goes(job, raw)
        world.deliver_all()
        world.run_until_idle()
        world.clock.advance(60)


def test_a_run_says_that_it_trained_on_what_is_recorded(world: World) -> None:
    """The run says so only at its end; later uploads change nothing."""
    job = submitted(world)
    goes(world, job, "Running")
    assert world.only_run().data.trained_on == ""
    goes(world, job, "Completed")
    world.upload("mnist/a/1.bin", b"later")
    world.settle()
    assert says(world) == "recorded"


def test_a_run_whose_job_ended_unseen_is_compared_at_its_end(world: World) -> None:
    """Without an event of the job's start, the times of Azure ML and of the blob decide."""
    job = submitted(world)
    world.upload("mnist/a/1.bin", b"other")
    world.in_flight.clear()
    world.clock.advance(60)
    for raw in ("Running", "Completed"):
        world.job_goes(job, raw)
        world.in_flight.clear()
        world.clock.advance(60)
    world.settle()
    assert says(world) == "other"


def test_what_opened_the_drop_and_is_gone_leaves_a_doubt(world: World) -> None:
    """A file arrived after the drop was sealed, and was deleted before any listing: the job may have read the file."""
    job = submitted(world)
    world.upload("mnist/a/3.bin", b"more")
    world.deliver_all()
    world.blobs.delete("drops", "mnist/a/3.bin")
    world.job_goes(job, "Running")
    world.job_goes(job, "Completed")
    world.deliver_all()
    world.settle()
    assert says(world) == "unknown"
    assert "what opened the drop again is gone" in world.only_run().data.note


def test_every_attempt_is_compared(world: World) -> None:
    """Data written between two attempts were read by the second attempt."""
    job = submitted(world)
    goes(world, job, "Running", "Queued")
    world.upload("mnist/a/1.bin", b"other")
    world.in_flight.clear()
    world.clock.advance(60)
    goes(world, job, "Running", "Completed")
    assert says(world) == "other"


def test_a_retried_run_is_compared_with_what_its_generation_held(world: World) -> None:
    """A retry has no file list of its own; the list of its drop's generation is used."""
    job = submitted(world)
    goes(world, job, "Running", "Failed")
    retried = retry_run(world.system, job).name
    assert retried.startswith("mnist-"), "it keeps the name of its route"
    world.run_until_idle()
    goes(world, retried, "Running")
    world.upload("mnist/a/2.bin", b"other")
    world.in_flight.clear()
    goes(world, retried, "Completed")
    data = world.runs.get(retried).value.data
    assert data.trained_on == "unknown"
    assert "mnist/a/2.bin was written at" in data.note
