"""An elastic run on the local cloud with real members, the real rendezvous in Azurite's tables, and a lost node."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulators.process import wait_for
from local.cloud import Cloud, Options
from tests.e2e import typist
from tests.e2e.lab import Lab

ROOT = Path(__file__).resolve().parents[2]
CIFAR = ROOT.parent / "shared" / "data" / "cifar-10-small-python.tar.gz"
ROUTES = "routes: {cifar: {trainer: cifar_elastic, cluster: cpu-cluster, nodes: {min: 1, max: 2}}}"
INPUTS: dict[str, Any] = {"epochs": 2, "width": 8, "batch_size": 64, "checkpoint_every": 5}

PATIENCE = 240.0  # seconds; several processes import torch at once, again and again

pytestmark = pytest.mark.skipif(not CIFAR.is_file(), reason=f"needs {CIFAR.name} in ../shared/data, no part of this")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    (tmp_path / "routes.yaml").write_text(ROUTES)
    options = Options(routes=tmp_path / "routes.yaml", node_start_seconds=3, preemption_grace_seconds=0.1)
    with Cloud.start(tmp_path / "cloud", options) as cloud:
        yield Lab(cloud, tmp_path)


@pytest.mark.timeout(600)
def test_a_run_goes_on_when_its_first_node_is_lost(lab: Lab) -> None:
    """Two members train together, each with its own view of the mounts, as in Azure. Azure preempts the first node,
    so its job fails; another job replaces it without using a resubmission. The run completes, with each step
    counted once."""
    lab.control(f"{lab.cloud.azureml}/control/faults", {"mounts": "own"}, "PUT")
    job = json.dumps({"inputs": INPUTS}).encode()
    lab.upload("cifar/small", {CIFAR.name: CIFAR.read_bytes(), "job.json": job})
    name = lab.drop_that_is("cifar/small", "sealed")["run"]

    def series(metric: str) -> list[list[float]]:
        found: list[list[float]] = lab.get(f"runs/{name}/metrics")["series"].get(metric, [])
        return found

    wait_for(lambda: [p for p in series("world_size") if p[1] == 2], PATIENCE, "two members to train together", 1)
    env = {**os.environ, "TRAINYARD_CLOUD": str(lab.cloud.home)}
    evict = [sys.executable, "-m", "cli", "evict", name, "--node", "0"]
    done = subprocess.run(evict, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    run = wait_for(lambda: (r := lab.get(f"runs/{name}"))["archived_at"] and r, PATIENCE, "the run to be archived", 1)

    assert run["state"] == "completed", run["reason"]
    sizes = [size["nodes"] for size in run["elastic"]["sizes"]]
    assert 2 in sizes
    assert 1 in sizes[sizes.index(2) :], "the loss of a node shows in the run's size"
    assert "PreemptionError" in run["elastic"]["losses"][0]["why"]
    assert run["elastic"]["members"][0]["attempt"] == 2
    assert run["elastic"]["resubmitted"] == 0
    steps = [step for step, _, _ in series("train_loss")]
    assert steps == sorted(set(steps)), "a step that was done again is counted once"
    files = lab.output(run)
    assert {"models/model.json", "metrics/metrics.jsonl", "logs/m0-1/std_log.txt"} <= files.keys()
    assert not any("checkpoints" in file for file in files)
    said = typist.run(["logs", name, "--raw"], env).stdout.split("\n")
    for file in (file for file in files if re.fullmatch(r"logs/m\d-\d/std_log.txt", file)):
        mark = f"{file.split('/')[1]} | "
        shown = sum(len(text.removeprefix(mark).encode()) + 1 for text in said if text.startswith(mark))
        assert shown - files[file] in (0, 1), "`logs` shows of all jobs as one every byte that each wrote, once"
