"""Batch AI's documents, unchanged, on the local cloud: from a drop, over HTTP, and from a project's folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulators.process import wait_for
from local.cloud import Cloud, Options
from tests.batchai.documents import gloo, practitioner, project, retinanet, retinanet_cluster
from tests.e2e import typist
from tests.e2e.lab import PATIENCE, Lab

TRAINER = Path(__file__).parents[1] / "batchai" / "mnist_trainer.py"
ROUTES = "routes: {mnist: {trainer: mnist, cluster: cpu-cluster, nodes: 2, max_nodes: 4, max_processes: 8}}"
# Takes the arguments of the RetinaNet script, and reduces something over all processes.
RETINANET = """
import argparse, os, pathlib
import torch, torch.distributed as dist
parser = argparse.ArgumentParser()
for name in ("--steps", "--tensorboard-dir", "--snapshot-path"):
    parser.add_argument(name)
parser.add_argument("--no-evaluation", action="store_true")
coco = parser.add_subparsers().add_parser("coco")
coco.add_argument("coco_path", type=pathlib.Path)
args = parser.parse_args()
assert (args.coco_path / "annotations" / "instances_train.json").exists()
dist.init_process_group("gloo")
total = torch.ones(())
dist.all_reduce(total)
if dist.get_rank() == 0:
    pathlib.Path(args.snapshot_path, "checkpoint-01.h5").write_text(f"{total.item():.0f} processes")
dist.barrier()
"""
TRANSFER = """
import argparse, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--input_dir", type=pathlib.Path)
parser.add_argument("--output_dir", type=pathlib.Path)
parser.add_argument("--epochs", type=int)
args = parser.parse_args()
for epoch in range(args.epochs):
    print(f"Epoch {epoch}/{args.epochs - 1}")
(args.output_dir / "mymodel.pt").write_text(",".join(sorted(p.name for p in args.input_dir.iterdir())))
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    home = tmp_path_factory.mktemp("batchai")
    (home / "routes.yaml").write_text(ROUTES)
    with Cloud.start(home / "cloud", Options(routes=home / "routes.yaml", node_start_seconds=0.2)) as cloud:
        yield Lab(cloud, home)


def log(lab: Lab, run: str, rank: int) -> str:
    with urllib.request.urlopen(f"{lab.cloud.api}/runs/{run}/logs?rank={rank}", timeout=30) as response:
        text: str = response.read().decode()
        return text


def post(lab: Lab, path: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(f"{lab.cloud.api}/{path}", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def test_the_gloo_recipe_trains_on_two_nodes(lab: Lab) -> None:
    """Dropped as its document prints it, with its script, the recipe trains one model with all its ranks."""
    files = {"mnist_trainer.py": TRAINER.read_bytes(), "job.json": json.dumps(gloo()).encode()}
    lab.upload("mnist/gloo", files)
    run = lab.archived("mnist/gloo")

    assert run["state"] == "completed", run["reason"]
    assert "Read as a Batch AI job" in lab.drop("mnist/gloo")["why"]
    for rank in (0, 1):
        text = log(lab, run["run"], rank)
        assert f"Epoch: [10] rank {rank} of 2" in text
        assert "the same weights" in text
        assert text.count("not run on a local node") == 3  # apt twice and pip once, on each node


def test_the_horovod_job_trains_with_torch_on_eight_processes(lab: Lab) -> None:
    """Submitted over HTTP with its cluster.json, mpirun's eight processes become eight torch.distributed processes
    on two nodes."""
    lab.upload("other/shares", {"afs/scripts/train.py": RETINANET.encode()})
    lab.upload("other/shares", {"coco/annotations/instances_train.json": b"{}"})
    mounts = {"batchaicoco": "drops/other/shares/afs", "coco": "drops/other/shares/coco"}
    asked = {
        "job": retinanet(),
        "cluster": "cpu-cluster",
        "batchai": {"cluster": retinanet_cluster(), "mounts": mounts},
    }
    told = post(lab, "runs?dry_run=true", asked)
    assert {finding["field"] for finding in told["report"] if finding["lossy"]} == {
        "properties.containerSettings",
        "cluster.properties.nodeSetup.setupTask",
    }
    name = post(lab, "runs", asked)["run"]
    run = wait_for(lambda: (r := lab.get(f"runs/{name}")) and r["archived_at"] and r, PATIENCE, "the run's end", 0.3)

    assert run["state"] == "completed", run["reason"]
    assert "named-outputs/OUTPUTFILES/output/checkpoint-01.h5" in lab.output(run)
    with urllib.request.urlopen(
        f"{lab.cloud.api}/runs/{name}/artifacts/named-outputs/OUTPUTFILES/output/checkpoint-01.h5", timeout=30
    ) as response:
        assert response.read() == b"8 processes"


def test_a_projects_folder_runs_and_comes_home(lab: Lab, tmp_path: Path) -> None:
    """`run` shows the log, fetches this run's model and logs, and releases the cluster; `pause` ends a lease."""
    lab.upload("other/lake", {"hymenoptera_data/ants.txt": b"ants", "hymenoptera_data/bees.txt": b"bees"})
    described = project(clusterName="cpu-cluster", blobContainerName="lake", experimentName="ants_and_bees")
    (tmp_path / "project.json").write_text(json.dumps(described))
    (tmp_path / "job.json").write_text(json.dumps(practitioner()))
    (tmp_path / "PyTorchTransferLearning.py").write_text(TRANSFER)

    done = trainyard(lab, tmp_path, "run", "--mount", "lake=drops/other/lake")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Epoch 24/24" in done.stdout
    assert re.search(r"cpu-cluster: \w+", done.stderr), done.stderr
    [model] = (tmp_path / "models").rglob("mymodel.pt")
    assert model.read_text() == "ants.txt,bees.txt"
    [text] = (tmp_path / "logs").rglob("std_log_process_0.txt")
    assert "Epoch 0/24" in text.read_text()

    (tmp_path / "project.json").write_text(json.dumps({**described, "persistCluster": "True"}))
    assert trainyard(lab, tmp_path, "run", "--mount", "lake=drops/other/lake").returncode == 0
    assert [lease["cluster"] for lease in lab.get("leases")] == ["cpu-cluster"]
    paused = trainyard(lab, tmp_path, "pause")
    assert (paused.returncode, lab.get("leases")) == (0, []), paused.stderr


def test_a_script_beside_the_job_travels_with_it(lab: Lab, tmp_path: Path) -> None:
    """`import job.json --follow` needs nothing in storage: the script beside the job file is put where the old
    command line expects it."""
    (tmp_path / "mnist_trainer.py").write_text("import sys; print('with', *sys.argv[1:3])")
    (tmp_path / "job.json").write_text(json.dumps(gloo(jobPreparation=None)))

    done = trainyard(lab, tmp_path, "import", "job.json", "--cluster", "cpu-cluster", "--follow")
    assert (done.returncode, "with --epochs 10" in done.stdout) == (0, True), done.stdout + done.stderr


def test_import_prints_what_it_would_do(lab: Lab, tmp_path: Path) -> None:
    """--dry-run prints YAML that azure-ai-ml loads and the report, and creates nothing; --strict fails if anything
    is lost."""
    modern = gloo(containerSettings={"imageSourceRegistry": {"image": "pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime"}})
    (tmp_path / "job.json").write_text("\ufeff" + json.dumps(modern).replace('"gloo"}', '"gloo",}'))
    (tmp_path / "lossy.json").write_text(json.dumps(gloo(schedulingPriority="high")))
    before = [run["run"] for run in lab.get("runs")["runs"]]

    done = trainyard(lab, tmp_path, "import", "job.json", "--cluster", "cpu-cluster", "--dry-run", "--strict")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not now: $AZ_BATCHAI_JOB_MOUNT_ROOT/scripts is empty" in done.stderr
    (tmp_path / "job.yaml").write_text(done.stdout)
    script = "import sys, azure.ai.ml as ml; print(ml.load_job(sys.argv[1]).command)"
    loaded = subprocess.run([sys.executable, "-c", script, tmp_path / "job.yaml"], capture_output=True, text=True)
    assert loaded.stdout.startswith("python batchai_launch.py"), loaded.stderr

    strict = trainyard(lab, tmp_path, "import", "lossy.json", "--cluster", "cpu-cluster", "--strict")
    assert (strict.returncode, "! properties.schedulingPriority" in strict.stderr) == (1, True)
    assert [run["run"] for run in lab.get("runs")["runs"]] == before


def test_a_request_that_loses_anything_may_be_refused(lab: Lab) -> None:
    """`strict` also applies over HTTP, and a mount without files is reported before a job fails on it."""
    for change, options, code in (
        ({"schedulingPriority": "high"}, {"strict": True}, "lossy"),
        ({}, {}, "no_data"),
        ({"nodeCount": 0}, {}, "bad_batchai"),
    ):
        body = {"job": gloo(**change), "cluster": "cpu-cluster", "batchai": options}
        with pytest.raises(urllib.error.HTTPError) as refused:
            post(lab, "runs", body)
        assert json.load(refused.value)["code"] == code


def trainyard(lab: Lab, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TRAINYARD_URL": lab.cloud.api, "TRAINYARD_CWD": str(folder)}
    return typist.run(arguments, environment, PATIENCE)
