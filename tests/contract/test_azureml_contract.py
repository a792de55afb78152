"""The contract of shared.jobs.ports.Jobs, tested on the fake and on MLClient with a real local Azure ML."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.adapters.azureml.jobs import AzureMLJobs
from shared.adapters.storage.account import StorageClients
from shared.adapters.storage.blobs import StorageBlobs
from shared.jobs.location import Asset, Location
from shared.jobs.model import ENDED, JobFolderPart, JobState, JobStatus, JobTimes
from shared.jobs.readers.expressions import read_command
from shared.jobs.readers.place_text import read_place
from shared.jobs.spec import DataInput, Environment
from shared.kernel.errors import BadInput, BadSetting, NoAnswer, NotFound, Unavailable
from shared.kernel.storage import Place
from tests.contract.sides import FakeSide, RealSide, Side, environment, pipeline_of, snapshot
from tests.contract.wire import LocalAzureML
from tests.fakes.ports import FakeAssets, FakeJobs

# azure-ai-ml on its own marshmallow and on Python's
pytestmark = pytest.mark.filterwarnings("ignore:.*(marshmallow|context. parameter).*", "ignore::DeprecationWarning")


@pytest.fixture(params=["fake", "real"])
def side(request: pytest.FixtureRequest) -> Side:
    if request.param == "fake":
        return FakeSide(FakeJobs())
    real: RealSide = request.getfixturevalue("real")
    return real


def test_a_job_goes_its_way(side: Side, unique: Callable[[], str]) -> None:
    """A submitted job is queued or running, then completed, and keeps the name that it was submitted with."""
    name = unique()
    assert side.jobs.status(name) is None
    sent = side.jobs.submit(side.job(name))
    assert sent.name == name
    assert sent.state not in ENDED
    side.run(name)
    side.end(name)
    assert side.until(name, *ENDED) == JobStatus(name, JobState.COMPLETED, "Completed")


def test_live_jobs_come_page_by_page(side: Side, unique: Callable[[], str]) -> None:
    """A page lists jobs that have not ended. Its token leads to older jobs, and an invalid token is refused."""
    names = [unique(), unique()]
    for name in names:
        side.jobs.submit(side.job(name))
    side.run(names[0])
    side.end(names[0])
    side.until(names[0], *ENDED)
    page = side.jobs.live_page()
    assert names[1] in page.jobs
    assert names[0] not in page.jobs
    with pytest.raises(BadInput):
        side.jobs.live_page("no token of a page")
    side.jobs.cancel(names[1])


def test_a_job_has_its_times(side: Side, unique: Callable[[], str]) -> None:
    """`times` returns when the job got its nodes and when it ended, and nothing for an unknown job."""
    name = unique()
    assert side.jobs.times(name) == JobTimes()
    side.jobs.submit(side.job(name))
    side.run(name)
    running = side.jobs.times(name)
    assert running.began
    assert running.ended is None
    side.end(name)
    side.until(name, JobState.COMPLETED)
    ended = side.jobs.times(name)
    assert ended.began == running.began
    assert ended.ended
    assert ended.ended >= running.began


def test_a_name_is_one_job(side: Side, unique: Callable[[], str]) -> None:
    """A second submission under a used name, even of another job or after the end, changes nothing and returns the
    first job's status."""
    name = unique()
    side.jobs.submit(side.job(name))
    side.run(name)
    other = replace(side.job(name), command=read_command("exit 7"), nodes=2)
    assert side.jobs.submit(other).state is JobState.RUNNING
    side.end(name)
    side.until(name, JobState.COMPLETED)
    assert side.jobs.submit(other).state is JobState.COMPLETED


def test_a_failed_job_says_why(side: Side, unique: Callable[[], str]) -> None:
    """The status of a failed job contains Azure ML's error, with the exit status."""
    name = unique()
    side.jobs.submit(side.job(name))
    side.run(name)
    side.end(name, exit_code=3)
    status = side.until(name, *ENDED)
    assert status.state is JobState.FAILED
    assert "exited with status code 3" in status.error


def test_a_pipeline_tells_its_steps_and_those_within_them(side: Side, unique: Callable[[], str]) -> None:
    """Each step that has begun has a state, times and a job of its own; a nested step has both names. A second
    submission of a name makes no second pipeline, and `logs` of a step's job finds the step's log."""
    name = unique()
    assert side.jobs.problems(pipeline_of(name)) == []
    assert side.jobs.submit(pipeline_of(name)).name == name
    status = side.run_steps(name)
    assert status.steps is not None
    steps = {step.name: step for step in status.steps}
    assert {step.name: step.state for step in status.steps} == {
        "prepare": JobState.COMPLETED,
        "inner": JobState.FAILED,
        "inner.train": JobState.FAILED,
    }
    assert "exited with status code 3" in steps["inner.train"].error
    assert all(step.began and step.ended and step.began <= step.ended for step in status.steps)
    assert len({name, *(step.job for step in status.steps)}) == 4
    assert side.jobs.folder(steps["prepare"].job).place.prefix.startswith("ExperimentRun/dcid.")
    assert side.jobs.submit(pipeline_of(name)).state is JobState.FAILED


def test_a_job_that_can_never_run_is_refused(side: Side, unique: Callable[[], str]) -> None:
    """`submit` raises BadInput with Azure ML's message, and no job exists afterwards."""
    name = unique()
    with pytest.raises(BadInput, match="nowhere"):
        side.jobs.submit(replace(side.job(name), cluster="nowhere"))
    assert side.jobs.status(name) is None


def test_what_can_not_be_had_is_told_before_submission(side: Side, unique: Callable[[], str]) -> None:
    """`lacks` names what the workspace can't give a job, and nothing for a job that can run. It creates no job."""
    name = unique()
    job = replace(side.job(name), code="")
    assert side.jobs.lacks(job) == []
    (why,) = side.jobs.lacks(replace(job, environment=Environment("r-base:4.3")))
    assert "R can't be installed" in why
    gone = Location("drops", f"{name}/nothing/")
    if isinstance(side.jobs, FakeJobs):
        side.jobs.empty.add(gone)
    (why,) = side.jobs.lacks(replace(job, inputs={"rows": DataInput(gone)}))
    assert why.startswith(f"Input 'rows': there is nothing at azureml://datastores/drops/paths/{name}/nothing/;")
    assert side.jobs.status(name) is None


def test_a_download_out_of_reach_is_told(side: Side) -> None:
    """`unreachable` returns a sentence that says that nodes can't resolve a server."""
    if isinstance(side.jobs, FakeJobs):
        side.jobs.offline = True
    assert side.jobs.unreachable("https://models.invalid/", "").startswith("The nodes can't reach it: ")


def test_what_a_pipeline_names_and_is_not_there_is_told(side: Side, unique: Callable[[], str]) -> None:
    """A missing registered component is reported with the step that names it, and missing data with the pipeline."""
    pipeline = pipeline_of(unique())
    assert side.jobs.lacks(pipeline) == []
    named = {"one": {"component": "azureml:none:3"}, "two": {"component": "azureml:none@latest"}}
    whys = side.jobs.lacks(replace(pipeline, rest={**pipeline.rest, "jobs": {**pipeline.rest["jobs"], **named}}))
    assert whys == [
        "Step 'one': component azureml:none:3 is not in the workspace; register it first.",
        "Step 'two': component azureml:none@latest is not in the workspace; register it first.",
    ]
    (why,) = side.jobs.lacks(replace(pipeline, inputs={"rows": DataInput(Asset("rows@latest"))}))
    assert "rows" in why


def test_canceling_ends_a_job_and_harms_nothing_else(side: Side, unique: Callable[[], str]) -> None:
    """`cancel` ends a running job. It does nothing when repeated, after the job's end, or for an unknown job."""
    name, done = unique(), unique()
    for one in (name, done):
        side.jobs.submit(side.job(one))
        side.run(one)
    side.jobs.cancel(name)
    side.until(name, JobState.CANCELED)
    side.jobs.cancel(name)
    side.jobs.cancel(unique())
    side.end(done)
    side.until(done, JobState.COMPLETED)
    side.jobs.cancel(done)
    side.until(name, JobState.CANCELED)
    side.until(done, JobState.COMPLETED)


def test_active_names_the_unfinished_jobs_and_their_clusters(side: Side, unique: Callable[[], str]) -> None:
    """A job is active, on its cluster, from submission to end. Later jobs come first."""
    first, second = unique(), unique()
    for name in (first, second):
        side.jobs.submit(side.job(name))
    assert [pair for pair in side.jobs.active() if pair[0] in (first, second)] == [
        (second, "cpu-cluster"),
        (first, "cpu-cluster"),
    ]
    side.run(first)
    side.end(first)
    side.until(first, JobState.COMPLETED)
    assert first not in dict(side.jobs.active())
    side.end(second)


def test_places_of_outputs_are_containers_and_prefixes(side: Side) -> None:
    """A short or long datastore path resolves to container and folder; an unknown datastore raises NotFound with
    its name."""
    long = "azureml://subscriptions/S/resourcegroups/R/workspaces/W/datastores/drops/paths/mnist/a/"
    assert side.jobs.place(Location("drops", "mnist/a/")) == Place("drops", "mnist/a/")
    assert side.jobs.place(Location("drops", "mnist/a")) == Place("drops", "mnist/a/")
    assert side.jobs.place(read_place(long)) == Place("drops", "mnist/a/")
    assert side.jobs.place(Location("drops", "")) == Place("drops", "")
    with pytest.raises(NotFound, match="nobody"):
        side.jobs.place(Location("nobody", "a/"))
    with pytest.raises(BadInput, match="not a path in a datastore"):
        side.jobs.place("/etc/passwd")


def test_the_schemas_problems_come_all_at_once(side: Side, unique: Callable[[], str]) -> None:
    """`problems` lists the path of every fault, and finds none in a valid job, resolved or not."""
    good = side.job(unique())
    assert side.jobs.problems(good) == []
    assert side.jobs.problems(replace(good, code="..", environment=Asset("trainyard@latest"))) == []
    bad = replace(good, command=read_command(""), environment="")
    found = {problem.path: problem.message for problem in side.jobs.problems(bad)}
    assert found.keys() == {"environment", "command"}
    assert "required" in found["command"]


def test_assets_are_registered_once_a_content(side: Side, tmp_path: Path) -> None:
    """Equal digests get the same id, different digests get different ids."""
    folder, file = snapshot(tmp_path), environment(tmp_path)
    ids: list[Asset] = [side.jobs.register_code(folder, digest * 32) for digest in ("a1", "a1", "a2")]
    ids += [side.jobs.register_environment(str(file), digest * 32) for digest in ("a1", "a1", "a2")]
    assert [side.jobs.code_id("a1" * 32), side.jobs.environment_id(str(file), "a1" * 32)] == [
        ids[0],
        ids[3],
    ]
    assert (ids[0], ids[3]) == (ids[1], ids[4])
    assert len(set(ids)) == 4


def test_the_vm_size_of_a_cluster_is_known(side: Side) -> None:
    """The VM size of a cluster is returned on every call; an unknown cluster has none."""
    assert [side.jobs.vm_size("cpu-cluster") for _ in range(2)] == ["Standard_D2s_v5", "Standard_D2s_v5"]
    assert side.jobs.vm_size("nobody") == ""


def test_check_is_silent_while_the_workspace_answers(side: Side) -> None:
    """`check` raises nothing on a live workspace."""
    side.jobs.check()


def test_a_workspace_on_another_account_is_a_bad_setting(azureml: LocalAzureML, clients: StorageClients) -> None:
    """Archives are copied within one account, so `check` reports a workspace whose data are in another account."""
    files = StorageBlobs(clients.blob)
    AzureMLJobs(azureml.workspace, FakeAssets(), files, "devstoreaccount1").check()
    with pytest.raises(BadSetting, match="keeps its data in storage account 'devstoreaccount1', the app in 'other'"):
        AzureMLJobs(azureml.workspace, FakeAssets(), files, "other").check()


# --- the real service only -------------------------------------------------------------------------------------------


def test_a_warm_submission_is_one_request(
    azureml: LocalAzureML, real: RealSide, unique: Callable[[], str], tmp_path: Path
) -> None:
    """Once code and environment are registered, a submission takes a single request to Azure ML."""

    def submit(name: str) -> None:
        code = real.jobs.register_code(snapshot(tmp_path), "b" * 64)
        env = real.jobs.register_environment(str(environment(tmp_path)), "b" * 64)
        real.jobs.submit(replace(real.job(name), command=read_command("python train.py"), code=code, environment=env))

    submit(unique())
    before = len(azureml.requests())
    warm = unique()
    submit(warm)
    assert [(r["method"], r["path"].rpartition("/")[2]) for r in azureml.requests()[before:]] == [("PUT", warm)]


def test_a_job_runs_in_its_registered_code(
    real: RealSide, clients: StorageClients, unique: Callable[[], str], tmp_path: Path
) -> None:
    """The job's working directory holds the snapshot's files without caches and hidden files, and `logs` returns
    its log."""
    name = unique()
    code = real.jobs.register_code(snapshot(tmp_path), "c" * 64)
    command = "python train.py && find . -type f | sort"
    real.jobs.submit(replace(real.job(name), command=read_command(command), code=code))
    assert real.until(name, *ENDED).state is JobState.COMPLETED
    place = real.jobs.folder(name).inside(JobFolderPart.LOGS)
    blobs = StorageBlobs(clients.blob)
    (log,) = [b.name for b in blobs.list(place)]
    lines = list(blobs.lines(place.container, log))
    assert "helper says übung" in lines
    assert [line for line in lines if line.startswith("./") and "__pycache__" not in line] == [
        "./lib/helper.py",
        "./train.py",
    ]


def test_registered_code_lies_in_a_container_of_its_own(
    real: RealSide, clients: StorageClients, tmp_path: Path
) -> None:
    """Registered files are stored under their digest in the container `code`, which nodes may only read; nothing
    else creates a container."""
    before = {found.name for found in clients.blob.list_containers()}
    real.jobs.register_code(snapshot(tmp_path), "9" * 64)
    names = [blob.name for blob in StorageBlobs(clients.blob).list(Place("code", f"{'9' * 64}/"))]
    assert names == [f"{'9' * 64}/{name}" for name in ("lib/helper.py", "train.py")]
    assert {found.name for found in clients.blob.list_containers()} - before <= {"code"}


def test_short_code_ids_work_too(real: RealSide, unique: Callable[[], str], tmp_path: Path) -> None:
    """A job file may name its code azureml:<name>:<version>, as in Azure ML's documentation."""
    name = unique()
    real.jobs.register_code(snapshot(tmp_path), "d" * 64)
    real.jobs.submit(
        replace(real.job(name), command=read_command("python train.py"), code=Asset(f"trainyard-{'d' * 16}:1"))
    )
    assert real.until(name, *ENDED).state is JobState.COMPLETED


def test_registering_at_the_same_time_does_no_harm(
    azureml: LocalAzureML, clients: StorageClients, tmp_path: Path
) -> None:
    """Eight independent processes get the same id for the same content."""
    folder, file = snapshot(tmp_path), environment(tmp_path)
    start = threading.Barrier(8)

    def register(_: int) -> tuple[Asset, Asset]:
        jobs = AzureMLJobs(azureml.workspace, FakeAssets(), StorageBlobs(clients.blob))
        start.wait()
        return jobs.register_code(folder, "e" * 64), jobs.register_environment(str(file), "e" * 64)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(register, range(8)))) == 1


def test_a_workspace_that_is_gone_is_unavailable(
    azureml: LocalAzureML, real: RealSide, unique: Callable[[], str]
) -> None:
    """If the workspace does not answer, every call raises Unavailable within seconds. (This test is last because it
    stops the workspace.)"""
    job, azureml_stopped = real.job(unique()), azureml.part.stop()
    assert azureml_stopped == 0
    calls: list[Callable[[], Any]] = [
        lambda: real.jobs.submit(job),
        lambda: real.jobs.status("a"),
        lambda: real.jobs.cancel("a"),
        lambda: real.jobs.active(),
        lambda: real.jobs.place(Location("new", "a/")),
        lambda: real.jobs.register_code(Path(), "f" * 64),
        lambda: real.jobs.check(),
    ]

    def kind_of(call: Callable[[], Any]) -> type[BaseException]:
        with pytest.raises(Unavailable) as caught:
            call()
        return caught.type

    with ThreadPoolExecutor(len(calls)) as pool:
        assert set(pool.map(kind_of, calls, timeout=30)) <= {NoAnswer, Unavailable}
