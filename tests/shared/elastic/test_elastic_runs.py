"""Elastic runs on fakes: members join, leave and are replaced, and the run ends when the training does."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from shared.adapters.azureml.failures import JOB_RULES
from shared.api import queries
from shared.elastic.api import evict
from shared.elastic.decide import GRACE
from shared.elastic.model import Elastic, elastic_of
from shared.jobs.readers.azureml import read_job
from shared.kernel.errors import Conflict, NotFound
from shared.kernel.person import Person
from shared.messages.declared import QUEUES
from shared.runs.intake import create, retry_and_continue
from shared.runs.intake.request import RunRequest
from shared.runs.messages import ArchiveRun
from shared.runs.model import Cost, Run, RunState
from shared.runs.progress.cancel import cancel_run
from shared.runs.progress.hourly_reconcile import AGAIN_SECONDS
from shared.runs.progress.workloads import workload
from shared.runs.results.archive import archive_run
from shared.runs.views import logs
from tests.fakes.crashing import Counting
from tests.fakes.parts import changed
from tests.fakes.world import ELASTIC, ROUTE, World, trainers_folder

ROUTE_1_TO_3 = replace(ROUTE, template=read_job(ELASTIC), trainer="cifar", nodes=3, min_nodes=1, resubmissions=2)

PREEMPTED = JOB_RULES[0].example  # Azure ML's words


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path), [ROUTE_1_TO_3])


def start(world: World) -> str:
    """Drop a file, and let the run's members be submitted."""
    world.upload("mnist/a/1.bin")
    world.upload("mnist/a/_SUCCESS", b"")
    world.deliver_all()
    world.run_until_idle()
    world.clock.advance(4)
    world.run_until_idle()
    return world.only_run().name


def go(world: World, job: str, raw: str, error: str = "") -> None:
    world.job_goes(job, raw, error)
    world.deliver_all()
    world.run_until_idle()


def spec(world: World, job: str) -> dict[str, object]:
    return world.jobs.jobs[job].spec


def states(run: Run) -> list[str]:
    return [f"{m.attempt} {m.state}" for m in elastic_of(run).members]


def test_an_elastic_route_submits_single_node_jobs_that_meet_under_the_runs_name(world: World) -> None:
    """Each node gets one single-node job, with the address, the name and the size of the team; all jobs write to
    the run's one output."""
    world.system = replace(world.system, rendezvous="https://account.table.core.windows.net")
    run = start(world)
    assert list(world.jobs.jobs) == [f"{run}-m0-1", f"{run}-m1-1", f"{run}-m2-1"]
    jobs = [world.jobs.jobs[name].spec for name in world.jobs.jobs]
    assert {job["resources"]["instance_count"] for job in jobs} == {1}
    assert not any("distribution" in job for job in jobs)
    assert {job["outputs"]["models"]["path"] for job in jobs} == {
        f"azureml://datastores/workspaceblobstore/paths/trainyard/{run}/models/"
    }
    variables = jobs[2]["environment_variables"]
    assert (variables["PET_NNODES"], variables["PET_RDZV_ID"]) == ("1:3", run)
    assert variables["PET_RDZV_ENDPOINT"] == "https://account.table.core.windows.net"
    assert variables["PET_RDZV_BACKEND"] == "azure-table"
    assert jobs[1]["tags"]["trainyard.run"] == run
    assert 0 < jobs[0]["limits"]["timeout"] <= ROUTE_1_TO_3.timeout_seconds


def test_a_failed_member_is_replaced_and_the_run_goes_on(world: World) -> None:
    """A failed or evicted member gets another job, whose name shows the attempt; the run's state stays."""
    run = start(world)
    for member in range(3):
        go(world, f"{run}-m{member}-1", "Running")
    go(world, f"{run}-m0-1", "Failed", "The node was preempted. Error: x")
    go(world, f"{run}-m2-1", "Canceled")
    found = world.only_run()
    assert found.progress.state is RunState.RUNNING
    assert states(found) == ["2 submitted", "1 running", "2 submitted"]
    assert elastic_of(found).resubmitted == 2
    assert elastic_of(found).members[0].why == "The node was preempted."
    assert {f"{run}-m0-2", f"{run}-m2-2"} < set(world.jobs.jobs)
    assert [size.nodes for size in elastic_of(found).sizes] == [1, 2, 3, 2, 1]


def test_a_member_that_azure_ml_requeues_is_not_replaced(world: World) -> None:
    """A preempted job that Azure ML requeues keeps its name and costs no resubmission."""
    run = start(world)
    go(world, f"{run}-m0-1", "Running")
    go(world, f"{run}-m1-1", "Running")
    go(world, f"{run}-m0-1", "Queued")
    found = world.only_run()
    assert states(found) == ["1 queued", "1 running", "1 submitted"]
    assert elastic_of(found).resubmitted == 0
    assert "waits for a new one" in elastic_of(found).members[0].why
    go(world, f"{run}-m0-1", "Running")
    assert (again := world.only_run().feature(Elastic))
    assert again.members[0].why == "It lost its node, and has a new one."


def test_evictions_use_no_resubmission(world: World) -> None:
    """A member whose job fails as preempted is replaced without limit; other failures use a resubmission."""
    run = start(world)
    for attempt in range(1, 6):  # more often than the route's 2 resubmissions
        go(world, f"{run}-m0-{attempt}", "Running")
        go(world, f"{run}-m0-{attempt}", "Failed", PREEMPTED)
    go(world, f"{run}-m1-1", "Running")
    go(world, f"{run}-m1-1", "Failed", "Execution failed. User process 'python' exited with status code 1.")
    found = world.only_run()
    assert states(found) == ["6 submitted", "2 submitted", "1 submitted"]
    assert elastic_of(found).resubmitted == 1
    assert elastic_of(found).members[0].evictions == 5
    assert len(elastic_of(found).losses) == 6


def test_the_run_is_completed_when_the_training_says_so(world: World) -> None:
    """One member's exit code 0 ends the training: waiting members are canceled, running members may end by
    themselves."""
    run = start(world)
    go(world, f"{run}-m0-1", "Running")
    go(world, f"{run}-m1-1", "Running")
    go(world, f"{run}-m1-1", "Completed")
    assert world.jobs.jobs[f"{run}-m2-1"].raw == "Canceled"
    assert world.jobs.jobs[f"{run}-m0-1"].raw == "Running"
    assert world.only_run().progress.state is RunState.RUNNING
    go(world, f"{run}-m0-1", "Completed")
    world.reconcile()
    world.run_until_idle()
    found = world.only_run()
    assert found.progress.state is RunState.COMPLETED
    assert found.archive.at
    files = {file["name"] for file in (world.manifest(found) or {})["files"]}
    assert {"logs/m0-1/std_log_process_0.txt", "logs/m1-1/std_log_process_0.txt", "models/model.pt"} <= files


def test_a_member_that_does_not_end_after_the_training_is_ended(world: World) -> None:
    """Members that still run two minutes after the training reported its end are canceled."""
    run = start(world)
    go(world, f"{run}-m0-1", "Running")
    go(world, f"{run}-m1-1", "Completed")
    world.clock.advance(GRACE.total_seconds() + 1)
    world.reconcile()
    assert world.jobs.jobs[f"{run}-m0-1"].raw == "Canceled"
    world.clock.advance(AGAIN_SECONDS)
    world.reconcile()
    assert world.only_run().progress.state is RunState.COMPLETED


def test_a_run_fails_when_its_resubmissions_are_used_up(world: World) -> None:
    """With too few members left and no resubmissions, the run fails; its reason has the numbers and the log."""
    run = start(world)
    for job in ("m0-1", "m1-1", "m0-2", "m1-2", "m2-1"):
        go(world, f"{run}-{job}", "Running")
        go(world, f"{run}-{job}", "Failed", "Execution failed. User process 'python' exited with status code 1.")
    found = world.only_run()
    assert found.progress.state is RunState.FAILED
    assert found.progress.reason.startswith("0 of at least 1 members are left, and all 2 resubmissions are used up.")
    assert found.progress.failure
    assert found.progress.failure.log == "std_log_process_0.txt"
    assert len(world.jobs.jobs) == 5
    assert found.archive.at or world.queues.visible("background") or found.archive.output


def test_bad_data_fails_the_run_at_once(world: World) -> None:
    """Exit code 2 means that no node can use the data: nothing is resubmitted, and the other members are canceled."""
    run = start(world)
    go(world, f"{run}-m0-1", "Running")
    go(
        world,
        f"{run}-m1-1",
        "Failed",
        "Execution failed. User process 'python' exited with status code 2. See the log.",
    )
    world.reconcile()
    found = world.only_run()
    assert found.progress.state is RunState.FAILED
    assert "status code 2" in found.progress.reason
    assert len(world.jobs.jobs) == 3
    assert world.jobs.jobs[f"{run}-m0-1"].raw == "Canceled"


def test_the_deadline_ends_a_run(world: World) -> None:
    """After the deadline nothing is resubmitted, and the remaining jobs are canceled, also those still in the
    queue."""
    run = start(world)
    go(world, f"{run}-m0-1", "Running")
    world.clock.advance(ROUTE_1_TO_3.timeout_seconds + 1)
    world.reconcile()
    world.clock.advance(AGAIN_SECONDS)
    world.reconcile()
    found = world.only_run()
    assert found.progress.state is RunState.FAILED
    assert "deadline" in found.progress.reason
    assert {job.raw for job in world.jobs.jobs.values()} == {"Canceled"}


def test_cancel_ends_all_members(world: World) -> None:
    """A canceled run reaches the state canceled once its members have; none is resubmitted."""
    run = start(world)
    go(world, f"{run}-m0-1", "Running")
    cancel_run(world.system, run)
    world.run_until_idle()
    world.reconcile()
    assert world.only_run().progress.state is RunState.CANCELED
    assert [job.raw for job in world.jobs.jobs.values()] == ["Canceled"] * 3


def test_a_retry_is_another_run_with_members_of_its_own(world: World) -> None:
    """A retry meets under its own name, writes to its own outputs, and starts with all its resubmissions."""
    run = start(world)
    cancel_run(world.system, run)
    world.run_until_idle()
    world.reconcile()
    again = retry_and_continue.retry_run(world.system, run)
    world.run_until_idle()
    assert (elastic_of(again).min_nodes, elastic_of(again).resubmissions, elastic_of(again).resubmitted) == (1, 2, 0)
    job = world.jobs.jobs[f"{again.name}-m0-1"].spec
    assert job["environment_variables"]["PET_RDZV_ID"] == again.name
    assert job["outputs"]["models"]["path"].endswith(f"trainyard/{again.name}/models/")


def test_a_member_can_be_evicted(world: World) -> None:
    """Evicting a member ends its job, and a new job replaces it. Only running members of elastic runs can be
    evicted. The run's audit records who asked."""
    run = start(world)
    with pytest.raises(Conflict, match="not running"):
        evict(world.system, run, 0)
    go(world, f"{run}-m0-1", "Running")
    assert evict(world.system, run, 0, Person("ann", "0a1b")) == f"{run}-m0-1"
    (entry,) = world.only_run().people.audit
    assert (entry.what, entry.by, entry.by_id) == (f"evicted member 0 ({run}-m0-1)", "ann", "0a1b")
    world.reconcile()
    assert states(world.only_run())[0] == "2 submitted"
    with pytest.raises(NotFound, match="0 to 2"):
        evict(world.system, run, 3)


def test_what_members_lose_is_kept_and_what_they_cost_is_told(world: World) -> None:
    """Each lost job is kept with its reason, but a completed member shows no reason. The cost is listed by member,
    for the time its jobs ran. The normal end of a job is no loss."""
    run = start(world)
    go(world, f"{run}-m0-1", "Running")
    world.clock.advance(60)
    go(world, f"{run}-m1-1", "Running")
    world.clock.advance(60)
    go(world, f"{run}-m1-1", "Failed", "Node was preempted.")
    world.clock.advance(60)
    go(world, f"{run}-m1-2", "Running")
    world.clock.advance(60)
    for job in ("m0-1", "m1-2"):
        go(world, f"{run}-{job}", "Completed")
    world.clock.advance(200)
    world.reconcile()
    world.run_until_idle()
    told = queries.run(world.system, run)["elastic"]
    assert [(loss["job"], loss["why"]) for loss in told["losses"]] == [(f"{run}-m1-1", "Node was preempted.")]
    assert [m["why"] for m in told["members"] if m["state"] == "completed"] == ["", ""]
    assert [m["seconds"] for m in told["members"]][:2] == [240, 120]
    stored = world.system.runs.get(run)
    world.system.runs.update(stored, changed(stored.value, cost=Cost(3.0, 0.0, 0.0, 360, stored.value.created_at)))
    assert [m["cost"] for m in queries.run(world.system, run)["elastic"]["members"]] == [2.0, 1.0, 0.0]


def test_each_job_of_a_member_has_its_log(world: World) -> None:
    """The logs of the first jobs have the members' numbers; the logs of replacements come after them, and keep
    their numbers."""
    run = start(world)
    for job in ("m0-1", "m1-1", "m2-1"):
        go(world, f"{run}-{job}", "Running")
    go(world, f"{run}-m1-1", "Failed")
    go(world, f"{run}-m1-2", "Running")
    chunk = logs.read(world.system, run, 4, 0)
    assert (chunk.data, chunk.ranks) == (b"Running\n", [0, 1, 2, 4])
    for job in ("m0-1", "m1-2", "m2-1"):
        go(world, f"{run}-{job}", "Completed")
    world.reconcile()
    world.run_until_idle()
    chunk = logs.read(world.system, run, 4, 0)
    assert (chunk.data, chunk.complete) == (b"Completed\n", True)


def test_what_a_late_member_writes_is_left_out(tmp_path: Path) -> None:
    """A member that started after the run's end writes into the shared output. The archive has the earlier files
    only, and names the files that it left out."""
    route = replace(ROUTE, name="elastic", template=read_job(ELASTIC), nodes=2, min_nodes=1)
    world = World(trainers_folder(tmp_path), [route])
    data = "azureml://datastores/workspaceblobstore/paths/p"
    run = create.create_run(world.system, RunRequest(template="elastic", data=data)).name
    world.run_until_idle()
    world.blobs.put("azureml-blobstore", f"trainyard/{run}/models/model.pt", b"of the run")
    world.runs.update(stored := world.runs.get(run), changed(stored.value, state=RunState.CANCELED))
    world.clock.advance(3600)
    world.blobs.put("azureml-blobstore", f"trainyard/{run}/models/late.pt", b"of nobody")
    archive_run(world.system, ArchiveRun(run))
    ended = world.runs.get(run).value
    assert {"models/model.pt"} <= world.archived(ended)
    assert "models/late.pt" not in world.archived(ended)
    assert world.manifest(ended)["changed_after_end"] == ["models/late.pt"]


def test_a_member_that_azure_ml_refuses_fails_the_run_and_ends_the_others(world: World) -> None:
    """When a replacement can never run (its cluster is gone), the run fails with Azure ML's message, and no job
    keeps running."""
    run = start(world)
    go(world, f"{run}-m0-1", "Running")
    world.jobs.clusters.clear()
    go(world, f"{run}-m1-1", "Failed")
    found = world.only_run()
    assert found.progress.state is RunState.FAILED
    assert "there is no compute" in found.progress.reason
    assert world.jobs.jobs[f"{run}-m0-1"].raw == "Canceled"


def tell(world: World, crashes: Counting) -> None:
    """Return a run whose first member is lost once, with this schedule of crashes."""

    def work() -> None:
        world.deliver_all()
        for _ in range(3):
            while any(world.handle(queue, crashes=crashes) for queue in QUEUES):
                pass
            world.clock.advance(6)

    world.upload("mnist/a/1.bin")
    world.upload("mnist/a/_SUCCESS", b"")
    work()
    for raw in ("Running", "Failed", "Completed"):
        for name, job in list(world.jobs.jobs.items()):
            if job.raw not in ("Completed", "Failed", "Canceled") and (raw != "Failed" or name.endswith("-m0-1")):
                world.job_goes(name, raw)
        work()


@pytest.mark.parametrize("word", ["before", "half", "after"])
def test_a_crash_anywhere_loses_and_doubles_no_member(tmp_path: Path, word: str) -> None:
    """Wherever a handler dies, the run completes, no member has two jobs at once, and all its jobs end."""
    world, counting = World(trainers_folder(tmp_path), [ROUTE_1_TO_3]), Counting(0, "")
    tell(world, counting)
    for at in range(1, counting.taken + 1):
        world = World(trainers_folder(tmp_path), [ROUTE_1_TO_3])
        tell(world, Counting(at, word))
        world.settle()
        run = world.only_run()
        assert run.progress.state is RunState.COMPLETED, f"call {at}"
        assert run.archive.at, f"call {at}"
        assert set(world.jobs.jobs) == set(workload(run).jobs(run).values()), f"call {at}"
        assert {job.raw for job in world.jobs.jobs.values()} <= {"Completed", "Failed", "Canceled"}, f"call {at}"
    assert counting.taken > 40, "the story must go through every handler"


def test_an_answer_waits_for_the_logs_of_an_elastic_run(world: World) -> None:
    """Following a job that does not exist yet returns an empty, incomplete chunk."""
    run = start(world)
    chunk = logs.read(world.system, run, 0, 0)
    assert (chunk.data, chunk.complete) == (b"", False)
    assert world.only_run().created_at + timedelta(seconds=1) < world.clock()


BAD_DATA = "Execution failed. User process 'python' exited with status code 2."
ENDS = {RunState.CANCELED: ("Canceled",), RunState.FAILED: ("Failed", BAD_DATA), RunState.COMPLETED: ("Completed",)}


@pytest.mark.parametrize("state", ENDS)
def test_the_rendezvous_of_a_run_that_did_not_complete_is_closed(world: World, state: RunState) -> None:
    """Once all members have ended, a node that still starts is told that the run is over. The nodes of a completed
    run close their rendezvous themselves."""
    name = start(world)
    jobs = workload(world.only_run()).live_jobs(world.only_run())
    if state is RunState.CANCELED:
        cancel_run(world.system, name)
        world.run_until_idle()
    assert not closed_rendezvous(world)
    for job in jobs:
        go(world, job, *ENDS[state])
    world.run_until_idle()
    assert world.only_run().progress.state is state
    assert closed_rendezvous(world) == ({} if state is RunState.COMPLETED else {name: f"the run is {state.value}"})


def closed_rendezvous(world: World) -> dict[str, str]:
    closed: dict[str, str] = world.journals["rendezvous"].closed
    return closed
