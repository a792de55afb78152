"""Models: promotion, aliases, undo, retention, and the proof beside the weights."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from in_toto_attestation.v1.statement import Statement
from msgspec import structs

from shared.api.queries import find
from shared.jobs.readers.place_text import place_text
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Conflict, Impossible, NotFound
from shared.kernel.person import Person
from shared.kernel.storage import Place
from shared.kernel.versioned import Stored
from shared.models.decide import ChangeRequest
from shared.models.file_content import why_unsafe
from shared.models.find import version_of
from shared.models.model import Model, Version, check_alias, check_name
from shared.models.ports import Write
from shared.models.promote import let_go, point, promote_run, undo
from shared.models.signature import SIGNATURE
from shared.models.why import chain
from shared.removals import remove
from shared.removals.model import RemovalKind
from shared.runs.intake.request import RunRequest
from shared.runs.model import Run
from shared.runs.views.notes_and_tags import add_note, change_tags
from shared.schedules.names import meant
from tests.fakes.world import World, trainers_folder

ANN = Person("ann", "id-ann")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def asked(world: World, why: str = "") -> ChangeRequest:
    return ChangeRequest(world.clock(), ANN, why)


def trained(world: World, drop: str = "a", model: bytes = b"weights", name: str = "model.safetensors") -> Run:
    """Return a drop's run, archived with this model."""
    world.upload(f"mnist/{drop}/1.bin", drop.encode())
    world.upload(f"mnist/{drop}/_SUCCESS", b"")
    world.deliver_all()
    for _ in range(2):
        world.clock.advance(4)
        world.run_until_idle()
    stored = world.drops.get(DropKey("mnist", drop))
    assert stored is not None
    run = stored.value.run
    world.job_goes(run, "Running")
    world.deliver_all()
    world.run_until_idle()
    world.job_goes(run, "Completed")
    folder = f"trainyard/{run}/models"
    world.blobs.remove("azureml-blobstore", [f"{folder}/model.pt"])
    world.blobs.put("azureml-blobstore", f"{folder}/{name}", model)
    world.blobs.put("azureml-blobstore", f"{folder}/model.json", b"{}")
    world.blobs.put("azureml", f"ExperimentRun/dcid.{run}/outputs/environment.json", json.dumps(NODE).encode())
    world.deliver_all()
    for _ in range(3):
        world.run_until_idle()
        world.clock.advance(5)
    return world.runs.get(run).value


NODE = {
    "python": "3.11.7",
    "processor": "x86_64 Test",
    "packages": {"torch": "2.13.0", "numpy": "2.4.6"},
    "licences": {"torch": "BSD-3-Clause"},
    "records": {"torch": "0a" * 32},
}


def fetched(world: World, version: Version, folder: Path) -> Path:
    """Return the version's signed files and its signature, as `fetch` downloads them."""
    run = world.runs.get(version.run).value
    archive = f"{run.asked.experiment}/{run.name}"
    for prefix in (f"{archive}/models/", f"{archive}/manifest.json", f"{version.proof}/"):
        for blob in world.blobs.list(Place("output", prefix)):
            name = blob.name.removeprefix(f"{version.proof}/").removeprefix(f"{archive}/")
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(world.blobs.read("output", blob.name, 1 << 20))
    return folder


def test_a_promoted_run_is_the_next_version_and_the_alias_points_at_it(world: World) -> None:
    """Version numbers count up, and a run is one version of a model, however often it is promoted. Azure ML's
    registry has the version."""
    first, second = trained(world, "a"), trained(world, "b")
    one = promote_run(world.system, first.name, "churn", "production", asked(world, "the first"))
    again = promote_run(world.system, first.name, "churn", "production", asked(world))
    two = promote_run(world.system, second.name, "churn", "", asked(world))
    assert (one.number, again.number, two.number) == (1, 1, 2)
    assert find(world.system, "churn@production") == {"run": first.name, "drop": ""}
    assert find(world.system, "churn@2")["run"] == find(world.system, "churn/2")["run"] == second.name
    with pytest.raises(NotFound):
        find(world.system, "churn/3")
    assert one.asset == "azureml:churn:1"
    assert world.registry.models["churn/1"][0] == place_text(first.asked.request.outputs["models"].path)
    history = [(line.what, line.alias, line.before, line.after, line.by) for line in world.models.history("churn")]
    assert history == [("version", "", 0, 2, "ann"), ("alias", "production", 0, 1, "ann"), ("version", "", 0, 1, "ann")]


def test_an_alias_never_points_at_what_was_let_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a version is released while an alias is pointed at it, the release wins and the alias request gets
    NotFound."""
    promote_run(world.system, trained(world, "a").name, "churn", "", asked(world))
    really, others = world.models.version, [1]

    def overtaken(name: str, number: int) -> Version | None:
        found = really(name, number)
        if others:
            let_go(world.system.models, world.system.clock, name, others.pop(), asked(world))
        return found

    monkeypatch.setattr(world.models, "version", overtaken)
    with pytest.raises(NotFound, match="no version 1 any more"):
        point(world.system, "churn", 1, "production", asked(world))
    assert world.models.rows["churn"].value.aliases == {}


def test_a_schedule_begins_with_the_version_of_the_moment(world: World) -> None:
    """`--from churn@production` of a schedule is the run that the alias points at when the schedule fires."""
    runs = [trained(world, drop).name for drop in ("a", "b")]
    request = RunRequest(template="mnist", data="drops/mnist/a", from_run="churn@production")
    meanings = []
    for run in runs:
        promote_run(world.system, run, "churn", "production", asked(world))
        meanings.append(meant(world.system, request, None).changes["from_run"])
    assert meanings == runs
    with pytest.raises(NotFound, match="no alias 'staging'"):
        meant(world.system, structs.replace(request, from_run="churn@staging"), None)


def test_undo_goes_back_one_move_after_the_other(world: World) -> None:
    """Each undo points the alias where it was before, finally nowhere, and the history has every move."""
    for drop in ("a", "b", "c"):
        promote_run(world.system, trained(world, drop).name, "churn", "production", asked(world))
    places = []
    for _ in range(3):
        aliases = undo(world.system, "churn", "production", asked(world)).aliases
        places.append(aliases["production"].number if aliases else 0)
    assert places == [2, 1, 0]
    with pytest.raises(NotFound, match="no alias 'production'"):
        undo(world.system, "churn", "production", asked(world))
    moves = [(line.before, line.after) for line in world.models.history("churn") if line.alias]
    assert moves == [(1, 0), (2, 1), (3, 2), (2, 3), (1, 2), (0, 1)]


def test_two_promotions_at_once_leave_one_winner_and_a_true_history(world: World) -> None:
    """The slower promotion takes the next number, and its proof of the first number is deleted."""
    first, second = trained(world, "a"), trained(world, "b")
    really = world.models.write
    others: list[str] = [second.name]

    def overtaken(before: Stored[Model] | None, write: Write) -> None:
        if others:
            promote_run(world.system, others.pop(), "churn", "production", asked(world))
        really(before, write)

    world.models.write = overtaken  # type: ignore[method-assign]
    made = promote_run(world.system, first.name, "churn", "production", asked(world))
    assert (made.number, version_of(world.models, "churn", "1").run) == (2, second.name)
    stored = world.models.get("churn")
    assert stored
    assert stored.value.aliases["production"].number == 2
    lines = world.models.history("churn")
    assert [line.order for line in lines] == [4, 3, 2, 1]
    assert [(line.what, line.after) for line in lines] == [("alias", 2), ("version", 2), ("alias", 1), ("version", 1)]
    proofs = {blob.name.split("/")[3] for blob in world.blobs.list(Place("output", f"digits/{first.name}/proof/"))}
    assert proofs == {made.proof.split("/")[3]}


def test_what_has_a_name_is_kept_with_its_data(world: World) -> None:
    """rm refuses a version's run and its drop, and says what would break, until the version is released."""
    run = trained(world)
    promote_run(world.system, run.name, "churn", "production", asked(world))
    who = remove.RemovalRequest(ANN)
    refused: list[Callable[[], object]] = [
        lambda: remove.remove_run(world.system, world.removals, run.name, who),
        lambda: remove.remove_drop(world.system, world.removals, DropKey("mnist", "a"), who),
        lambda: remove.clear(world.system, world.removals, RemovalKind.COPIES, run.name, who),
    ]
    for ask in refused:
        with pytest.raises(Conflict, match=r"is kept for churn/1: .* `models churn/1 --let-go` releases it"):
            ask()
    with pytest.raises(Conflict, match=r"churn/1 is churn@production. Move the alias first"):
        let_go(world.system.models, world.system.clock, "churn", 1, asked(world))
    undo(world.system, "churn", "production", asked(world))
    let_go(world.system.models, world.system.clock, "churn", 1, asked(world, "old"))
    remove.remove_run(world.system, world.removals, run.name, remove.RemovalRequest(ANN))
    with pytest.raises(NotFound, match="no version 1 any more"):
        version_of(world.models, "churn", "1")
    with pytest.raises(Conflict, match="were removed at"):
        promote_run(world.system, run.name, "churn", "", asked(world))


@pytest.mark.parametrize("before_the_write", [True, False])
def test_a_removal_and_a_promotion_at_once_never_both_win(world: World, before_the_write: bool) -> None:
    """Whichever write comes first: a removed run is no version, and a version's run is not removed."""
    run = trained(world)
    really, refused = world.models.write, list[str]()

    def removed() -> None:
        try:
            remove.remove_run(world.system, world.removals, run.name, remove.RemovalRequest(ANN))
        except Conflict as exc:
            refused.append(exc.code)

    def meanwhile(before: Stored[Model] | None, write: Write) -> None:
        world.models.write = really  # type: ignore[method-assign]
        if before_the_write:
            removed()
        really(before, write)
        if not before_the_write:
            removed()

    world.models.write = meanwhile  # type: ignore[method-assign]
    try:
        promote_run(world.system, run.name, "churn", "", asked(world))
    except Conflict as exc:
        refused.append(exc.code)
    kept = [version.run for version in world.models.kept()]
    gone = world.runs.get(run.name).value.removed.at is not None
    assert (kept, gone, refused) == (([], True, ["removed"]) if before_the_write else ([run.name], False, ["named"]))


@pytest.mark.parametrize("name", ["", "Churn", "1churn", "churn_eu", "churn/eu", "a" * 64, "../x", "churn\n"])
def test_names_obey_one_grammar(world: World, name: str) -> None:
    """An invalid name is refused with the grammar, before anything is read."""
    for check in (check_name, check_alias):
        with pytest.raises(Impossible, match=r"use a small letter"):
            check(name)
    with pytest.raises(Impossible, match="are reserved for runs"):
        check_alias("latest")
    with pytest.raises(Impossible, match="is not valid; write @latest"):
        find(world.system, "churn@production")


def test_only_a_completed_archived_run_with_a_model_is_promoted(world: World) -> None:
    """Other runs are refused with their state, and nothing is written."""
    world.complete("1.bin")
    name = world.only_run().name
    with pytest.raises(Conflict, match="only a completed one has a model"):
        promote_run(world.system, name, "churn", "", asked(world))
    with pytest.raises(NotFound, match="no model 'churn'"):
        point(world.system, "churn", 1, "production", asked(world))
    assert not world.models.rows


class Evil:
    def __reduce__(self) -> Any:
        return print, ("code",)


def test_a_pickle_that_runs_code_is_refused_unless_it_is_allowed(world: World) -> None:
    """The refusal names the file and the functions that it would call; --allow-code accepts it."""
    run = trained(world, model=pickle.dumps(Evil()), name="model.pkl")
    with pytest.raises(Impossible, match=r"model.pkl .* may run code when it is loaded: it calls builtins.print"):
        promote_run(world.system, run.name, "churn", "", asked(world))
    assert promote_run(world.system, run.name, "churn", "", asked(world), allow_code=True).number == 1


@pytest.mark.parametrize(
    ("at", "byte", "words"),
    [(45, 0xFF, "can't be read"), (6, 1, "encrypted"), (8, 99, "unusual way")],
)
def test_a_model_that_was_altered_is_refused_with_the_reason(world: World, at: int, byte: int, words: str) -> None:
    """A zip of weights that is broken, encrypted, or in an unsupported compression is refused, and raises no other
    error."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", pickle.dumps(list(range(100))))
    data = bytearray(file.getvalue())
    for entry in (0, data.index(b"PK\x01\x02") + 2) if 0 < at < 10 else (0,):  # the directory repeats the field
        data[entry + at] = byte
    world.blobs.put("output", "m.pt", bytes(data))
    assert words in why_unsafe(world.blobs, "m.pt", len(data))


def test_no_secret_of_a_job_is_signed(world: World, tmp_path: Path) -> None:
    """A proof names the job's environment variables, but has the values of the harmless ones only."""
    secret, harmless = "hf_planted0123456789", "OMP_NUM_THREADS"
    run = trained(world)
    stored = world.runs.get(run.name)
    request = replace(stored.value.asked.request, variables={"HF_TOKEN": secret, harmless: "2"})
    world.runs.update(stored, replace(stored.value, asked=replace(stored.value.asked, request=request)))
    version = promote_run(world.system, run.name, "churn", "production", asked(world))
    folder = fetched(world, version, tmp_path / "churn")
    holding = [path.name for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert holding == []
    job = json.dumps(json.loads((folder / "provenance.json").read_text())["predicate"]["buildDefinition"])
    assert '"HF_TOKEN": "(not recorded)"' in job
    assert f'"{harmless}": "2"' in job


def test_the_proof_is_what_others_read(world: World, tmp_path: Path) -> None:
    """in-toto's own library reads the statement, CycloneDX's own schema accepts the bill, and model_signing's own
    CLI verifies the signature. Each document has the data, code, packages, parameters and metrics."""
    run = trained(world)
    version = promote_run(world.system, run.name, "churn", "production", asked(world, "first"))
    folder = fetched(world, version, tmp_path / "churn")
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names == {
        *("models/model.safetensors", "models/model.json", "manifest.json"),
        *("provenance.json", "bom.json", "README.md", SIGNATURE),
    }
    statement = json.loads((folder / "provenance.json").read_text())
    Statement(**_as_arguments(statement)).validate()
    data = statement["predicate"]["buildDefinition"]["resolvedDependencies"][0]
    assert data["digest"]["sha256"] == hashlib.sha256(b"a").hexdigest()
    assert data["name"] == "mnist/a/1.bin"
    bill = (folder / "bom.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill) is None
    assert {"torch", "numpy"} <= {each["name"] for each in json.loads(bill)["components"]}
    assert "test_accuracy" in (folder / "README.md").read_text()
    key = tmp_path / "key.pem"
    key.write_bytes(world.signer.public_key())
    argv = [sys.executable, "-m", "model_signing", "verify", "key", str(folder), "--signature"]
    done = subprocess.run([*argv, str(folder / SIGNATURE), "--public_key", str(key)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (folder / "models" / "model.safetensors").write_bytes(b"Weights")
    done = subprocess.run([*argv, str(folder / SIGNATURE), "--public_key", str(key)], capture_output=True, text=True)
    assert done.returncode != 0


def test_the_card_says_what_people_stated_and_what_nobody_did(world: World, tmp_path: Path) -> None:
    """The card has the route's author, licenses and limits, a package's license, and a sentence for each missing
    fact."""
    run = trained(world)
    name, route = next(iter(world.system.routes.items()))
    stated = {"author": "ada | <b>", "licence": "MIT", "data_origin": "a survey", "task": "Churn.", "limits": "Adults."}
    system = replace(world.system, routes={name: replace(route, card=stated)})
    version = promote_run(system, run.name, "churn", "", asked(world))
    folder = fetched(world, version, tmp_path / "churn")
    bill = json.loads((folder / "bom.json").read_text())
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bill)) is None
    metadata = bill["metadata"]
    assert metadata["tools"]["components"][0]["name"] == "trainyard"
    assert metadata["timestamp"]
    assert metadata["authors"] == [{"name": "ada | <b>"}]
    assert metadata["component"]["licenses"] == [{"license": {"name": "MIT"}}]
    card = metadata["component"]["modelCard"]
    assert card["modelParameters"]["task"] == "Churn."
    assert card["considerations"] == {"technicalLimitations": ["Adults."]}
    assert {"hyperparameter:epochs"} <= {each["name"] for each in card["properties"]}
    (data,) = (each for each in bill["components"] if each["type"] == "data")
    assert data["description"] == "a survey"
    (torch,) = (each for each in bill["components"] if each["name"] == "torch")
    assert torch["licenses"] == [{"license": {"name": "BSD-3-Clause"}}]
    assert torch["properties"] == [{"name": "trainyard:sha256 of RECORD", "value": "0a" * 32}]
    readme = (folder / "README.md").read_text()
    assert "| author | ada \\| &lt;b> |" in readme
    assert "| supplier | nobody stated it |" in readme
    assert "license: MIT" in readme
    predicate = json.loads((folder / "provenance.json").read_text())["predicate"]
    assert predicate["trainyard_stated"] == stated
    unknown = predicate["trainyard_not_known"]
    assert "Data licence: nobody stated the licence or the terms of the training data." in unknown
    assert not any(each.startswith("Author") for each in unknown)


def _as_arguments(statement: dict[str, Any]) -> dict[str, Any]:
    from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor

    subjects = [ResourceDescriptor(name=each["name"], digest=each["digest"]).pb for each in statement["subject"]]
    return {"subjects": subjects, "predicate_type": statement["predicateType"], "predicate": statement["predicate"]}


def test_tags_and_notes_change_nothing_that_was_signed(world: World, tmp_path: Path) -> None:
    """Later tags and notes on the run leave the proof and the chain unchanged."""
    run = trained(world)
    version = promote_run(world.system, run.name, "churn", "", asked(world))
    before = {p.name: p.read_bytes() for p in fetched(world, version, tmp_path / "1").rglob("*") if p.is_file()}
    change_tags(world.system, run.name, {"lr": "best"}, [], ANN)
    add_note(world.system.runs, world.system.clock, run.name, "not ours", ANN)
    after = {p.name: p.read_bytes() for p in fetched(world, version, tmp_path / "2").rglob("*") if p.is_file()}
    assert before == after
    assert {link.state for link in chain(world.system, version)} <= {"good", "unknown"}


def test_the_chain_names_the_link_that_broke(world: World) -> None:
    """Changed data, overwritten weights and an altered document are each reported at their link."""
    run = trained(world)
    version = promote_run(world.system, run.name, "churn", "", asked(world))

    def bad() -> dict[str, str]:
        return {link.link: link.says for link in chain(world.system, version) if link.state == "bad"}

    assert bad() == {}
    world.blobs.put("drops", "mnist/a/1.bin", b"other")
    assert bad() == {"data": "mnist/a@1: mnist/a/1.bin changed."}
    world.blobs.put("output", f"digits/{run.name}/models/model.safetensors", b"other")
    world.blobs.put("output", f"{version.proof}/bom.json", b"{}")
    assert bad().keys() == {"data", "weights", "signature"}
    assert "bom.json does not match the signature" in bad()["signature"]


def test_an_archive_that_was_altered_is_not_promoted(world: World) -> None:
    """The model's bytes are compared with the manifest's MD5 before anything is signed."""
    run = trained(world)
    world.blobs.put("output", f"digits/{run.name}/models/model.safetensors", b"WEIGHTS")
    with pytest.raises(Conflict, match="was recorded with"):
        promote_run(world.system, run.name, "churn", "", asked(world))
    assert not world.models.rows
