"""A practitioner's daily work with runs on the local cloud: set parameters, compare, continue."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient
from PIL import Image

from cli.api.client import Api
from emulators.process import wait_for
from local import digits
from local.cloud import Cloud, Options
from local.demo.follow import follow, users
from local.demo.phases import Seen
from local.demo.view import Screen
from tests.e2e import typist
from tests.e2e.desk import ROOT, Desk, one_node_each

KINDS = ("images-idx3", "labels-idx1")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("daily")
    digits.write(folder / "digits")
    options = Options(node_start_seconds=0.2, routes=one_node_each(folder))
    with Cloud.start(folder / "cloud", options) as cloud:
        yield Desk(cloud, folder)


@pytest.fixture(scope="module")
def first(desk: Desk) -> dict[str, Any]:
    """A run of the digits with one epoch."""
    told: dict[str, Any] = desk.ask("drop", "digits", "mnist/digits-1", "-p", "epochs=1", "--follow")
    return told


def test_a_drop_takes_parameters(first: dict[str, Any], desk: Desk) -> None:
    """drop -p sets the same parameters as submit -p; the run stores and shows all parameters, including defaults."""
    assert first["state"] == "completed"
    assert first["parameters"] == {
        "epochs": 1, "batch_size": 64, "lr": 0.05, "momentum": 0.9, "weight_decay": 0.0001, "seed": 1, "device": "auto",
    }  # fmt: skip
    assert "epochs=1 batch_size=64 lr=0.05" in desk.type("show", first["run"]).stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("mnist/wrong", "-p", "epoch=2"), "inputs.epoch: is not a parameter. Did you mean 'epochs'?"),
        (("mnist/wrong", "-p", "epochs=abc"), "inputs.epochs: is 'abc'; use a whole number from 0."),
        (("mnist/wrong", "-p", "epochs=-5"), "inputs.epochs: is -5; use a whole number from 0."),
        (("minst/wrong",), "There is no route 'minst'. Did you mean 'mnist'?"),
    ],
)
def test_what_is_wrong_is_said_before_the_upload(desk: Desk, words: tuple[str, ...], why: str) -> None:
    """A wrong parameter or route is refused before any upload, with a suggestion."""
    refused = desk.type("drop", "digits", *words, expect=3 if words[0].startswith("minst") else 1)
    assert why in refused.stderr
    desk.type("show", words[0], expect=3)


def test_a_trainers_help_shows_its_parameters(desk: Desk) -> None:
    """submit TRAINER --help shows each parameter with its default, meaning and allowed values."""
    told = desk.type("submit", "transfer", "--help").stdout
    assert "-p epochs=25" in told
    assert "passes over the training set; 0 only tests the model it begins with; integer from 0" in told
    assert "one of torchvision's networks; one of" in told


def test_a_run_goes_on_with_more_epochs(first: dict[str, Any], desk: Desk) -> None:
    """continue starts from the run's checkpoint: the curve has both epochs, and the model is better."""
    refused = desk.type("continue", first["run"], expect=1).stderr
    run = desk.ask("continue", first["run"], "-p", "epochs=2", "--follow")
    curve = desk.ask("metrics", run["run"])["series"]["test_accuracy"]

    assert "more epochs than its 1" in refused
    assert (run["state"], run["continues"], run["parameters"]["epochs"]) == ("completed", first["run"], 2)
    assert "resumed from" in desk.type("logs", run["run"]).stdout
    assert len(curve) == 2, "one test after each epoch, the first one from the run before"


def test_a_run_begins_with_a_model(first: dict[str, Any], desk: Desk) -> None:
    """submit --from starts with the weights of a completed run, even if only its archive has them; retry -p repeats
    the run with another parameter."""
    with BlobServiceClient.from_connection_string(desk.cloud.record.connection_string) as storage:
        places = [storage.get_container_client(one) for one in storage.list_containers("azureml-blobstore")]
        wrote = [
            (place, name) for place in places for name in place.list_blob_names() if f"/{first['run']}/models/" in name
        ]
        assert wrote
        for place, name in wrote:
            place.delete_blob(name)
    asked = ("submit", "mnist", "--data", "drops/mnist/digits-1", "-p", "epochs=1", "-p", "lr=0.01")
    run = desk.ask(*asked, "--from", first["run"], "--follow")
    again = desk.ask("show", desk.ask("retry", run["run"], "-p", "lr=0.02")["run"])
    desk.type("cancel", again["run"])

    assert run["from_run"] == again["from_run"] == first["run"]
    assert "begins with 8 of 8 tensors of the model in" in desk.type("logs", run["run"]).stdout
    assert (again["parameters"]["lr"], again["retry_of"]) == (0.02, run["run"])
    assert "'lr'" in desk.type("retry", run["run"], "-p", "lrr=1", expect=1).stderr


def test_runs_are_compared(first: dict[str, Any], desk: Desk) -> None:
    """compare shows differences, the best value of each metric and the curves; runs filters, sorts and names."""
    slow = desk.ask("retry", first["run"], "-p", "lr=0.001", "--follow")
    said = desk.type("compare", first["run"], slow["run"], "--plot").stdout
    listed = desk.ask("runs", "--where", "lr<=0.05 and epochs=1", "--sort", "accuracy")
    told = {row["name"]: row["values"] for row in desk.ask("compare", first["run"], slow["run"])["different"]}

    assert told["lr"] == [0.05, 0.001]
    assert "epochs" not in told
    assert "test_accuracy" in said
    assert "\u2524" in said, "a picture with an axis"
    assert listed[0]["run"] == slow["run"]
    assert listed[0]["best"]["metric"] == "test_accuracy"
    assert desk.ask("show", "mnist@best:accuracy")["run"] != slow["run"]
    assert desk.ask("show", slow["run"][:-3])["run"] == slow["run"]
    assert "lr=0.001" in desk.type("runs").stdout


def test_everybody_finds_their_own(first: dict[str, Any], desk: Desk) -> None:
    """A run's owner is its requester, or the uploader of its drop; --mine and --owner find the run."""
    mine = [run["run"] for run in desk.ask("runs", "--mine")]
    assert first["run"] in mine
    assert [run["run"] for run in desk.ask("runs", "--owner", first["owner"])] == mine
    assert desk.ask("runs", "--owner", "nobody") == []
    assert desk.ask("show", first["drop"])["owner"] == first["owner"] != ""


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("submit", "mnist", "--data", "drops/mnist/digits-1", "--nodes", "0"), "a run needs at least one node"),
        (("submit", "mnist", "--data", "nowhere/x"), "no datastore 'nowhere'"),
        (("runs", "--state", "compelted"), "choose from received"),
        (("runs", "--where", "lr >"), "expected a value behind lr >"),
        (("show", "mnist-00"), "Did you mean"),
        (("logs", "@latest", "--rank", "7"), "There is no rank 7 in this run; it has logs of: 0"),
    ],
)
def test_what_cannot_be_is_said_at_once(first: dict[str, Any], desk: Desk, words: tuple[str, ...], why: str) -> None:
    """An impossible or unknown request is refused with the valid choices, and nothing is created."""
    before = desk.runs()
    said = typist.run(words, desk.env)
    assert said.returncode in (1, 2, 3)
    assert why in " ".join(said.stderr.replace("│", " ").split())
    assert desk.runs() == before


def test_a_model_is_used(first: dict[str, Any], desk: Desk) -> None:
    """predict fetches the run's model and shows its prediction for an image, with the trainer's own preprocessing."""
    images, labels = (
        gzip.decompress((desk.folder / "digits" / f"t10k-{kind}-ubyte.gz").read_bytes()) for kind in KINDS
    )
    for number in range(3):
        pixels = images[16 + 784 * number : 16 + 784 * (number + 1)]  # after IDX's header
        Image.frombytes("L", (28, 28), pixels).save(desk.folder / f"digit-{number}.png")
    told = desk.ask("predict", first["run"], *(f"digit-{number}.png" for number in range(3)), "--picture", "seen.png")

    right = [row["guesses"][0]["label"] == str(labels[8 + n]) for n, row in enumerate(told)]
    assert sum(right) >= 2, told
    with Image.open(desk.folder / "seen.png") as picture:
        assert picture.width > 3 * 200  # three images beside one another
    assert (
        "expected an image" in desk.type("predict", first["run"], "digits/t10k-labels-idx1-ubyte.gz", expect=1).stderr
    )


def test_a_demo_beside_others_waits_for_none(first: dict[str, Any], desk: Desk) -> None:
    """A demo notices a busy cloud, and does not wait for a cluster that another person's run keeps up."""
    other = desk.ask("submit", desk.job("long.json", "import time; print('here', flush=True); time.sleep(600)"))["run"]
    wait_for(lambda: desk.ask("show", other)["state"] == "running", 60, "the other run to have its node", 0.3)
    screen = Screen("demo", Seen(datetime.now(UTC)))
    with Api(desk.cloud.api) as api:
        assert users(api)[0] == f"run {other}"
        follow(api, screen, str(first["drop"]), lambda: None)
    assert screen.seen.kept_for == f"run {other}"
    _read_across_an_absence(desk, other)


def _read_across_an_absence(desk: Desk, run: str) -> None:
    """Kill the app while a log is followed, and check that the reader gets one notice of its absence and one of its
    return."""
    command = [sys.executable, "-m", "cli", "logs", "-f", run]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=desk.env, stdout=pipe, stderr=pipe, text=True) as reading:
        assert reading.stdout
        assert reading.stderr
        assert reading.stdout.readline() == "here\n"
        os.kill(desk.cloud.record.parts["host"], signal.SIGKILL)
        away = reading.stderr.readline()
        wait_for(desk.cloud.heal, 60, "the restart of the app")
        back = reading.stderr.readline()
        desk.type("cancel", run)
        out, err = reading.communicate(timeout=100)
    assert "does not answer" in away
    assert (back, err) == ("It is back.\n", "")
    assert reading.returncode == 5, out


def test_a_model_is_promoted_proved_and_trained_again(first: dict[str, Any], desk: Desk) -> None:
    """verify and OpenSSF's own program confirm the signature that promote makes; why agrees; a reproduction has the
    same bytes."""
    made = desk.ask("promote", first["run"], "digits", "--as", "production", "--why", "the first")
    assert (made["number"], made["aliases"], made["asset"]) == (1, ["production"], "azureml:digits:1")
    assert desk.ask("fetch", "digits@production", "--to", "proved")["new"] >= 6
    checked = desk.ask("verify", "digits@production", "proved")
    assert (checked["ok"], checked["model"]) == (True, "digits/1")
    folder = desk.folder / "proved"
    (key,) = (desk.folder / "config" / "signing-keys").iterdir()
    argv = ["verify", "key", str(folder), "--signature", str(folder / "model.sig"), "--public_key", str(key)]
    subprocess.run([sys.executable, "-m", "model_signing", *argv], check=True, capture_output=True)
    told = json.loads((folder / "provenance.json").read_text())["predicate"]["buildDefinition"]
    assert "torch" in told["internalParameters"]["node"]["packages"]
    assert {each["name"] for each in told["resolvedDependencies"]} >= {"code", "environment", "torch"}
    links = {link["link"]: link["state"] for link in desk.ask("why", "digits@production")["links"]}
    assert links == dict.fromkeys(
        ("name", "signature", "weights", "run", "data", "code", "environment", "cost"), "good"
    )
    assert "digits/1" in desk.type("rm", first["run"], "--yes", expect=1).stderr
    begun = ("submit", "mnist", "--data", "drops/mnist/digits-1", "--from", "digits@production", "--dry-run")
    assert first["run"] in desk.ask(*begun)["job"]["inputs"]["from_model"]["path"]
    again = desk.ask("reproduce", "digits@production")
    assert [row["run"] for row in desk.ask("compare", "digits@production", again["run"])["runs"]] == [
        first["run"],
        again["run"],
    ]
    assert (again["equal"], again["differs"], again["others"]) == (True, [], [])
    images = gzip.decompress((desk.folder / "digits" / "t10k-images-idx3-ubyte.gz").read_bytes())
    Image.frombytes("L", (28, 28), images[16 : 16 + 784]).save(desk.folder / "one.png")
    assert desk.ask("predict", "digits@production", "one.png")[0]["guesses"]
    kept = desk.folder / "config" / "models" / "digits-1"
    (kept / "models" / "other.py").write_text("added")
    refused = desk.type("predict", "digits@production", "one.png", expect=1).stderr
    assert (
        "digits/1 does not match its signature, so predict does not use it: models/other.py was added after signing"
        in refused
    )
    (kept / "models" / "other.py").unlink()
    (kept / "models" / "model.safetensors").write_bytes(b"damaged")
    assert desk.ask("predict", "digits@production", "one.png"), "what is damaged is fetched again"
    (folder / "models" / "model.json").write_text("{}")
    assert "models/model.json differs" in desk.type("verify", "digits/1", "proved", expect=1).stdout
    assert "digits/1" in desk.type("models", "digits").stdout
    desk.type("promote", "digits", "--as", "production", "--undo")
    assert desk.ask("models")[0]["aliases"] == []
