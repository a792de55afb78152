"""Requested runs on fakes: created once, repeated, canceled, whatever dies in between."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.clusters.model import Cluster
from shared.jobs.location import Location
from shared.jobs.readers.pipeline import steps
from shared.jobs.readers.variables import document_without_values
from shared.jobs.spec import FILE, DataInput, JobSpec
from shared.kernel.errors import Conflict, Impossible, NotFound, TrainyardError
from shared.runs.intake import create, retry_and_continue
from shared.runs.intake.dry_run import dry_run
from shared.runs.intake.request import RunRequest
from shared.runs.model import Run, RunState
from shared.runs.progress.cancel import cancel_run
from shared.system import System
from tests.fakes.ports import Crash
from tests.fakes.world import ROUTE, World, trainers_folder

DATA = "drops/shelf/a"  # in no route's folder, so that no drop becomes a run of its own


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "job.yaml").write_text("{command: x, environment: 'azureml:e:1', inputs: {lr: 0.1}}")
    made = World(trainers_folder(tmp_path))
    made.blobs.put("drops", "shelf/a/1.bin")
    return made


def asked(world: World, key: str | None = None, **fields: Any) -> Run:
    return create.create_run(world.system, request(**fields), key)


def request(**fields: Any) -> RunRequest:
    return RunRequest(**(fields or {"template": "mnist", "data": DATA}))


def ends(world: World, run: Run, raw: str = "Completed") -> Run:
    world.run_until_idle()
    world.job_goes(run.name, raw)
    world.deliver_all()
    world.run_until_idle()
    return world.runs.get(run.name).value


def test_a_run_goes_from_request_to_archive(world: World) -> None:
    """A request becomes one job on the named data, and an archive."""
    run = asked(world)
    assert (run.progress.state, run.asked.drop, run.asked.route, run.asked.cluster) == (
        RunState.RECEIVED,
        "shelf/a",
        "mnist",
        "cpu-cluster",
    )
    done = ends(world, run)
    assert world.jobs.submissions == [run.name]
    assert world.jobs.jobs[run.name].spec["inputs"]["data"]["path"] == "azureml://datastores/drops/paths/shelf/a/"
    assert (done.progress.state, done.archive.at is not None) == (RunState.COMPLETED, True)
    assert done.progress.history[0].why == "Submitted over HTTP."


def test_a_single_file_is_a_file(world: World) -> None:
    """A single blob as data becomes a file, a folder becomes a folder."""
    file = asked(world, template="mnist", data=f"{DATA}/1.bin").asked.request.data["data"]
    assert file == DataInput(Location("drops", "shelf/a/1.bin"), FILE)


def test_data_must_be_there(world: World) -> None:
    """Missing data in the drops container are refused before a run is created; a mere prefix of a name is missing
    too."""
    for data in ("drops/shelf/b", "drops/shelf/a/1.bi"):
        with pytest.raises(Impossible, match="nothing at"):
            asked(world, template="mnist", data=data)
    assert world.runs.rows == {}


def test_a_key_makes_one_run(world: World) -> None:
    """The same key gives the same run, even if its data are gone; without a key every call creates a run."""
    first = asked(world, "k")
    world.blobs.delete("drops", "shelf/a/1.bin")
    assert asked(world, "k").name == first.name
    world.blobs.put("drops", "shelf/a/1.bin")
    assert len({first.name, asked(world, "K").name, asked(world).name, asked(world).name}) == 4


def test_a_key_is_of_one_request(world: World) -> None:
    """Another request with a used key raises Conflict, and no run is created."""
    asked(world, "k")
    with pytest.raises(Conflict) as refused:
        asked(world, "k", template="mnist", data=DATA, nodes=3)
    assert refused.value.code == "idempotency_conflict"
    assert len(world.runs.rows) == 1


def test_choices_are_named(world: World) -> None:
    """An unknown trainer or template is refused with the choices. A trainer without a route needs a cluster."""
    for fields, why in (
        ({"trainer": "../x", "data": DATA}, "There is no trainer '../x'. There are: plain."),
        ({"template": "minst"}, "There is no template 'minst'. Did you mean 'mnist'\\? There are: mnist."),
        ({"trainer": "plain"}, "compute is missing"),
    ):
        with pytest.raises(Impossible, match=why):
            asked(world, **fields)
    run = asked(world, trainer="plain", cluster="cpu-cluster", parameters={"lr": 0.5})
    assert run.asked.request.inputs == {"lr": 0.5}


WHOLE = ["", *(["" for _ in range(n)] + [word] for n in range(6) for word in ("before", "after"))]


@pytest.mark.parametrize("schedule", WHOLE, ids=lambda s: f"{len(s)}-{s[-1]}" if s else "none")
@pytest.mark.parametrize("by", ["timer", "repeat"])
def test_a_request_that_dies_is_one_run_in_the_end(world: World, by: str, schedule: list[str]) -> None:
    """Wherever the call dies, the client's repeat with its key, or the timer alone, creates exactly one run and
    job."""
    with suppress(Crash, TrainyardError):
        create.create_run(world.crashing(schedule), request(), "k")
    made = bool(world.runs.rows)
    if by == "timer":
        world.settle()
        assert len(world.jobs.submissions) == int(made)
    world.clock.advance(6)
    run = asked(world, "k")
    world.run_until_idle()
    assert run.name in world.jobs.jobs
    world.settle()
    assert world.jobs.submissions.count(run.name) == len(world.jobs.jobs) == 1
    assert world.only_run().archive.at is not None


def test_a_dry_run_makes_nothing(world: World) -> None:
    """A dry run returns the job that a real run sends, without its variables' values, and creates nothing."""
    told = dry_run(world.system, request(), "k")
    assert (world.runs.rows, world.queues.messages, world.jobs.assets) == ({}, {}, {})
    asked(world, "k")
    world.run_until_idle()
    sent = document_without_values(world.jobs.jobs[told["job"]["name"]].spec)
    assert (told["job"], told["reasons"]) == (sent, [])


def test_a_dry_run_says_why_not_now(world: World) -> None:
    """The reasons include missing data, an unknown, too small or busy cluster, an invalid job and an outage."""

    def codes(**fields: Any) -> list[str]:
        return [reason["code"] for reason in dry_run(world.system, request(**fields))["reasons"]]

    route = replace(ROUTE, clusters=frozenset({"other"}))
    world.system = replace(world.system, routes={"mnist": route}, limits=route.limits)
    world.clusters.clusters["cpu-cluster"] = Cluster("cpu-cluster", 0, 3, 120)
    there = {"template": "mnist", "data": DATA}
    assert codes(template="mnist", data="drops/mnist/none") == ["no_data"]
    assert codes(**there, cluster="other") == ["unknown_cluster"]
    assert codes(**there, nodes=4) == ["too_many_nodes"]
    of_r = {"command": "Rscript a.R", "environment": {"image": "r-base:4"}, "compute": "azureml:cpu-cluster"}
    assert codes(job=of_r) == ["not_available"]
    assert codes(job={"compute": "cpu-cluster", "command": "x"}) == ["bad_job"]
    world.clusters.clusters["cpu-cluster"] = Cluster("cpu-cluster", 0, 4, 120, nodes=3, busy_nodes=3)
    assert codes(**there) == ["cluster_busy"]
    world.upload("mnist/a/2.bin")
    world.deliver_all()
    world.handle("drop-events")
    assert codes(template="mnist", data="drops/mnist/a") == ["drop_open", "cluster_busy"]


@pytest.mark.parametrize(
    ("job", "lacks"),
    [({}, "no command"), ({"environment": "azureml:e:1"}, "no command"), ({"command": "x"}, "no environment")],
)
def test_a_job_without_what_every_job_has_makes_no_run(world: World, job: dict[str, Any], lacks: str) -> None:
    """The caller learns at once which field is missing, and no run is created that could only fail."""
    with pytest.raises(Impossible, match=lacks) as refused:
        create.create_run(world.system, RunRequest(job=job, cluster="cpu-cluster"))
    assert (refused.value.code, world.runs.rows) == ("bad_job", {})


def test_all_refusals_are_told_at_once(world: World) -> None:
    """An unknown cluster hides neither an unknown datastore, nor a missing field, nor a missing image."""
    data = {"type": "uri_folder", "path": "azureml://datastores/nowhere/paths/x/"}
    job = {"command": "Rscript a.R", "environment": {"image": "r-base:4"}, "compute": "azureml:gone"}
    with pytest.raises(Impossible) as refused:
        create.create_run(world.system, RunRequest(job={**job, "inputs": {"data": data}}))
    assert refused.value.code == "unknown_cluster"
    for words in ("no cluster 'gone'", "no datastore 'nowhere'", "r-base:4"):
        assert words in str(refused.value)
    with pytest.raises(Impossible, match=r"no cluster 'gone'.*The job has no environment"):
        create.create_run(world.system, RunRequest(job={"command": "x", "compute": "azureml:gone"}))
    assert world.runs.rows == {}


def test_a_pipeline_that_can_not_be_is_refused_before_there_is_a_run(world: World) -> None:
    """A component that is not registered and a schema error are reported with their step, in a dry run too. A
    cluster in the request applies to every step."""
    step = {"command": "x", "environment": "azureml:e:1", "compute": "azureml:gone"}
    good: dict[str, Any] = {"type": "pipeline", "jobs": {"one": step, "two": {"component": "azureml:c:1"}}}
    for job, words in (
        (good, "Step 'two': component azureml:c:1 is not in the workspace; register it first."),
        ({**good, "jobs": {"one": {**step, "type": "spark"}}}, "jobs.one.type"),
    ):
        with pytest.raises(Impossible, match=words):
            asked(world, job=job, cluster="cpu-cluster")
    told = dry_run(world.system, request(job=good, cluster="cpu-cluster"))
    assert [reason["code"] for reason in told["reasons"]] == ["not_available"]
    assert world.runs.rows == {}
    world.jobs.components.add("c:1")
    run = asked(world, job=good, cluster="cpu-cluster")
    assert [each.job.cluster for each in steps(run.asked.request)] == ["", ""]


def test_a_retry_is_one_new_run(world: World) -> None:
    """A final run can be retried once: two requests give the same new run, with its own outputs and archive."""
    old = asked(world)
    with pytest.raises(Conflict) as refused:
        retry_and_continue.retry_run(world.system, old.name)
    assert refused.value.code == "not_final"
    ends(world, old, "Failed")
    new = retry_and_continue.retry_run(world.system, old.name)
    assert retry_and_continue.retry_run(world.system, old.name).name == new.name != old.name
    done = ends(world, new)
    assert (done.progress.state, done.asked.retry_of, done.asked.drop) == (RunState.COMPLETED, old.name, old.asked.drop)
    assert "models/model.pt" in world.archived(done)
    assert world.jobs.submissions == [old.name, new.name]


def test_a_drops_run_can_be_retried(world: World) -> None:
    """The retry of a drop's run trains on that drop, and the drop still names its first run."""
    world.upload("mnist/a/1.bin")
    world.upload("mnist/a/_SUCCESS", b"")
    world.deliver_all()
    world.run_until_idle()
    old = ends(world, world.only_run(), "Failed")
    new = retry_and_continue.retry_run(world.system, old.name)
    world.run_until_idle()
    specs = [world.jobs.jobs[run.name].spec for run in (old, new)]
    assert specs[0]["inputs"] == specs[1]["inputs"]
    assert new.asked.drop == "mnist/a"


def test_an_unknown_run_can_not_be_changed(world: World) -> None:
    """Cancel and retry of an unknown run raise NotFound, whatever the text."""
    calls: tuple[Callable[[System, str], Run], ...] = (cancel_run, retry_and_continue.retry_run)
    for call, name in itertools.product(calls, ("run-0", "../x", "")):
        with pytest.raises(NotFound):
            call(world.system, name)


@pytest.mark.parametrize("raw", ["", "Queued", "Running"])
def test_a_cancel_ends_the_run(world: World, raw: str) -> None:
    """A cancel ends the run before its job is sent, while it waits and while it runs; a second cancel changes
    nothing."""
    run = asked(world)
    if raw:
        world.run_until_idle()
        world.job_goes(run.name, raw)
        world.deliver_all()
        world.run_until_idle()
    cancel_run(world.system, run.name)
    asked_at = cancel_run(world.system, run.name).cancel.asked_at
    world.clock.advance(10)
    world.run_until_idle()
    world.reconcile()
    world.run_until_idle()
    done = world.runs.get(run.name).value
    assert (done.progress.state, done.cancel.asked_at) == (RunState.CANCELED, asked_at)
    assert done.archive.at is not None
    assert raw or world.jobs.jobs == {}


def test_a_final_run_is_not_canceled(world: World) -> None:
    """A cancel of a run that has ended changes nothing."""
    done = ends(world, asked(world))
    assert cancel_run(world.system, done.name) == done


@pytest.mark.parametrize("schedule", WHOLE, ids=lambda s: f"{len(s)}-{s[-1]}" if s else "none")
@pytest.mark.parametrize("first", ["submission", "cancel"])
def test_a_cancel_that_was_accepted_leaves_no_job_running(world: World, first: str, schedule: list[str]) -> None:
    """Wherever submission or cancellation dies, a run with an accepted cancel ends, and so does its job."""
    run = asked(world)
    if first == "submission":
        world.handle("submissions", crashes=schedule)
        cancel_run(world.system, run.name)
    else:
        with suppress(Crash, TrainyardError):
            cancel_run(world.crashing(schedule), run.name)
        cancel_run(world.system, run.name)
        world.handle("submissions", crashes=schedule)
    for _ in range(4):
        world.clock.advance(61)
        world.run_until_idle()
        world.reconcile()
    assert world.runs.get(run.name).value.progress.state is RunState.CANCELED
    assert {job.raw for job in world.jobs.jobs.values()} <= {"Canceled"}


def test_a_cancel_during_the_submission_cancels_the_job(world: World) -> None:
    """A cancel that is accepted while the job is being submitted to Azure ML ends that job right after."""
    run = asked(world)
    put = world.jobs.submit

    def slow(job: JobSpec) -> Any:
        status = put(job)
        cancel_run(world.system, run.name)
        return status

    world.jobs.submit = slow  # type: ignore[method-assign]
    world.handle("submissions")
    assert world.jobs.jobs[run.name].raw == "Canceled"
