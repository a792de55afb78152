"""predict.py with models as their trainers save them. The weights are new: the tests prove the path to a guess."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import predict
import pytest
import torch
from cifar_elastic.pixels import Normalised
from cifar_elastic.resnet import ResNet18
from detection import model as detection_model
from detection import results as detection_results
from detection.data import Category
from PIL import Image
from torch import nn
from transfer import backbone
from transfer import results as transfer_results


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    Image.new("RGB", (90, 70), (200, 30, 30)).save(tmp_path / "bee.png")
    return tmp_path / "bee.png"


def look(models: Path, picture: Path, capsys: Any, *options: str) -> dict[str, Any]:
    assert predict.main([str(models), str(picture), *options]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def test_classes_of_an_image(tmp_path: Path, picture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model of transfer gives each class its probability, the likeliest first; the probabilities sum to one."""
    torch.manual_seed(1)
    view = backbone.view_for("squeezenet1_1", 64)
    facts = {
        "backbone": "squeezenet1_1",
        "classes": ["ant", "bee"],
        "input": vars(view),
        "weights": "model.safetensors",
    }
    transfer_results.save_weights(backbone.build("squeezenet1_1", 2, 64), tmp_path / "models", facts)
    guesses = look(tmp_path / "models", picture, capsys)["guesses"]
    assert {guess["label"] for guess in guesses} == {"ant", "bee"}
    assert sum(guess["score"] for guess in guesses) == pytest.approx(1)
    assert guesses[0]["score"] >= guesses[1]["score"]


def test_a_folder_may_hold_other_files(tmp_path: Path, picture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unreadable files of a folder, and sub-folders, are named and skipped; a file given by name is refused."""
    view = backbone.view_for("squeezenet1_1", 64)
    facts = {
        "backbone": "squeezenet1_1",
        "classes": ["ant", "bee"],
        "input": vars(view),
        "weights": "model.safetensors",
    }
    transfer_results.save_weights(backbone.build("squeezenet1_1", 2, 64), tmp_path / "models", facts)
    (tmp_path / "notes.txt").write_text("no image")
    models = str(tmp_path / "models")
    assert predict.main([models, str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert [json.loads(line)["file"] for line in said.out.splitlines()] == [str(picture)]
    assert f"skipped: {tmp_path / 'notes.txt'}: expected an image" in said.err
    assert f"skipped: {models}: a subfolder" in said.err
    for nothing in (tmp_path / "notes.txt", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        assert predict.main([models, str(nothing)]) == 2


def test_boxes_in_an_image(tmp_path: Path, picture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model of detection gives boxes in the image's own pixels, each with its class, and draws them."""
    torch.manual_seed(1)
    plan = detection_model.Plan(backbone="resnet18", classes=1, min_size=64, max_size=96)
    net = detection_model.build(plan)
    for name, bias in net.named_parameters():
        if name.endswith("cls_logits.bias"):
            nn.init.constant_(bias, 1.0)  # else an untrained model is sure of nothing; now of the background, too
    detection_results.save(net, plan, [Category(1, "bee")], tmp_path / "models")
    drawn = tmp_path / "seen.png"
    found = look(tmp_path / "models", picture, capsys, f"--picture={drawn}")["guesses"]
    assert found
    for guess in found:
        left, top, right, bottom = guess["box"]
        assert guess["label"] == "bee"
        assert 0 <= left <= right <= 90
        assert 0 <= top <= bottom <= 70
    with Image.open(drawn) as image:
        colours = {colour for _, colour in image.convert("RGB").getcolors(1 << 20) or ()}
    assert {(200, 30, 30), (214, 39, 40)} <= colours  # the image's own, and the box's (matplotlib's tab:red)


def test_a_picture_that_can_not_be_is_refused(
    tmp_path: Path, picture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A picture needs the name of a .png in an existing folder; a wrong name is refused before the model is loaded."""
    for wrong, why in (("seen.pdf", "is written as .png"), ("nowhere/seen.png", "there is no folder")):
        assert predict.main([str(tmp_path), str(picture), f"--picture={tmp_path / wrong}"]) == 2
        assert why in capsys.readouterr().err


def test_a_model_is_never_a_program(tmp_path: Path, picture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the weights of a cifar_elastic model are read; other files that the model names are not loaded."""
    net = nn.Sequential(Normalised(torch.zeros(3), torch.ones(3)), ResNet18(2, width=8))
    torch.save(net.state_dict(), tmp_path / "model.pt")
    facts = {
        "architecture": "cifar_elastic: as it says",
        "weights": "../elsewhere/model.pt",
        "program": str(tmp_path / "hostile.pt2"),
        "classes": ["ant", "bee"],
        "input": {"shape": ["N", 3, 32, 32]},
        "training": {"width": 8},
    }
    (tmp_path / "model.json").write_text(json.dumps(facts))
    (tmp_path / "hostile.pt2").write_text("no program")
    guesses = look(tmp_path, picture, capsys)["guesses"]
    assert {guess["label"] for guess in guesses} == {"ant", "bee"}


def test_what_is_no_model_is_refused(tmp_path: Path, picture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder without a model, or with a model of another program, ends with 2 and a message about what was
    expected."""
    assert predict.main([str(tmp_path), str(picture)]) == 2
    assert "expected a model with its model.json" in capsys.readouterr().err
    (tmp_path / "model.json").write_text('{"architecture": "mine"}')
    assert predict.main([str(tmp_path), str(picture)]) == 2
    assert "a model of mnist, cifar_elastic, transfer, detection, bert, found mine" in capsys.readouterr().err
