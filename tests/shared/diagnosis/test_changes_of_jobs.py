"""Changes to a job that a diagnosis advises besides its parameters: machine size and time limit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shared.api import records
from shared.clusters.model import Cluster
from shared.diagnosis.causes import Cause, Diagnosis
from shared.diagnosis.change import advised_change, advised_job_change
from shared.jobs.limits import Limits
from shared.kernel.errors import Impossible
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from shared.runs.intake.retry_and_continue import JobChanges, retry_run
from shared.runs.model import Run
from tests.fakes.ports import FakeClusters
from tests.fakes.world import ROUTE, World, trainers_folder

SIZES = {
    "cpu-cluster": "Standard_NC4as_T4_v3", "more-memory": "Standard_NC8as_T4_v3", "gpus": "Standard_NC24ads_A100_v4",
    "largest": "Standard_NC40ads_H100_v5", "unknown": "Standard_X1",
}  # fmt: skip
ANY = Limits(clusters=None, timeout_seconds=5_000)


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(trainers_folder(tmp_path), [replace(ROUTE, clusters=frozenset({"gpus"}))])
    made.clusters = FakeClusters([Cluster(name, 1, 4, 120, vm_size=size) for name, size in SIZES.items()])
    made.system = replace(made.system, clusters=made.clusters)
    made.blobs.put("drops", "shelf/a/1.bin")
    return made


def ended(world: World, state: str, log: str = "", seconds: float = 4) -> Run:
    name = create.create_run(world.system, RunRequest(template="mnist", data="drops/shelf/a")).name
    world.run_until_idle()
    world.blobs.put("azureml", f"ExperimentRun/dcid.{name}/user_logs/std_log_process_1.txt", log.encode())
    for status in ("Running", state):
        world.job_goes(name, status)
        world.deliver_all()
        world.clock.advance(seconds)
        world.run_until_idle()
    return world.only_run()


def test_the_smallest_machine_with_more_memory(world: World) -> None:
    """The advice is the smallest machine with more GPU or node memory, among the clusters that the limits allow."""
    run = ended(world, "Failed", "x")
    for cause, limits, cluster in (
        (Cause.CUDA_OOM, ANY, "gpus"),
        (Cause.HOST_OOM, ANY, "more-memory"),
        (Cause.CUDA_OOM, Limits(clusters=frozenset({"largest"})), "largest"),
        (Cause.CUDA_OOM, Limits(clusters=frozenset({"more-memory"})), None),
        (Cause.DISK_FULL, ANY, None),
    ):
        assert advised_job_change(cause, run, SIZES, limits).get("cluster") == cluster
    assert advised_job_change(Cause.CUDA_OOM, run, {"other": "Standard_NC4as_T4_v3"}, ANY) == {}


def test_twice_the_time_as_far_as_the_limits_allow(world: World) -> None:
    """A run that already has the longest time gets no advice."""
    run = ended(world, "Failed", "x")
    for seconds, longer in ((600, 1_200), (3_000, 5_000), (5_000, None), (0, None)):
        of_run = replace(run, asked=replace(run.asked, timeout_seconds=seconds))
        assert advised_job_change(Cause.TIME_LIMIT, of_run, {}, ANY).get("timeout_seconds") == longer


def test_a_run_without_a_batch_size_goes_to_a_larger_gpu(world: World) -> None:
    """The answer contains the advice, and a retry applies it; a retry beyond the route's limits is refused."""
    run = ended(world, "Failed", "epoch 1 loss 0.5\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n")
    change = records.run(run)["diagnosis"]["change_job"]
    assert change == {"cluster": "gpus"}
    again = retry_run(world.system, run.name, changes=JobChanges(**change))
    assert (again.asked.cluster, again.asked.request.cluster) == ("gpus", "gpus")
    assert again.name != retry_run(world.system, run.name).name
    with pytest.raises(Impossible, match="cluster is 'largest'; choose one of cpu-cluster, gpus"):
        retry_run(world.system, run.name, changes=JobChanges("largest"))
    with pytest.raises(Impossible, match="timeout_seconds"):
        retry_run(world.system, run.name, changes=JobChanges(timeout_seconds=90_000))


def test_a_run_that_reached_its_time_limit_has_a_diagnosis(world: World) -> None:
    """A run that Azure ML cancels at its limit has a diagnosis; a run that was canceled earlier has none."""
    assert ended(world, "Canceled", seconds=4).feature(Diagnosis) is None
    world.runs.rows.clear()
    run = ended(world, "Canceled", seconds=3_600)
    found = run.feature(Diagnosis)
    assert found is not None
    assert (found.cause, found.change_job) == (Cause.TIME_LIMIT, {})
    assert "time limit of 3600 s" in found.evidence[0].text


@pytest.mark.parametrize(
    ("said", "batch"),
    [
        ("", 32),
        ("Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which 1.12 GiB is free. Process 1 has "
         "14.60 GiB memory in use. Of the allocated memory 13.90 GiB is allocated by PyTorch", 32),
        ("Tried to allocate 60.00 GiB (GPU 0; 15.90 GiB total capacity; 512.00 MiB already allocated; 1 GiB free)", 8),
    ],
)  # fmt: skip
def test_the_batch_is_the_largest_half_of_a_half_that_fits_by_pytorchs_figures(said: str, batch: int) -> None:
    """The batch is halved until it fits PyTorch's figures: half of 64 would still need 30 of 16 GiB."""
    assert advised_change(Cause.CUDA_OOM, {"batch_size": 64}, said) == {"batch_size": batch}
