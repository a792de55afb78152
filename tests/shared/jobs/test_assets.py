"""The code and environment of a job: which of the trainers' two environments, and the settings of its nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.jobs.assets import Assets, assets, resolve
from shared.jobs.command import Command
from shared.jobs.location import Asset
from shared.jobs.spec import TRAINERS_ENVIRONMENT, JobSpec
from tests.fakes.azureml import FakeJobs

TRAINERS = Path(__file__).resolve().parents[3] / "trainers"
JOB = JobSpec(command=Command(("python train.py",)), environment=TRAINERS_ENVIRONMENT, cluster="c")


def sized(size: str) -> FakeJobs:
    """Return a workspace with one cluster of this VM size."""
    jobs = FakeJobs(["c"])
    jobs.vm_sizes["c"] = size
    return jobs


@pytest.mark.parametrize(
    ("size", "environment", "gpus"),
    [
        ("Standard_D2s_v3", "trainyard:", 0),
        ("STANDARD_NC4AS_T4_V3", "trainyard-gpu:", 1),  # in Azure ML's spelling
        ("Standard_ND96isr_H100_v5", "trainyard-gpu:", 8),
        ("Standard_NX9_v1", "trainyard-gpu:", 1),  # in the N family, but not in the table
    ],
)
def test_the_vm_size_decides(size: str, environment: str, gpus: int) -> None:
    """Clusters with GPUs get the trainers' environment with PyTorch for GPUs; the job says how many GPUs."""
    ids = assets(sized(size), TRAINERS, JOB)
    assert str(ids.environment).startswith(environment)
    sent = resolve(JOB, ids)
    assert sent.environment == ids.environment
    assert sent.variables == ({"TRAINYARD_GPUS": str(gpus)} if gpus else {})


def test_the_two_environments_have_their_own_versions() -> None:
    """A change of one conda file creates a new version of that environment only."""
    versions = {str(assets(sized(size), TRAINERS, JOB).environment) for size in ("Standard_D2s_v3", "Standard_NC6s_v3")}
    assert len({version.rpartition(":")[2] for version in versions}) == 2


def test_a_machine_without_a_cluster_decides_too() -> None:
    """On serverless compute the VM size in the job decides."""
    serverless = JobSpec(environment=TRAINERS_ENVIRONMENT, machine="Standard_NC24ads_A100_v4")
    assert assets(FakeJobs([]), TRAINERS, serverless).gpus == 1


def test_what_the_job_says_itself_stays() -> None:
    """A job keeps its own environment and number of GPUs; a missing cluster changes nothing."""
    own = JobSpec(environment=Asset("mine:1"), cluster="c", variables={"TRAINYARD_GPUS": "0"})
    ids = assets(sized("Standard_NC6s_v3"), TRAINERS, own)
    assert ids == Assets(gpus=1)
    assert resolve(own, ids) == own
    assert assets(FakeJobs([]), TRAINERS, JobSpec(cluster="gone")) == Assets()
