"""The launcher on the nodes, with real processes and one folder per node."""

from __future__ import annotations

import ast
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shared.jobs.batchai.job import Beside
from shared.jobs.batchai.translate import SPEC
from tests.batchai.documents import JOB_ROOT, RECIPES, ROOT, gloo, practitioner, project, retinanet
from tests.batchai.translating import spec_of, translated

LAUNCHER = Path(__file__).parents[2] / "trainers" / "batchai_launch.py"
PATIENCE = 60.0
# Writes its arguments and variables to a file named by its rank, in the test's folder.
TELL = """
import json, os, sys
name = os.environ.get("ROLE", "") + os.environ["OMPI_COMM_WORLD_RANK"]
with open(os.path.join(os.environ["TOLD"], name), "w") as file:
    json.dump({"arguments": sys.argv[1:], "variables": dict(os.environ)}, file)
"""
Json = dict[str, Any]


class Nodes:
    """The processes of one job, as Azure ML starts them, by node and rank."""

    def __init__(
        self, folder: Path, document: Json, beside: Beside | None = None, python: Path = Path(sys.executable)
    ) -> None:
        self.folder, self.python, (self.job, read) = folder, python, translated(document, beside)
        assert read.report.problems == []
        self.mpi = self.job["distribution"]["type"] == "mpi"
        self.changed = folder / "told"
        self.changed.mkdir()
        for kind in ("inputs", "outputs"):
            for name in self.job.get(kind, {}):
                (folder / kind / name).mkdir(parents=True)

    def lay(self, name: str, text: str) -> None:
        file = self.folder / "inputs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def run(self, **variables: str) -> list[tuple[int, str]]:
        """Exit status and output of every process, by rank."""
        nodes, per_node = self.job["resources"]["instance_count"], spec_of(self.job)["per_node"]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        started = [self._start(rank, nodes * per_node, per_node, port, variables) for rank in range(nodes * per_node)]
        outputs = [process.communicate(timeout=PATIENCE)[0] for process in started]
        return [(process.returncode, output) for process, output in zip(started, outputs, strict=True)]

    def _start(self, rank: int, world: int, per_node: int, port: int, more: dict[str, str]) -> subprocess.Popen[str]:
        node = self.folder / f"node-{rank // per_node}"
        node.mkdir(exist_ok=True)
        arguments = [
            f"{name}={self.folder / kind / name}" for kind in ("inputs", "outputs") for name in self.job.get(kind, {})
        ]
        own = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE") if self.mpi else ("RANK", "WORLD_SIZE")
        ranks = {own[0]: rank, own[1]: world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        path = os.pathsep.join((str(self.python.parent), os.environ["PATH"]))
        given = {**self.job["environment_variables"], "TOLD": str(self.changed), "PATH": path, **more}
        environment = {**{name: str(value) for name, value in ranks.items()}, **given}
        return subprocess.Popen(
            [str(self.python), str(LAUNCHER), *arguments],
            cwd=node, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def tells(self, name: str) -> Json:
        found: Json = json.loads((self.changed / name).read_text())
        return found


def test_an_old_command_line_finds_all_that_it_names(tmp_path: Path) -> None:
    """The recipe's own line gets its rank and meeting point, and every documented variable of all jobs is set."""
    nodes = Nodes(tmp_path, gloo(jobPreparation=None))
    nodes.lay("scripts/pytorch/mnist_trainer.py", TELL)

    assert [status for status, _ in nodes.run()] == [0, 0]
    for rank in (0, 1):
        told = nodes.tells(str(rank))
        meet = told["variables"]["AZ_BATCHAI_PYTORCH_INIT_METHOD"]
        assert told["arguments"] == [
            "--epochs", "10", "--world-size", "2", "--dist-backend", "gloo", "--dist-url", meet, "--rank", str(rank),
        ]  # fmt: skip
        found = told["variables"]
        assert meet.startswith("tcp://127.0.0.1:")
        for name in ("MOUNT_ROOT", "JOB_MOUNT_ROOT", "JOB_TEMP", "JOB_TEMP_DIR", "SHARED_JOB_TEMP", "STDOUTERR_DIR"):
            assert Path(found[f"AZ_BATCHAI_{name}"]).is_absolute(), name
        assert (found["AZ_BATCHAI_NUM_GPUS"], found["AZ_BATCHAI_PYTORCH_BACKEND"]) == ("0", "gloo")
        assert found["AZ_BATCH_HOST_LIST"] == "127.0.0.1,127.0.0.1"


def test_the_preparation_runs_once_on_each_node(tmp_path: Path) -> None:
    """Four processes on two nodes run the preparation twice; its failure fails the job."""
    settings = {"commandLine": "mpirun -np 4 python -c pass"}
    count = {"commandLine": 'echo done >> $TOLD/prepared; test -n "$AZ_BATCHAI_JOB_TEMP"'}
    document: Json = {"properties": {"nodeCount": 2, "customToolkitSettings": settings, "jobPreparation": count}}
    for name in ("works", "fails"):
        (tmp_path / name).mkdir()
    nodes = Nodes(tmp_path / "works", document)
    assert [status for status, _ in nodes.run()] == [0, 0, 0, 0]
    assert (nodes.changed / "prepared").read_text() == "done\ndone\n"

    document["properties"]["jobPreparation"] = {"commandLine": "exit 3"}
    failed = Nodes(tmp_path / "fails", document).run()
    assert all(status == 1 for status, _ in failed)
    assert "The job preparation failed with status 3" in failed[0][1]


def test_a_local_node_installs_nothing(tmp_path: Path) -> None:
    """On the local cloud the nodes share a person's machine, so installers are printed and not run."""
    line = {"commandLine": "apt update; sudo -E apt-get install mpi -y; pip install horovod"}
    nodes = Nodes(tmp_path, {"properties": {"nodeCount": 1, "customToolkitSettings": {"commandLine": "true"}, "jobPreparation": line}})  # fmt: skip  # noqa: E501

    [(status, output)] = nodes.run(TRAINYARD_LOCAL_NODES="1")
    assert status == 0
    assert "not run on a local node, which shares the machine's packages: apt-get install mpi -y" in output
    assert "pip install horovod" in output


def test_tensorflow_gets_its_cluster(tmp_path: Path) -> None:
    """Worker 0 is the master, the server runs beside it until all workers are done, and all have the same hosts."""
    nodes = Nodes(tmp_path, RECIPES["TensorFlow-GPU-Distributed"])
    serve = """
import time
if '--job_name=ps' in sys.argv: time.sleep(600)
while True:  # as workers wait for their server
    try:
        json.load(open(os.path.join(os.environ['TOLD'], 'ps0')))
        break
    except (OSError, ValueError):
        time.sleep(0.05)
"""
    told = TELL.replace('os.environ.get("ROLE", "")', "json.loads(os.environ['TF_CONFIG'])['task']['type']")
    nodes.lay("external/tensorflow_samples/mnist_replica.py", told + serve)

    assert [status for status, _ in nodes.run()] == [0, 0]
    master, worker, server = nodes.tells("master0"), nodes.tells("worker1"), nodes.tells("ps0")
    configs = [json.loads(one["variables"]["TF_CONFIG"]) for one in (master, worker, server)]
    assert [config["task"] for config in configs] == [
        {"type": "master", "index": 0},
        {"type": "worker", "index": 1},
        {"type": "ps", "index": 0},
    ]
    assert len({json.dumps(config["cluster"]) for config in configs}) == 1
    hosts = configs[0]["cluster"]
    assert (len(hosts["worker"]), len(hosts["ps"])) == (2, 1)
    assert f"--ps_hosts={hosts['ps'][0]}" in worker["arguments"]
    assert "--task_index=1" in worker["arguments"]
    output = next(a for a in master["arguments"] if a.startswith("--output_dir="))
    assert output == f"--output_dir={tmp_path / 'outputs' / 'models' / 'Models'}"


def test_mpi_ranks_and_directories(tmp_path: Path) -> None:
    """Eight processes of an mpirun line have the ranks of torch and of MPI, a host file, and the output directory."""
    nodes = Nodes(tmp_path, retinanet())
    nodes.lay("afs_batchai/scripts/train.py", TELL)

    assert [status for status, _ in nodes.run()] == [0] * 8
    found = nodes.tells("5")
    assert found["variables"]["OMPI_COMM_WORLD_LOCAL_RANK"] == "1"
    assert Path(found["variables"]["AZ_BATCHAI_OUTPUT_OUTPUTFILES"]) == tmp_path / "outputs" / "OUTPUTFILES" / "output"
    assert found["arguments"][:4] == [
        "--steps", "500", "--tensorboard-dir", f"{found['variables']['AZ_BATCHAI_OUTPUT_OUTPUTFILES']}/tensorboard",
    ]  # fmt: skip
    hosts = Path(found["variables"]["AZ_BATCHAI_MPI_HOST_FILE"]).read_text()
    assert hosts == "127.0.0.1 slots=4\n127.0.0.1 slots=4\n"


def test_under_mpi_torch_finds_its_ranks_too(tmp_path: Path) -> None:
    """A toolkit that uses MPI is started by MPI, and a script that moved to torch.distributed works as well."""
    nodes = Nodes(tmp_path, RECIPES["CNTK-GPU-Python-Distributed"] | {"properties": {**RECIPES["CNTK-GPU-Python-Distributed"]["properties"], "jobPreparation": None}})  # fmt: skip  # noqa: E501
    nodes.lay("external/cntk_samples/ConvNet_CIFAR10_DataAug_Distributed.py", TELL)

    assert (nodes.mpi, [status for status, _ in nodes.run()]) == (True, [0, 0])
    found = nodes.tells("1")["variables"]
    assert (found["RANK"], found["WORLD_SIZE"], found["LOCAL_RANK"]) == ("1", "2", "0")


def test_a_script_that_imports_horovod_is_told_what_to_do(tmp_path: Path) -> None:
    """The message names torch.distributed; an environment that has Horovod is left alone."""
    nodes = Nodes(tmp_path, RECIPES["Horovod-PyTorch"] | {"properties": {**RECIPES["Horovod-PyTorch"]["properties"], "nodeCount": 1, "jobPreparation": None}})  # fmt: skip  # noqa: E501
    nodes.lay("scripts/horovod/pytorch_mnist.py", "import horovod.torch as hvd\n")
    [(status, output)] = nodes.run()
    assert status == 1
    assert "torch.distributed" in output

    real = tmp_path / "site" / "horovod"
    real.mkdir(parents=True)
    (real / "__init__.py").write_text("")
    (real / "torch.py").write_text("print('the real one')")
    (tmp_path / "node-0" / ".batchai").rename(tmp_path / "before")
    [(status, output)] = nodes.run(PYTHONPATH=str(real.parent))
    assert (status, output.strip()) == (0, "the real one")


def test_only_a_death_after_the_end_is_forgiven(tmp_path: Path) -> None:
    """A script that has finished its work succeeds even if its interpreter aborts at shutdown; an earlier abort
    fails."""
    dies = "import os\nclass Last:\n    abort = os.abort\n    def __del__(self): self.abort()\nlast = Last()\n"
    statuses = []
    for number, text in enumerate((dies, f"{dies}raise ValueError", "import os; os.abort()", f"{dies}os._exit(3)")):
        folder = tmp_path / str(number)
        folder.mkdir()
        nodes = Nodes(folder, {"properties": {"nodeCount": 1, "pyTorchSettings": {"pythonScriptFilePath": f"{ROOT}/x/s.py"}}})  # fmt: skip  # noqa: E501
        nodes.lay("x/s.py", text)
        statuses.append(nodes.run()[0][0])

    assert statuses == [0, 134, 134, 3]


def test_a_run_keeps_what_it_writes_to_itself(tmp_path: Path) -> None:
    """A run sees a mount's files together with its own writes, also in existing folders; its writes go to outputs."""
    script = (
        "import os, sys\n"
        "source, target = sys.argv[2], sys.argv[6]\n"
        "assert open(os.path.join(source, 'train', 'a.txt')).read() == 'an ant'\n"
        "assert os.listdir(target) == []\n"
        "open(os.path.join(target, 'mymodel.pt'), 'w').write('new')\n"
        "open(os.path.join(os.environ['AZ_BATCHAI_MOUNT_ROOT'], 'logs', 'stray.txt'), 'w').write('stray')\n"
        "open(os.path.join(source, 'train', 'b.txt'), 'w').write('beside the ant')\n"
    )
    path = "logs/scripts/pytorch/PyTorchTransferLearning.py"
    nodes = Nodes(tmp_path, practitioner(), Beside(project=project(), files={path: script}))
    nodes.lay("datalake/hymenoptera_data/train/a.txt", "an ant")
    nodes.lay("datalake/models/mymodel.pt", "of another run")

    assert nodes.run() == [(0, "")]
    assert (tmp_path / "outputs/models/mymodel.pt").read_text() == "new", "where predict looks for a model"
    assert (tmp_path / "outputs/mounts/datalake/hymenoptera_data/train/b.txt").read_text() == "beside the ant"
    assert [path.name for path in (tmp_path / "inputs/datalake/hymenoptera_data/train").iterdir()] == ["a.txt"]
    assert (tmp_path / "outputs/mounts/logs/stray.txt").read_text() == "stray"
    assert (tmp_path / "inputs/datalake/models/mymodel.pt").read_text() == "of another run"


def test_a_run_is_told_that_it_deleted_nothing(tmp_path: Path) -> None:
    """A file that a job deletes from a mount disappears only from the job's view; the log names each such file."""
    lines = f"rm {ROOT}/old/a.txt && rm -r {ROOT}/old/deep && touch {ROOT}/old/new.txt && rm {ROOT}/old/new.txt"
    document: Json = {"properties": {"nodeCount": 1, "customToolkitSettings": {"commandLine": lines}}}
    nodes = Nodes(tmp_path, document)
    for name in ("a.txt", "b.txt", "deep/c.txt"):
        nodes.lay(f"old/{name}", "kept")
    [(status, output)] = nodes.run()
    assert status == 0
    assert "Mount old: deleted for this job only, because mounts are read-only: a.txt, deep/c.txt." in output
    assert (tmp_path / "inputs/old/a.txt").read_text() == "kept"


def test_variables_of_the_job_may_name_batch_ais(tmp_path: Path) -> None:
    """An environment variable, an input directory and a command of a single master node are expanded on the node."""
    properties = {
        "nodeCount": 2,
        "customToolkitSettings": {"commandLine": f"python {JOB_ROOT}/scripts/tell.py"},
        "environmentVariables": [{"name": "DATA", "value": "${AZ_BATCHAI_INPUT_SET}/x"}],
        "inputDirectories": [{"id": "SET", "path": f"{ROOT}/external/set"}],
    }
    nodes = Nodes(tmp_path, {"properties": properties})
    nodes.lay("scripts/tell.py", TELL)

    outputs = nodes.run()
    assert [status for status, _ in outputs] == [0, 0]
    assert "this node has nothing to do" in outputs[1][1]
    found = nodes.tells("0")["variables"]
    assert found["DATA"] == f"{found['AZ_BATCHAI_MOUNT_ROOT']}/external/set/x"
    assert SPEC in found


@pytest.mark.parametrize("version", ["2.7", "3.5", "3.6"])
def test_the_launcher_runs_with_the_python_of_old_images(tmp_path: Path, version: str) -> None:
    """With the old Python of images from 2018, the launcher lays out mounts, meets the other process and runs the
    script."""
    python = next(iter(sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))), None)
    if python is None:
        pytest.skip(f"there is no Python {version} in ~/.pyenv")
    nodes = Nodes(tmp_path, gloo(jobPreparation=None), python=python)
    nodes.lay("scripts/pytorch/mnist_trainer.py", TELL)
    assert [status for status, _ in nodes.run()] == [0, 0]
    assert nodes.tells("1")["arguments"][-2:] == ["--rank", "1"]


def test_the_launcher_has_no_newer_syntax() -> None:
    """Without an old Python at hand, the syntax tree reveals the commonest mistakes."""
    text = LAUNCHER.read_text("utf-8")
    tree = ast.parse(text, feature_version=(3, 4))
    newer = (ast.AnnAssign, ast.JoinedStr, ast.AsyncFunctionDef, ast.YieldFrom, ast.Nonlocal)
    assert [node.lineno for node in ast.walk(tree) if isinstance(node, newer)] == []
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert [f.name for f in functions if f.returns or any(each.annotation for each in f.args.args)] == []
    assert [word for word in ("removeprefix(", "exist_ok", "shutil.which", "contextlib.suppress") if word in text] == []
