"""The use cases on fakes: what a person does, and the required result."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from shared.api import app, records, status
from shared.api.requests import ReplayQuery
from shared.clusters import scaling
from shared.clusters.model import Cluster, Decision
from shared.jobs.model import JobStatus
from shared.jobs.readers.expressions import read_command
from shared.jobs.spec import JobSpec
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Unavailable
from shared.reconcile import reconcile
from shared.runs.model import Run, RunState
from tests.fakes.features import DATA_FILES
from tests.fakes.ports import Clock, FakeEvents
from tests.fakes.world import ROUTE, World, trainers_folder

A = DropKey("mnist", "a")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def test_from_upload_to_archive(world: World) -> None:
    """Two files and a marker become one job with the drop as its data, and one archive without the checkpoints."""
    world.complete("1.bin", "2.bin")
    run = world.only_run()
    job = world.jobs.jobs[run.name].spec
    assert job["inputs"]["data"]["path"] == "azureml://datastores/drops/paths/mnist/a/"
    assert (job["compute"], job["resources"]["instance_count"]) == ("azureml:cpu-cluster", 2)
    assert job["limits"] == {"timeout": 3600}
    assert job["tags"]["trainyard.drop"] == "mnist/a"
    assert job["tags"]["trainyard.code"] in {digest for _, digest in world.jobs.assets}

    for raw in ("Running", "Completed"):
        world.job_goes(run.name, raw)
        world.deliver_all()
        world.run_until_idle()

    run = world.only_run()
    assert (run.progress.state, run.archive.output) == (RunState.COMPLETED, f"output/digits/{run.name}")
    assert [m.state for m in run.progress.history] == ["received", "submitted", "queued", "running", "completed"]
    assert run.measured.best == {"test_accuracy": 0.9}
    assert run.measured.last == {"test_accuracy": 0.8}
    assert world.archived(run) == {
        "models/model.pt", "metrics/metrics.jsonl", "logs/std_log_process_0.txt", "manifest.json", *DATA_FILES,
    }  # fmt: skip
    kinds = [event.kind for event in world.events.distinct()]
    assert kinds == ["DropSealed", "RunSubmitted", "RunArchived"]


def run_that(world: World, raw: str, error: str = "") -> Run:
    world.complete("1.bin")
    name = world.only_run().name
    world.job_goes(name, "Running")
    log = b"epoch 1\nTraceback (most recent call last):\nValueError: images and labels differ\n"
    world.job_goes(name, raw, error)
    world.blobs.put("azureml", f"ExperimentRun/dcid.{name}/user_logs/std_log_process_1.txt", log)
    world.deliver_all()
    world.run_until_idle()
    return world.only_run()


def test_a_failure_is_told_in_words(world: World) -> None:
    """The reason has the exit code, the failure the last lines of the failing rank; the run's logs are archived."""
    run = run_that(
        world, "Failed", "User process 'python' exited with status code 1. Please check log file 'x'. Error: y"
    )

    assert run.progress.state is RunState.FAILED
    assert "exited with status code 1" in run.progress.reason
    assert run.progress.failure
    assert run.progress.failure.log == "std_log_process_1.txt"
    assert run.progress.failure.tail.endswith("ValueError: images and labels differ")
    shown = records.run(run)["reason"]
    assert shown == f"{run.progress.reason}\nstd_log_process_1.txt:\n{run.progress.failure.tail}"
    assert "logs/std_log_process_1.txt" in world.archived(run)


def test_a_canceled_run_is_archived_too(world: World) -> None:
    """A canceled run keeps its logs and has its reason."""
    run = run_that(world, "Canceled")

    assert run.progress.reason == "The job was canceled in Azure ML."
    assert world.manifest(run)["run"]["state"] == "canceled"


def test_a_job_that_azure_ml_refuses_fails_with_its_words(tmp_path: Path) -> None:
    """A run that can never be submitted fails with the reason; its archive has only the list of its data."""
    world = World(trainers_folder(tmp_path), [replace(ROUTE, cluster="nowhere")])
    world.complete("1.bin")
    run = world.only_run()

    assert run.progress.state is RunState.FAILED
    assert "there is no compute 'nowhere'" in run.progress.reason
    assert [file["name"] for file in world.manifest(run)["files"]] == DATA_FILES


def test_lost_completion_events_cost_one_period(world: World) -> None:
    """The next reconcile updates a run whose events never arrived."""
    world.complete("1.bin")
    world.job_goes(world.only_run().name, "Completed")
    world.in_flight.clear()
    world.reconcile()
    world.run_until_idle()

    assert world.only_run().archive.at


def test_an_event_that_tells_nothing_new_asks_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event with the row's current state costs no request to Azure ML; any other event does."""
    world.complete("1.bin")
    name, asked = world.only_run().name, list[str]()
    answer = world.jobs.status

    def status(job: str) -> JobStatus | None:
        asked.append(job)
        return answer(job)

    monkeypatch.setattr(world.jobs, "status", status)
    for raw, questions in (("Running", 1), ("Running", 1), ("Queued", 2), ("Completed", 3), ("Completed", 3)):
        world.job_goes(name, raw)
        world.deliver_all()
        world.run_until_idle()
        assert len(asked) == questions, raw
    assert world.only_run().archive.at is not None


def test_while_questions_are_scarce_only_ends_are_asked_for(
    world: World,
) -> None:
    """When Azure ML limits requests, other steps wait for the check of the run's hour; ends are read at once."""
    world.complete("1.bin")
    name = world.only_run().name
    world.jobs.busy = True
    before = world.only_run().progress.state
    world.job_goes(name, "Running")
    world.deliver_all()
    world.run_until_idle()
    assert world.only_run().progress.state is before
    world.reconcile()
    world.clock.advance(30)
    world.run_until_idle()
    assert world.only_run().progress.state is RunState.RUNNING
    world.job_goes(name, "Completed")
    world.deliver_all()
    world.run_until_idle()
    assert world.only_run().progress.state is RunState.COMPLETED


def test_events_of_other_peoples_jobs_do_nothing(world: World) -> None:
    """A job that belongs to no run is not read from Azure ML."""
    world.jobs.down = True
    world.deliver({"eventType": "Microsoft.MachineLearningServices.RunCompleted", "data": {"runId": "theirs"}})
    world.run_until_idle()

    assert not world.queues.messages["job-events"]


def test_scaling_brings_idle_clusters_to_zero(world: World) -> None:
    """A cluster stays while a run or an open drop needs it, and goes to zero after its idle time."""
    world.upload("mnist/a/1.bin")
    world.deliver_all()
    world.run_until_idle()
    assert [d.why for d in scaling.scale_clusters(world.system)] == [
        "Drop mnist/a is open since 2026-01-01 00:00 UTC and will train here."
    ]

    world.complete()
    run = world.only_run()
    assert [d.why for d in scaling.scale_clusters(world.system)] == [f"Run {run.name} is queued."]

    world.job_goes(run.name, "Completed")
    world.deliver_all()
    world.run_until_idle()
    assert [d.code for d in scaling.scale_clusters(world.system)] == ["idle_time"]
    world.clock.advance(121)
    assert [d.code for d in scaling.scale_clusters(world.system)] == ["idle"]
    assert world.clusters.zeroed == ["cpu-cluster"]
    assert [d.code for d in scaling.scale_clusters(world.system)] == ["at_zero"]
    assert [d.code for d in world.decisions.history("cpu-cluster")][:2] == ["at_zero", "idle"]
    world.run_until_idle()
    assert world.events.distinct()[-1].kind == "ClusterAtZero"


def test_somebody_elses_job_keeps_its_cluster(world: World) -> None:
    """Jobs that Trainyard did not send count as well."""
    world.jobs.submit(JobSpec("theirs", cluster="cpu-cluster", command=read_command("x"), environment="e"))

    assert [d.why for d in scaling.scale_clusters(world.system)] == ["Job theirs is queued or running."]


def test_scaling_leaves_other_clusters_alone(world: World) -> None:
    """Each cluster is decided separately."""
    world.clusters.clusters["gpu"] = Cluster("gpu", 2, 4, 120)
    world.decisions.record(Decision("gpu", "keep", "idle_time", "", world.clock(), world.clock()), None)
    world.clock.advance(500)

    assert [(d.cluster, d.code) for d in scaling.scale_clusters(world.system)] == [
        ("cpu-cluster", "idle_time"),
        ("gpu", "idle"),
    ]


def test_status_shows_what_waits_and_what_failed(world: World) -> None:
    """One answer has the poison messages, open and rejected drops, runs and clusters."""
    world.queues.put("drop-events-poison", '{"what": "is this"}')
    world.upload("nowhere/a/1")
    world.complete("1.bin")
    told = status.get_status(world.system)

    assert told["queues"]["drop-events"]["poison"] == 1
    assert told["poison"] == {"drop-events": ['{"what": "is this"}']}
    assert [d["drop"] for d in told["drops"]] == ["nowhere/a"]
    assert [r["state"] for r in told["runs"]] == ["queued"]
    assert told["clusters"][0]["name"] == "cpu-cluster"


def test_status_knows_new_drops_and_runs_at_once_and_queues_and_clusters_within_seconds(world: World) -> None:
    """Queues and clusters are at most five seconds old; a replay by the same process shows at once."""

    def seen() -> tuple[int, int, int, int]:
        told = status.get_status(world.system)
        (cluster,), poison = told["clusters"], told["queues"]["drop-events"]["poison"]
        return len(told["drops"]), len(told["runs"]), cluster["max_nodes"], poison

    world.complete("1.bin")
    assert seen() == (0, 1, 4, 0)
    world.queues.put("drop-events-poison", '{"what": "is this"}')
    world.upload("mnist/b/1.bin")
    world.deliver_all()
    world.handle("drop-events")
    world.clusters.clusters["cpu-cluster"] = Cluster("cpu-cluster", 0, 6, 120)
    assert seen() == (1, 1, 4, 0)
    world.clock.advance(5)
    assert seen() == (1, 1, 6, 1)
    app.replay(world.system, "drop-events", ReplayQuery())
    assert seen() == (1, 1, 6, 0)


def test_a_full_disk_is_no_good_health(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An account that answers but stores nothing is named, like an account that does not answer."""

    def full(_walk: str, _at: str) -> None:
        raise Unavailable("could not write table drops: 507 InsufficientAccountSpace")

    monkeypatch.setattr(world.drops, "move_cursor", full)
    found = status.health(world.system)
    assert (found["status"], found["checks"]["storage"]) == ("degraded", {"ok": False, "detail": "unavailable"})


def test_health_names_what_does_not_answer(world: World) -> None:
    """Health, which is public, is degraded when Azure ML does not answer, and shows only a code."""
    assert status.health(world.system)["status"] == "ok"
    world.jobs.down = True
    assert status.health(world.system)["status"] == "ok"  # the answer is cached for ten seconds
    world.clock.advance(10)

    assert status.health(world.system)["checks"]["workspace"] == {"ok": False, "detail": "unavailable"}


def test_an_event_that_the_topic_does_not_take_is_sent_later(world: World) -> None:
    """While the topic is away nothing else stops, and each event is published afterwards."""

    class Away(FakeEvents):
        def publish(self, *_: object, **__: object) -> None:
            raise Unavailable("the topic does not answer")

    told, world.system = world.system, replace(world.system, events=Away())
    world.upload("mnist/a/1.bin")
    world.upload("mnist/a/_SUCCESS", b"")
    world.deliver_all()
    for queue in ("drop-events", "drop-events", "submissions"):
        assert world.handle(queue)
    assert world.only_run().progress.state is RunState.QUEUED
    assert not world.events.published
    world.system = told
    world.run_until_idle()
    assert {event.kind for event in world.events.distinct()} >= {"DropSealed", "RunSubmitted"}


def test_a_reconcile_ends_before_the_host_ends_it(world: World) -> None:
    """The reconcile requests checks for a few minutes at most, and reports that it skipped some, which have their
    own scheduled checks."""
    for number in range(6):
        world.upload(f"mnist/d{number}/1.bin")
    world.deliver_all()
    world.run_until_idle()

    class Slow(Clock):
        def __call__(self) -> datetime:
            world.clock.advance(100)  # each step takes so long
            return world.clock()

    before = len(world.queues.messages["drop-events"])
    with pytest.raises(Unavailable, match="took longer than 0:05:00"):
        reconcile(replace(world.crashing(()), clock=Slow()))
    assert 0 < len(world.queues.messages["drop-events"]) - before < 6
