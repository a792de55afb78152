"""The command line as a person uses it, on one local cloud: drop, follow, fetch, show, and every failure."""

from __future__ import annotations

import hashlib
import itertools
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import nbformat
import pytest
from azure.storage.blob import ContainerClient
from nbclient import NotebookClient
from PIL import Image

from emulators.process import wait_for
from local import digits
from local.cloud import Cloud, Options
from tests.e2e.desk import ROOT, Desk, one_node_each
from tests.e2e.notebook import NOTEBOOK

LINES = 300
TALK = f"""import time
for i in range({LINES}): time.sleep(0.01); print(i, 'größe ✓ 🚂 модель', flush=True)"""

LONG = """import time
for i in range(600): print('second', i, flush=True); time.sleep(1)"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("desk")
    digits.write(folder / "digits")
    (folder / "digits" / "job.yaml").write_text("inputs:\n  epochs: 4\n")
    with Cloud.start(folder / "cloud", Options(node_start_seconds=0.2, routes=one_node_each(folder))) as cloud:
        yield Desk(cloud, folder)


@pytest.fixture(scope="module")
def run(desk: Desk) -> dict[str, Any]:
    """A run of the digits, dropped and followed to its end."""
    told: dict[str, Any] = desk.ask("drop", "digits", "mnist/d1", "--follow")
    return told


def manifest(desk: Desk, run: dict[str, Any]) -> dict[str, Any]:
    """The files of the run's archive by name, read without the API."""
    _, _, folder = run["output"].partition("/")
    with ContainerClient.from_connection_string(desk.cloud.connection_string, "output") as output:
        told = json.loads(output.download_blob(f"{folder}/manifest.json").readall())
    return {file["name"]: file for file in told["files"]}


def test_a_drop_is_followed_to_its_model(run: dict[str, Any]) -> None:
    """drop --follow uploads a folder, waits for its run, and prints how the run ended."""
    assert (run["state"], run["drop"]) == ("completed", "mnist/d1")
    assert run["metrics"]["last"]["test_accuracy"] > 0.9


def test_a_drop_once_uploaded_is_not_uploaded_again(desk: Desk, run: dict[str, Any]) -> None:
    """The same drop again uploads nothing and makes no run."""
    again = desk.ask("drop", "digits", "mnist/d1")

    assert (again["files"], again["kept"], again["closed"]) == (0, 5, False)
    assert [name for name in desk.runs() if name.startswith("mnist-")] == [run["run"]]


def test_what_is_fetched_is_what_the_manifest_says(desk: Desk, run: dict[str, Any]) -> None:
    """fetch downloads the manifest and every file with its size and MD5; a second fetch repairs damaged files only."""
    first = desk.ask("fetch", run["run"])
    folder, wanted = Path(first["folder"]), manifest(desk, run)

    assert folder == desk.folder / run["run"]
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert there == {*wanted, "manifest.json", ".fetched.json"}
    assert json.loads(Path(first["manifest"]).read_text("utf-8"))["source_job"] == run["run"]
    for name, file in wanted.items():
        content = (folder / name).read_bytes()
        assert len(content) == file["size"]
        assert file["md5"] in ("", hashlib.md5(content).hexdigest())  # Azurite has no MD5 of an append blob
    (folder / "models" / "model.safetensors").write_bytes(b"damaged")
    assert desk.ask("fetch", run["run"])["new"] == 1
    assert (folder / "models" / "model.safetensors").stat().st_size == wanted["models/model.safetensors"]["size"]


def test_curves_are_drawn(desk: Desk, run: dict[str, Any]) -> None:
    """metrics --png writes a picture into the current folder."""
    told = desk.ask("metrics", run["run"], "--png", "curves.png")

    assert told["png"] == str(desk.folder / "curves.png")
    assert (desk.folder / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_notebook_runs(desk: Desk, run: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """In a kernel, on a folder from `fetch`, the notebook draws the curves and the model's predictions."""
    Image.new("L", (28, 28)).save(desk.folder / "digit.png")
    archive = desk.ask("fetch", run["run"], "--to", "whole")["folder"]
    monkeypatch.delenv("TRAINYARD_CLOUD", raising=False)
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]  # nbformat has no types
    at = next(i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", []))
    told = f"ARCHIVE = {archive!r}\nFILES = [{str(desk.folder / 'digit.png')!r}]"
    given = nbformat.v4.new_code_cell(told)  # type: ignore[no-untyped-call]
    notebook.cells.insert(at + 1, given)
    NotebookClient(notebook, timeout=90, resources={"metadata": {"path": str(ROOT / "examples")}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]

    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    said = "".join(output.get("text", "") for output in outputs)
    assert "mnist.train.Net" in said
    assert "digit.png: " in said


class BadLine:
    """A proxy before the API that cuts each connection after some bytes of the answer, at any position."""

    LIMITS = (300, 500, 1000, 2000, 10_000)  # bytes for successive connections, repeated

    def __init__(self, api: str) -> None:
        target = urlsplit(api)
        self._target = (target.hostname or "", target.port or 80)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}{target.path}"
        self.cuts = 0

    def __enter__(self) -> BadLine:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)  # close alone would leave accept waiting
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):
            for limit in itertools.cycle(self.LIMITS):
                near, _ = self._server.accept()
                far = socket.create_connection(self._target)
                for ends, most in ((near, far), None), ((far, near), limit):
                    threading.Thread(target=self._pump, args=(*ends, most), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, limit: int | None) -> None:
        left = limit
        with suppress(OSError), source, sink:
            while data := source.recv(4096 if left is None else min(left, 4096)):
                sink.sendall(data)
                if left is not None and not (left := left - len(data)):
                    self.cuts += 1
                    break
            for end in (source, sink):
                end.shutdown(socket.SHUT_RDWR)


def test_a_follow_over_a_bad_line_loses_nothing(desk: Desk) -> None:
    """Although connections are cut inside answers, the followed log has every line once and no broken character."""
    with BadLine(desk.cloud.api) as line:
        done = desk.type("submit", "--job", desk.job("talk.json", TALK), "--follow", "--url", line.url)
    said = [line for line in done.stdout.splitlines() if "модель" in line]

    assert said == [f"{i} größe ✓ 🚂 модель" for i in range(LINES)]
    assert line.cuts >= 4


def test_a_log_goes_on_at_its_offset(desk: Desk) -> None:
    """logs prints the offset that it reached; a second call continues at that offset, and both together are the
    whole log."""
    (run, *_) = desk.ask("runs", "--experiment", "talk", "--state", "completed")
    whole = desk.type("logs", run["run"]).stdout
    begin = len(whole[: len(whole) // 2].encode())
    rest = desk.type("logs", run["run"], "--offset", str(begin)).stdout

    assert whole.encode()[begin:].decode() == rest
    assert len(whole.splitlines()) == LINES


def test_a_failed_run_gives_no_model(desk: Desk) -> None:
    """Following a failed run ends with status 4 and the reason; fetch downloads only its logs, also with status 4."""
    job = desk.job("fail.json", "raise SystemExit('no luck')")
    run = desk.ask("submit", "--job", job, "--follow", expect=4)
    assert "no luck" in run["reason"]
    fetched = desk.ask("fetch", run["run"], expect=4)

    assert {name.partition("/")[0] for name in fetched["files"]} == {"logs"}
    assert "is failed and has no models" in desk.type("fetch", run["run"], "--only", "models", expect=4).stderr
    assert not (desk.folder / run["run"] / "models").exists()


def interrupted_follow(desk: Desk, run: str) -> tuple[str, str]:
    """Follow a run's log and press Ctrl-C after its first line. Return the output and the offset to resume at."""
    argv = [sys.executable, "-m", "cli", "logs", "-f", run]
    with subprocess.Popen(argv, cwd=ROOT, env=desk.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        assert p.stdout is not None
        assert p.stderr is not None
        first = p.stdout.readline()
        p.send_signal(signal.SIGINT)
        told, said = first + p.stdout.read(), p.stderr.read()
    assert p.returncode == 130
    return told, said.split("--offset ")[1].strip()


def test_the_same_key_is_the_same_run(desk: Desk) -> None:
    """A key used twice makes one run. Ctrl-C leaves the run and prints where to resume. cancel ends the run, which
    has one retry."""
    job, key = desk.job("long.json", LONG), ("--key", "one")
    name = desk.type("submit", "--job", job, *key).stdout.strip()
    assert desk.type("submit", "--job", job, *key).stdout.strip() == name
    assert "wait for its end" in desk.type("retry", name, expect=1).stderr
    begin, offset = interrupted_follow(desk, name)
    desk.type("cancel", name)
    rest = desk.type("logs", "-f", name, "--offset", offset, expect=5).stdout

    assert begin + rest == desk.type("logs", name).stdout
    assert begin.startswith("second 0\n")
    again = desk.ask("retry", name)["run"]
    assert desk.ask("retry", name)["run"] == again != name
    desk.type("cancel", again)


def test_a_dry_run_shows_the_job(desk: Desk, run: dict[str, Any]) -> None:
    """--dry-run prints the exact job and its obstacles, and makes no run."""
    before = desk.runs()
    asked = ("submit", "mnist", "-p", "epochs=3", "--dry-run")
    plan = desk.ask(*asked, "--data", "drops/mnist/nothing-there", expect=1)
    refused = desk.type(*asked, "--data", "drops/mnist/d1", "--nodes", "9", expect=1).stderr

    assert plan["job"]["inputs"]["epochs"] == 3
    assert [reason["code"] for reason in plan["reasons"]] == ["no_data", "not_available"]  # the drops', the workspace's
    assert "trainyard: --nodes is 9; use a whole number from 1 to 4" in refused
    assert desk.runs() == before


def test_a_rejected_drop_says_why(desk: Desk) -> None:
    """A drop uploaded without the command line, to an unknown route, is rejected, and show gives the reason."""
    with ContainerClient.from_connection_string(desk.cloud.connection_string, "drops") as drops:
        drops.upload_blob("minst/d1/_SUCCESS", b"")
    rejected = wait_for(lambda: _rejected(desk), 60, "the drop to be rejected")

    assert "There is no route 'minst'" in rejected["why"]
    assert rejected["code"] == "unknown_route"


def _rejected(desk: Desk) -> Any:
    found = [drop for drop in httpx.get(f"{desk.cloud.api}/drops", timeout=30).json() if drop["drop"] == "minst/d1"]
    return desk.ask("show", "minst/d1") if found and found[0]["state"] == "rejected" else None


def test_a_run_that_is_not_there(desk: Desk) -> None:
    """show and fetch of an unknown run end with status 3 and the run's name."""
    for command in ("show", "fetch"):
        assert "no-such-run" in desk.type(command, "no-such-run", expect=3).stderr


def test_the_rest_of_the_system(desk: Desk, run: dict[str, Any]) -> None:
    """doctor finds no problem with a running cloud. login stores the cloud, and the stored name then reaches its
    runs."""
    assert {finding["verdict"] for finding in desk.ask("doctor")} == {"good"}
    desk.type("login", desk.cloud.api, "--name", "mine")
    assert run["run"] in desk.type("show", run["run"], "--profile", "mine").stdout


SWEPT = """import json, pathlib, sys, time
lr, folder, models = float(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
for step in range(1, 4):
    told = json.dumps({'step': step, 'accuracy': lr * step})
    with open(folder / 'metrics.jsonl', 'a') as file: print(told, file=file)
    time.sleep(0.5)
(models / 'lr.txt').write_text(str(lr))"""


PREPARE = """
type: command
name: prepare
version: "1"
inputs: {raw: {type: uri_folder}, factor: {type: integer, default: 2}}
outputs: {clean: {type: uri_folder}}
code: ../src
environment: azureml:trainyard@latest
command: sh prepare.sh ${{inputs.raw}} ${{inputs.factor}} ${{outputs.clean}}
"""
PIPELINE = """
type: pipeline
experiment_name: piped
inputs: {raw: {type: uri_folder, path: ./raw}}
outputs: {models: {mode: upload}, metrics: {type: uri_folder}}
settings: {default_compute: "azureml:cpu-cluster"}
jobs:
  prepare: {component: ./steps/prepare.yml, inputs: {raw: "${{parent.inputs.raw}}"}}
  train:
    type: command
    command: cat ${{inputs.data}}/n > ${{outputs.model}}/model.txt; ls ${{inputs.data}}
    environment: azureml:trainyard@latest
    inputs: {data: "${{parent.jobs.prepare.outputs.clean}}"}
    outputs: {model: "${{parent.outputs.models}}"}
  evaluate:
    type: command
    command: >-
      echo "{\\"step\\": 1, \\"score\\": $(cat ${{inputs.model}}/model.txt)}" > ${{outputs.metrics}}/metrics.jsonl
    environment: azureml:trainyard@latest
    inputs: {model: "${{parent.jobs.train.outputs.model}}"}
    outputs: {metrics: "${{parent.outputs.metrics}}"}
"""


def test_a_pipeline_runs_its_graph(desk: Desk) -> None:
    """submit sends a published pipeline with its components' files. The steps run in order, and the archive has the
    declared outputs and each step's log. A pipeline that fails names the failed step, and skips the steps that
    depend on it."""
    for name, text in {
        "steps/prepare.yml": PREPARE,
        "src/prepare.sh": "expr $(cat $1/n) '*' $2 > $3/n",
        "raw/n": "18",
        "pipeline.yml": PIPELINE,
        "broken.yml": PIPELINE.replace("command: cat", "command: echo no trips today >&2; exit 3; cat"),
    }.items():
        (desk.folder / name).parent.mkdir(exist_ok=True)
        (desk.folder / name).write_text(text)
    run = desk.ask("submit", "pipeline.yml", "--follow")
    assert (run["state"], run["metrics"]["last"]) == ("completed", {"score": 36})
    assert [(step["step"], step["state"], step["needs"]) for step in run["steps"]] == [
        ("prepare", "completed", []),
        ("train", "completed", ["prepare"]),
        ("evaluate", "completed", ["train"]),
    ]
    assert "train" in desk.type("show", run["run"]).stdout.partition("Steps")[2]
    assert desk.type("logs", run["run"], "--rank", "1").stdout.strip() == "n"
    folder = Path(desk.ask("fetch", run["run"], "--to", "piped")["folder"])
    assert (folder / "models" / "model.txt").read_text().strip() == "36"
    assert (folder / "logs" / "train" / "std_log.txt").read_text().strip() == "n"
    failed = desk.ask("submit", "broken.yml", "--follow", expect=4)
    assert failed["reason"].startswith("Step 'train' failed: ")
    assert "Not started: evaluate.\nstd_log.txt:\nno trips today" in failed["reason"]
    assert failed["steps"][2]["state"] == "skipped"


def test_a_sweep_gives_the_best_of_its_trials(desk: Desk) -> None:
    """submit of a folder with ranges runs trials as runs; fetch of the sweep downloads the best trial's results."""
    (desk.folder / "swept").mkdir()
    (desk.folder / "swept" / "swept.py").write_text(SWEPT)
    command = ("--command", "python swept.py {lr} {metrics} {models}", "--env", "azureml:trainyard@latest")
    where = ("--cluster", "cpu-cluster", "--experiment", "swept")
    words = ("-p", "lr=0.001..0.1", "--trials", "3", "--metric", "accuracy", "--stop", "asha", "--at-once", "2")
    sweep = desk.ask("submit", "./swept", *command, *where, *words, "--follow")
    trials = desk.ask("show", sweep["run"])["trial_runs"]
    lrs = {trial["run"]: trial["parameters"]["lr"] for trial in trials}

    assert sweep["state"] == "completed"
    assert sorted(lrs) == [f"{sweep['run']}-t{number}" for number in range(3)]
    completed = [trial for trial in trials if trial["state"] == "completed"]
    assert sweep["sweep"]["best_trial"] == max(completed, key=lambda trial: trial["best"]["value"])["run"]
    folder = Path(desk.ask("fetch", sweep["run"], "--to", "best")["folder"])
    assert float((folder / "models" / "lr.txt").read_text()) == lrs[sweep["sweep"]["best_trial"]]
    assert sweep["sweep"]["best_value"] == pytest.approx(3 * lrs[sweep["sweep"]["best_trial"]])
    compared = desk.ask("compare", sweep["run"])
    assert {row["name"] for row in compared["different"]} >= {"lr"}


SPREAD = """
import os, pathlib, sys
told = {name: os.environ[name] for name in ("WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")}
pathlib.Path(sys.argv[1], os.environ["RANK"] + ".txt").write_text(" ".join(told.values()))
"""


def test_a_folders_processes_know_each_other(desk: Desk) -> None:
    """--distribution and --processes start the command several times on each node, and each process knows the others.

    torchrun on several nodes without a distribution is refused, and no run is made.
    """
    (desk.folder / "spread").mkdir()
    (desk.folder / "spread" / "spread.py").write_text(SPREAD)
    where = ("--env", "azureml:trainyard@latest", "--cluster", "cpu-cluster", "--experiment", "spread", "--nodes", "2")
    lonely = desk.type("submit", "./spread", "--command", "torchrun spread.py {models}", *where, expect=1)
    spread = ("--distribution", "pytorch", "--processes", "2", "--follow")
    run = desk.ask("submit", "./spread", "--command", "python spread.py {models}", *where, *spread)
    folder = Path(desk.ask("fetch", run["run"], "--to", "spread-models")["folder"]) / "models"
    told = {file.stem: file.read_text().split() for file in folder.glob("*.txt")}

    assert "--distribution pytorch" in " ".join(lonely.stderr.split())
    assert {rank: words[:2] for rank, words in told.items()} == {
        "0": ["4", "0"], "1": ["4", "0"], "2": ["4", "1"], "3": ["4", "1"],
    }  # fmt: skip
    assert len({tuple(words[2:]) for words in told.values()}) == 1
