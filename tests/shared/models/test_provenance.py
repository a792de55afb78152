"""What a proof contains for each kind of run: the table in docs/models.md, cell by cell.

An auditor's script reads the folder; an observer recorded what really happened.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from examples import audit_model
from examples.audit_model import NOT_KNOWN
from shared.jobs.readers.azureml import read_job
from shared.jobs.upload import File, digest
from shared.kernel.person import Person
from shared.models.decide import ChangeRequest
from shared.models.promote import promote_run
from shared.models.sources import OF_TRAINERS, OF_UPLOAD
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from shared.runs.intake.retry_and_continue import continue_run
from shared.runs.names import run_of_job
from tests.fakes.world import ELASTIC, ROUTE, World, trainers_folder
from tests.shared.models.test_promoting import fetched

ANN = Person("ann", "id-ann")
FREEZE = {"torch": "2.13.0", "numpy": "2.4.6"}
NODE = {"python": "3.11.7", "processor": "x86_64 Observed", "packages": FREEZE}
MARKER = {"mnist/a/_SUCCESS": hashlib.sha256(b"").hexdigest()}
CODE = b"print('hello')"
ELSEWHERE = {"type": "uri_folder", "path": "azureml://datastores/workspaceblobstore/paths/elsewhere/"}
Told = dict[str, Any]
MODELS: dict[str, Any] = {"outputs": {"models": {"type": "uri_folder"}}, "compute": "azureml:cpu-cluster"}


@dataclass
class Seen:
    """The observer's own record of a run, independent of the system."""

    run: str
    data: dict[str, str] = field(default_factory=dict)  # blob: SHA-256
    code: dict[str, str] = field(default_factory=dict)  # name of the resource: digest
    parameters: Any = None
    nodes: Any = None
    parent: str = ""


@pytest.fixture
def world(tmp_path: Path) -> World:
    team = replace(ROUTE, name="team", template=read_job(ELASTIC), min_nodes=1, resubmissions=1)
    world = World(trainers_folder(tmp_path), [ROUTE, team])
    world.system = replace(world.system, limits=replace(ROUTE.limits, allow=frozenset({"code"})))
    return world


def trainers_digest(world: World) -> str:
    """Recompute the digest as the proof describes it."""
    content = hashlib.sha256()
    for path in sorted(world.system.trainers.rglob("*")):
        name = path.relative_to(world.system.trainers).as_posix()
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in name.split("/")):
            content.update(f"{name}\0{path.stat().st_size}\n".encode() + path.read_bytes())
    return content.hexdigest()


def finish(world: World, *, facts: bool = True, word: bool = True, metrics: bool = True) -> None:
    """Let every job run to its end and write its trainer's files."""
    world.run_until_idle()
    for name in [name for name, job in world.jobs.jobs.items() if job.raw not in ("Completed", "Failed")]:
        world.job_goes(name, "Running")
        world.deliver_all()
        world.run_until_idle()
        world.clock.advance(30)
        folder = f"trainyard/{run_of_job(name)}/models"
        world.job_goes(name, "Completed")
        if not metrics:
            world.blobs.remove("azureml-blobstore", [f"trainyard/{run_of_job(name)}/metrics/metrics.jsonl"])
        if facts:
            place = f"ExperimentRun/dcid.{name}/outputs/environment.json"
            world.blobs.put("azureml", place, json.dumps(NODE).encode())
        if word:
            about = b'{"metrics": {"test_accuracy": 0.85}, "step": 1}'
            world.blobs.put("azureml-blobstore", f"{folder}/model.json", about)
        world.deliver_all()
        world.run_until_idle()
    for _ in range(3):
        world.settle()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sent_code(world: World) -> str:
    name = digest([File("train.py", len(CODE), hashlib.md5(CODE).hexdigest())])
    world.blobs.put("azureml-blobstore", f"trainyard/uploads/{name}/train.py", CODE)
    return name


def asked(world: World, key: str, **request: Any) -> str:
    return create.create_run(world.system, msgspec.convert(request, RunRequest), key).name


def single(world: World) -> Seen:
    world.upload("mnist/a/1.bin", b"one")
    world.complete("2.bin")
    run = world.only_run().name
    finish(world)
    data = {"mnist/a/1.bin": sha256(b"one"), "mnist/a/2.bin": sha256(b"x"), **MARKER}
    return Seen(run, data, {"code": trainers_digest(world)}, {"epochs": 2})


def request(world: World) -> Seen:
    """Return a run that was requested with the trainer's job, on a drop's files."""
    world.upload("mnist/a/1.bin", b"one")
    world.complete()
    finish(world)
    run = asked(world, "one", template="mnist", data="drops/mnist/a", parameters={"epochs": 5})
    finish(world)
    return Seen(run, {"mnist/a/1.bin": sha256(b"one"), **MARKER}, {"code": trainers_digest(world)}, {"epochs": 5})


def mlflow(world: World) -> Seen:
    """Return a run with its own code, which logs its metric to MLflow and writes nothing else itself."""
    seen = own_code(world, to_mlflow=True)
    assert "metrics/mlflow.jsonl" in world.archived(world.runs.get(seen.run).value)
    return seen


def own_code(world: World, to_mlflow: bool = False) -> Seen:
    """Return the run of a job file with its own code and data elsewhere, whose code writes nothing about its node."""
    world.blobs.put("azureml-blobstore", "elsewhere/1.csv", b"rows")
    world.clock.advance(60)
    name = sent_code(world)
    job = {
        "command": "python train.py --data ${{inputs.data}} --lr ${{inputs.lr}}",
        "environment": {"image": "python:3.11"},
        "code": f"azureml://datastores/workspaceblobstore/paths/trainyard/uploads/{name}/", **MODELS,
        "inputs": {"lr": 0.5, "data": ELSEWHERE},
    }  # fmt: skip
    run = asked(world, "own", job=job)
    world.run_until_idle()
    if to_mlflow:
        world.jobs.metrics[run] = {"test_accuracy": [(1, 0.6, 1.0), (2, 0.7, 2.0)]}
    else:
        world.blobs.put("azureml", f"ExperimentRun/dcid.{run}/outputs/metrics.json", b'{"test_accuracy": 0.7}')
    finish(world, facts=False, word=False, metrics=not to_mlflow)
    return Seen(run, {"elsewhere/1.csv": sha256(b"rows")}, {"code": name}, {"lr": 0.5})


def pipeline(world: World) -> Seen:
    name = sent_code(world)
    code = f"azureml://datastores/workspaceblobstore/paths/trainyard/uploads/{name}/"
    step = {
        "command": "python train.py --lr ${{inputs.lr}}", "environment": "azureml:e:1", "code": code,
        "inputs": {"lr": 0.25, "data": ELSEWHERE}, "outputs": {"models": "${{parent.outputs.models}}"},
    }  # fmt: skip
    world.blobs.put("azureml-blobstore", "elsewhere/1.csv", b"rows")
    world.clock.advance(60)
    job = {
        "type": "pipeline",
        "settings": {"default_compute": "azureml:cpu-cluster"},
        **MODELS,
        "jobs": {"train": step},
    }
    job.pop("compute")
    run = asked(world, "pipe", job=job)
    world.run_until_idle()
    world.jobs.set_step(run, "train", "Completed")
    finish(world)
    data = {"elsewhere/1.csv": sha256(b"rows")}
    return Seen(run, data, {"code of step train": name}, {"train": {"lr": 0.25, "data": ELSEWHERE}})


def sweep(world: World) -> Seen:
    world.complete("1.bin")
    finish(world)
    run = asked(
        world, "sweep", template="mnist", data="drops/mnist/a", parameters={"epochs": "2,3"},
        sweep={"metric": "test_accuracy", "trials": 2, "at_once": 2, "sampling": "grid"},
    )  # fmt: skip
    finish(world)
    archived = world.blobs.containers["output"]
    best = next(t for t in (f"{run}-t0", f"{run}-t1") if archived[f"digits/{run}/models/model.pt"].data == t.encode())
    epochs = world.jobs.jobs[best].spec["inputs"]["epochs"]
    return Seen(
        run, {"mnist/a/1.bin": sha256(b"x"), **MARKER}, {"code": trainers_digest(world)}, {"epochs": epochs}, best
    )


def trial(world: World) -> Seen:
    """Return one trial of a sweep, promoted by itself."""
    seen = sweep(world)
    return replace(seen, run=str(seen.nodes), nodes=seen.run)


def elastic(world: World) -> Seen:
    world.complete("1.bin")
    finish(world)
    run = asked(world, "team", template="team", data="drops/mnist/a")
    finish(world)
    members = {name for name in world.jobs.jobs if run_of_job(name) == run}
    return Seen(
        run, {"mnist/a/1.bin": sha256(b"x"), **MARKER}, {"code": trainers_digest(world)}, {"epochs": 2}, members
    )


def continued(world: World) -> Seen:
    first = single(world)
    run = continue_run(world.system, first.run, {"epochs": 3}).name
    finish(world)
    return replace(first, run=run, parameters={"epochs": 3}, parent=first.run)


KINDS: dict[str, Callable[[World], Seen]] = {
    "drop": single,
    "request": request,
    "own code": own_code,
    "MLflow": mlflow,
    "pipeline": pipeline,
    "sweep": sweep,
    "trial": trial,
    "elastic run": elastic,
    "continued run": continued,
}


def has_parameters(told: Told, seen: Seen) -> bool:
    return bool(told["parameters"] == seen.parameters)


def has_nodes(told: Told, seen: Seen) -> bool:
    if isinstance(seen.nodes, set):
        return set(told["members"]) == seen.nodes and told["nodes"] == "1 to 2 of cpu-cluster"
    if isinstance(seen.nodes, str):
        return bool(told["trial"] == seen.nodes)
    return str(told["nodes"])[0].isdigit()


FACTS: dict[str, tuple[Callable[[Told, Seen], bool], str]] = {  # the fact, and the beginning of the sentence without it
    "data, each file's SHA-256": (
        lambda told, seen: bool(seen.data) and told["data"] == seen.data,
        "The content of the data",
    ),
    "code, digest": (lambda told, seen: told["code"] == seen.code, "The content of the code"),
    "commit": (lambda told, _: told["commit"] != NOT_KNOWN, "The commit of"),
    "parameters": (has_parameters, ""),
    "nodes, members or trial": (has_nodes, ""),
    "packages and processor": (
        lambda told, _: (told["packages"], told["processor"]) == (FREEZE, NODE["processor"]),
        "The packages and the processor",
    ),
    "parent": (lambda told, seen: bool(seen.parent) and told["parents"] == [f"urn:trainyard:run:{seen.parent}"], "?"),
    "checkpoints of the parent": (lambda *_: False, "The content of the checkpoints"),
    "metrics of the saved weights": (
        lambda told, _: (told["metrics"]["test_accuracy"], told["said by"]["test_accuracy"]) == (0.85, "trainer"),
        "Whether the metrics",
    ),
    "who asked for the run": (lambda told, _: told["asked for by"] != NOT_KNOWN, "Who requested the run"),
    "who promoted it": (lambda told, _: told["promoted by"] == ANN.name, "Who promoted"),
}  # fmt: skip


def documented() -> dict[str, dict[str, str]]:
    """Return the table of docs/models.md: cell by kind and fact."""
    lines = Path("docs/models.md").read_text("utf-8").splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith("| fact | drop |"))
    kinds = [cell.strip() for cell in lines[begin].strip("|").split("|")][1:]
    table: dict[str, dict[str, str]] = {kind: {} for kind in kinds}
    for line in lines[begin + 2 :]:
        if not line.startswith("|"):
            break
        fact, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        for kind, cell in zip(kinds, cells, strict=True):
            table[kind][fact] = cell
    return table


@pytest.mark.parametrize("kind", KINDS)
def test_an_auditor_reads_of_each_kind_what_the_table_says(world: World, tmp_path: Path, kind: str) -> None:
    """The auditor has only the folder and the public key. `yes`: the auditor reads the fact as the observer saw it.
    `not known`: a sentence in the proof, the card and the bill of materials says that the fact is not known. A
    dash: such a run has no such fact."""
    seen = KINDS[kind](world)
    version = promote_run(world.system, seen.run, "churn", "", ChangeRequest(world.clock(), ANN), allow_code=True)
    folder = fetched(world, version, tmp_path / "fetched")
    assert audit_model.check(folder, world.signer.public_key()) == []
    proof = audit_model.provenance(folder)
    questions = (audit_model.from_what, audit_model.by_whom, audit_model.with_what, audit_model.how_good)
    told = {name: answer for question in questions for name, answer in question(proof).items()}
    card, bom = (folder / "README.md").read_text("utf-8"), (folder / "bom.json").read_text("utf-8")
    found = {}
    for fact, (has, gap) in FACTS.items():
        sentence = next((each for each in proof["trainyard_not_known"] if gap and each.startswith(gap)), "")
        assert not sentence or sentence.split("`")[0][:40] in card
        assert not sentence or fact == "who promoted it" or json.dumps(sentence)[1:40] in bom
        found[fact] = "yes" if has(told, seen) else "not known" if sentence else "–"
        assert not (found[fact] == "yes" and sentence), fact
    assert found == documented()[kind]
    assert all(digest in card for digest in seen.code.values())
    assert seen.parent in card
    assert all(member in card for member in (seen.nodes if isinstance(seen.nodes, set) else ()))
    materials = {each["name"]: each for each in json.loads(bom)["components"] if each["type"] == "data"}
    listed = {file["name"]: file["hashes"] for data in materials.values() for file in data["components"]}
    assert {"alg": "SHA-256", "content": next(iter(seen.data.values()))} in listed[next(iter(seen.data))]
    assert seen.data.keys() == listed.keys()


def test_the_description_of_a_digest_is_enough_to_compute_it(world: World) -> None:
    """An auditor with the files computes the same digest from the proof's description alone."""
    assert "path, a zero byte, size, a line feed, content" in OF_TRAINERS
    assert "path, a zero byte, size, a zero byte, MD5, a line feed" in OF_UPLOAD
    md5 = hashlib.md5(CODE).hexdigest()
    assert sent_code(world) == sha256(f"train.py\0{len(CODE)}\0{md5}\n".encode())


def test_what_pip_inspect_tells_is_enough(world: World) -> None:
    """Own code that runs `python -m pip inspect > outputs/environment.json` has its packages in the proof."""
    from shared.runs.results.node_facts import read_all_node_facts

    report: dict[str, Any] = {
        "version": "1",
        "installed": [{"metadata": {"name": n, "version": v}} for n, v in FREEZE.items()],
    }
    report["environment"] = {"python_full_version": "3.11.7", "platform_machine": "x86_64"}
    world.blobs.put("output", "e/r/outputs/environment.json", json.dumps(report).encode())
    (facts,) = read_all_node_facts(world.blobs, "e/r", ["outputs/environment.json"]).values()
    assert (facts["packages"], facts["python"], facts["processor"]) == (FREEZE, "3.11.7", "x86_64")
