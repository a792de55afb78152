"""An auditor with a fetched folder and the public key, and nothing else: the cloud that trained is gone.

Every kind of run trains on the local cloud. Meanwhile an observer notes the real facts: hashes of the files, packages
of the nodes' Python, lines of the logs, a commit. Then the auditor's script answers.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from emulators.process import wait_for
from examples import audit_model
from examples.audit_model import NONE, NOT_KNOWN
from local import digits
from local.cloud import Cloud, Options
from tests.e2e.desk import ROOT, Desk

CIFAR = ROOT.parent / "shared" / "data" / "cifar-10-small-python.tar.gz"
ROUTES = """
limits: {allow: [code]}
routes:
  mnist: {trainer: mnist, cluster: cpu-cluster, nodes: 1}
  cifar: {trainer: cifar_elastic, cluster: cpu-cluster, nodes: {min: 1, max: 2}}
"""
TRAIN = """
import json, os, pathlib, subprocess, sys
data, models, metrics, lr = sys.argv[1:]
pathlib.Path(models, "weights.json").write_text(json.dumps({"files": sorted(os.listdir(data)), "lr": lr}))
if metrics == "mlflow":
    import mlflow
    for step, value in enumerate((0.5, 0.75)):
        mlflow.log_metric("test_accuracy", value, step=step)
else:
    pathlib.Path(metrics, "metrics.jsonl").write_text('{"step": 1, "test_accuracy": 0.75}\\n')
print("test_accuracy 0.75")
pip = [sys.executable, "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"]
print("packages", subprocess.run(pip, check=True, capture_output=True, text=True).stdout.strip())
"""
PIPELINE = """
type: pipeline
experiment_name: piped
inputs: {raw: {type: uri_folder, path: azureml://datastores/drops/paths/mnist/digits-1/}}
outputs: {models: {type: uri_folder}, metrics: {type: uri_folder}}
settings: {default_compute: "azureml:cpu-cluster"}
jobs:
  train:
    type: command
    code: ./own
    command: python train.py ${{inputs.data}} ${{outputs.models}} ${{outputs.metrics}} ${{inputs.lr}}
    environment: azureml:trainyard@latest
    inputs: {data: "${{parent.inputs.raw}}", lr: 0.25}
    outputs: {models: "${{parent.outputs.models}}", metrics: "${{parent.outputs.metrics}}"}
"""
OWN = ("--data", "drops/mnist/digits-1", "-p", "lr=0.5", "--cluster", "cpu-cluster", "--env")
PATIENCE = 900.0  # seconds for one training
pytestmark = pytest.mark.skipif(not CIFAR.is_file(), reason=f"needs {CIFAR.name} in ../shared/data, no part of this")


@dataclass
class Seen:
    """The observer's notes of a run."""

    run: str
    log: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    commit: str = ""
    parent: str = ""
    trial: str = ""
    members: set[str] = field(default_factory=set)


@dataclass
class Office:
    """The remains after the cloud is gone: a fetched folder of each kind, the keys, and the observer's notes."""

    folder: Path
    seen: dict[str, Seen]
    data: dict[str, dict[str, str]]  # per drop: SHA-256 by file
    trainers: str
    packages: dict[str, str]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def digest_of_trainers() -> str:
    """The digest of the trainers, computed from this checkout as the proof describes."""
    content, folder = hashlib.sha256(), ROOT / "trainers"
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in name.split("/")):
            content.update(f"{name}\0{path.stat().st_size}\n".encode() + path.read_bytes())
    return content.hexdigest()


def freeze(log: str) -> dict[str, str]:
    """Return the packages of the nodes' Python, as pip listed them in a job of the same environment."""
    listed = log.rpartition("packages ")[2].partition("]")[0].replace("\n", "")
    return {each["name"].lower(): each["version"] for each in json.loads(f"{listed}]")}


def own_folder(desk: Desk) -> str:
    """Make a repository with a folder of code. Return the commit."""
    folder = desk.folder / "own"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    (desk.folder / "pipeline.yml").write_text(PIPELINE)
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "code"]):
        subprocess.run([*git, *words], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


def submitted(desk: Desk, *words: str) -> str:
    return str(desk.ask("submit", *words)["run"])


def dropped(desk: Desk, folder: str, name: str, *words: str) -> str:
    desk.ask("drop", folder, name, *words)
    return str(wait_for(lambda: desk.ask("show", name)["run"], PATIENCE, f"a run of {name}", 2))


def ended(desk: Desk, run: str) -> dict[str, Any]:
    """Wait for the run's archive; some trainings take minutes on a busy machine."""
    found: dict[str, Any] = wait_for(
        lambda: (now := desk.ask("show", run))["archived_at"] and now, PATIENCE, f"the archive of {run}", 5
    )
    assert found["state"] == "completed", found["reason"]
    return found


def train_all(desk: Desk) -> dict[str, Seen]:
    """Train one run of each kind to its end."""
    commit, train = own_folder(desk), "python train.py {data} {models}"
    elastic = dropped(desk, "cifar", "cifar/small", "-p", "epochs=1", "-p", "width=8", "-p", "batch_size=64")
    drop = dropped(desk, "digits", "mnist/digits-1", "-p", "epochs=1")
    mnist = ("mnist", "--data", "drops/mnist/digits-1", "--cluster", "cpu-cluster", "--nodes", "1", "-p", "epochs=1")
    sweep = submitted(desk, *mnist, "-p", "lr=0.01,0.05", "--trials", "2", "--metric", "test_accuracy")
    runs = {
        "drop": Seen(drop, parameters={"epochs": 1}),
        "request": Seen(submitted(desk, *mnist, "-p", "lr=0.02"), parameters={"epochs": 1, "lr": 0.02}),
        "own code": Seen(
            submitted(desk, "./own", "--command", f"{train} {{metrics}} {{lr}}", *OWN, "azureml:trainyard@latest")
        ),
        "MLflow": Seen(submitted(desk, "./own", "--command", f"{train} mlflow {{lr}}", *OWN, "mlflow-skinny")),
        "pipeline": Seen(submitted(desk, "pipeline.yml")),
        "elastic run": Seen(elastic),
    }
    for kind in ("own code", "MLflow", "pipeline"):
        runs[kind].commit, runs[kind].parameters = commit, {"lr": 0.25 if kind == "pipeline" else 0.5}
    answers = {kind: ended(desk, seen.run) for kind, seen in runs.items()}
    runs["elastic run"].members = {each["job"] for each in answers["elastic run"]["elastic"]["members"]}
    trial = ended(desk, ended(desk, sweep)["sweep"]["best_trial"])
    tried = {"lr": trial["parameters"]["lr"]}
    runs["sweep"], runs["trial"] = (
        Seen(sweep, "", tried, trial=trial["run"]),
        Seen(trial["run"], "", tried, trial=sweep),
    )
    again = str(desk.ask("continue", drop, "-p", "epochs=2")["run"])
    runs["continued run"] = Seen(ended(desk, again)["run"], parent=drop)
    for seen in runs.values():
        seen.log = desk.type("logs", trial["run"] if seen.run == sweep else seen.run).stdout
    return runs


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    folder = tmp_path_factory.mktemp("auditor")
    digits.write(folder / "digits")
    (folder / "cifar").mkdir()
    (folder / "cifar" / CIFAR.name).write_bytes(CIFAR.read_bytes())
    (folder / "routes.yaml").write_text(ROUTES)
    with Cloud.start(folder / "cloud", Options(node_start_seconds=0.2, routes=folder / "routes.yaml")) as cloud:
        desk = Desk(cloud, folder)
        seen = train_all(desk)
        for number, (kind, each) in enumerate(seen.items()):
            program = ("--allow-code",) if kind == "elastic run" else ()  # model.pt2 is a program
            desk.ask("promote", each.run, f"model-{number}", "--as", "production", *program)
            desk.ask("fetch", f"model-{number}@production", "--to", f"fetched-{number}")
        desk.ask("keys", "--save", "keys.pem")
    names = {"mnist/digits-1": "digits", "cifar/small": "cifar"}
    data = {drop: {path.name: sha256(path) for path in (folder / name).iterdir()} for drop, name in names.items()}
    return Office(folder, seen, data, digest_of_trainers(), freeze(seen["own code"].log))


def told_of(office: Office, kind: str) -> tuple[dict[str, Any], Path]:
    folder = office.folder / f"fetched-{list(office.seen).index(kind)}"
    argv = [sys.executable, str(ROOT / "examples" / "audit_model.py"), str(folder), str(office.folder / "keys.pem")]
    done = subprocess.run(argv, capture_output=True, text=True, env={"PYTHONUTF8": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    for title in ("From what", "By whom", "With what", "How good", "Not known"):
        assert f"\n{title}" in done.stdout
    proof = audit_model.provenance(folder)
    questions = (audit_model.from_what, audit_model.by_whom, audit_model.with_what, audit_model.how_good)
    return {name: answer for question in questions for name, answer in question(proof).items()}, folder


KINDS = ("drop", "request", "own code", "MLflow", "pipeline", "sweep", "trial", "elastic run", "continued run")


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_the_auditor_reads_what_the_observer_saw(office: Office, kind: str) -> None:
    """Each answer of the script equals the observer's note, or is `not known` where docs/models.md says so."""
    seen, (told, _) = office.seen[kind], told_of(office, kind)
    drop = "cifar/small" if kind == "elastic run" else "mnist/digits-1"
    data = {name.removeprefix(f"{drop}/"): digest for name, digest in told["data"].items()}
    assert office.data[drop].items() <= data.items()
    assert data.keys() - office.data[drop].keys() <= {"job.json", "job.yaml", "_SUCCESS"}
    own = kind in ("own code", "MLflow", "pipeline")
    code = next(iter(told["code"].values()))
    md5 = hashlib.md5(TRAIN.encode()).hexdigest()
    upload = hashlib.sha256(f"train.py\0{len(TRAIN)}\0{md5}\n".encode()).hexdigest()
    assert code == (upload if own else office.trainers)
    assert told["commit"] == (dict.fromkeys(told["code"], seen.commit) if seen.commit else NOT_KNOWN)
    parameters = told["parameters"]["train"] if kind == "pipeline" else told["parameters"]
    assert seen.parameters.items() <= parameters.items()
    assert told["trial"] == (seen.trial or NONE)
    assert set(() if told["members"] == NONE else told["members"]) == seen.members
    assert told["parents"] == ([f"urn:trainyard:run:{seen.parent}"] if seen.parent else NONE)
    assert told["parents' checkpoints"] == (NOT_KNOWN if seen.parent else NONE)
    packages = {} if own else {name.lower(): version for name, version in told["packages"].items()}
    assert packages == ({} if own else office.packages)
    assert (told["packages"] == NOT_KNOWN) is own
    assert told["said by"]["test_accuracy"] == ("last value" if own else "trainer")
    printed = re.findall(r"test_accuracy 0\.(\d+)|test  Loss \S+  Prec@1 (\S+)%", seen.log)[-1]
    assert told["metrics"]["test_accuracy"] == pytest.approx(float("".join(printed)) / 100, abs=0.0001)
    assert (told["asked for by"], told["promoted by"]) == (NOT_KNOWN, NOT_KNOWN), "nobody signs in on a local cloud"


def test_a_changed_byte_and_another_key_are_refused(office: Office) -> None:
    """The script answers nothing about data that the key did not sign."""
    folder = told_of(office, "drop")[1]
    assert audit_model.check(folder, (office.folder / "keys.pem").read_bytes()) == []
    (folder / "provenance.json").write_bytes((folder / "provenance.json").read_bytes() + b" ")
    (folder / "models" / "more").write_text("")
    problems = audit_model.check(folder, (office.folder / "keys.pem").read_bytes())
    assert problems == ["models/more: was added after signing", "provenance.json: differs from what was signed"]
