"""detection/train.py as a whole: real processes that meet over gloo and learn to find coloured shapes."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
from detection import coco, data, layouts, results, train
from detection import model as models
from detection.options import Settings, arguments
from files import DataError
from PIL import Image

from emulators.process import wait_for
from tests.trainers import launch as run
from tests.trainers.test_detection_data import change, shapes, table

SCRIPT = "detection/train.py"
SMALL = ["--backbone", "resnet18", "--min-size", "64", "--max-size", "64", "--anchor", "16", "--optimizer", "adamw"]
SMALL += ["--lr", "1e-3", "--no-mirror", "--test-on", "train", "--log-interval", "1"]


@dataclass(frozen=True)
class Training:
    """A finished training: the ended processes and what they wrote."""

    results: list[run.Result]
    folder: Path

    @property
    def rows(self) -> list[dict[str, Any]]:
        return run.metrics(self.folder)

    def each(self, name: str) -> list[float]:
        return [row[name] for row in self.rows if name in row]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shapes(tmp_path_factory.mktemp("shapes"), 4)


@pytest.fixture(scope="module")
def learned(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Training:
    """Two processes that memorize four images."""
    folder = tmp_path_factory.mktemp("learned")
    where = ["--data", str(images), "--model-dir", str(folder), "--metrics-dir", str(folder)]
    args = [
        *where,
        *SMALL,
        "--epochs",
        "30",
        "--batch-size",
        "4",
        "--test-every",
        "15",
        "--test-batch-size",
        "2",
        "--pictures",
        "2",
    ]
    return Training([run.finish(process) for process in run.start_ranks(args, 2, SCRIPT)], folder)


def here(*args: object) -> int:
    """Train in this process, and return the exit code."""
    return train.main([str(arg) for arg in args])


def test_two_processes_learn_images_by_heart(learned: Training) -> None:
    """Two gloo processes find nearly all shapes of four memorized images."""
    assert [result.code for result in learned.results] == [0, 0], learned.results
    assert learned.each("train_map50")[-1] >= 0.9
    assert learned.each("train_map")[-1] >= 0.2


def test_the_log_and_the_last_lines(learned: Training) -> None:
    """Only rank 0 logs steps and tests; each rank's last line states how it ended."""
    first, second = learned.results
    step = (
        r"epoch \d+/30 step 1/1  Loss [\d.]+ \(classification [\d.]+, bbox_regression [\d.]+\)  lr \S+  .* images/s.*"
    )
    assert len([line for line in first.out if re.fullmatch(step, line)]) == 30
    assert len([line for line in first.out if re.match(r"epoch (15|30)/30 train  map [\d.]+%  map50 ", line)]) == 2
    assert "COCO, 2 classes; training 4 images with 8 objects; testing 4 images" in first.out[0]
    assert first.out[-1].startswith("rank 0: done: train map ")
    assert [line[:19] for line in second.out] == ["rank 1: done: train"]


def test_every_row_says_how_it_went(learned: Training) -> None:
    """A training row has losses, rate, speed, memory and world size; a test row has COCO's numbers."""
    rows = [row for row in learned.rows if "train_loss" in row]
    assert len(rows) == 30
    for row in rows:
        assert row["train_loss"] == pytest.approx(row["train_classification"] + row["train_bbox_regression"])
        assert 0 <= row["data_wait_share"] <= 1
        assert row["images_per_second"] > 0
        assert row["peak_memory_mib"] > 50
        assert row["world_size"] == 2
    tests = [row for row in learned.rows if "train_map" in row]
    assert [row["step"] for row in tests] == [15, 30]
    assert set(tests[0]) == {"time", "step", "epoch"} | {f"train_{n}" for n in coco.NAMES if "medium" not in n} - {
        f"train_{n}" for n in coco.NAMES if "large" in n
    }


@pytest.mark.filterwarnings("ignore:.torch.jit.load. is deprecated", "ignore:RetinaNet always returns")
def test_a_saved_model_finds_what_it_found(learned: Training, images: Path) -> None:
    """model.safetensors with model.json, and model.ts without our code, find the boxes of the reported map."""
    net, facts = models.load(learned.folder)
    scripted = torch.jit.load(learned.folder / "model.ts")  # type: ignore[no-untyped-call]  # torch has no types for it
    pictures = layouts.read(images)
    rows = []
    for index in range(4):
        pixels = [data.load(pictures.train, index).float() / 255]
        with torch.inference_mode():
            found, again = net(pixels)[0], scripted(pixels)[1][0]
        assert torch.allclose(found["boxes"], again["boxes"], atol=1e-3)
        columns = [torch.full_like(found["scores"], index), *found["boxes"].unbind(1), found["scores"], found["labels"]]
        rows.append(torch.stack([column.double() for column in columns], 1))
    measured = coco.measure(pictures.train, pictures.categories, torch.cat(rows))
    assert measured["map"] == pytest.approx(facts["metrics"]["train_map"], abs=0.01)
    assert facts["classes"] == [{"label": 1, "id": 3, "name": "square"}, {"label": 2, "id": 17, "name": "disc"}]
    assert (facts["tested_on"], facts["epoch"]) == ("train", 30)


def test_no_epochs_only_test_a_model(alone: None, learned: Training, images: Path, tmp_path: Path) -> None:
    """With --epochs 0 the model of --from-model finds the same boxes, whatever sizes the flags ask for."""
    args = [
        "--data",
        images,
        *SMALL,
        "--min-size",
        32,
        "--test-batch-size",
        2,
        "--epochs",
        0,
        "--from-model",
        learned.folder,
    ]
    assert here(*args, "--metrics-dir", tmp_path) == 0
    assert Training([], tmp_path).each("train_map") == pytest.approx(learned.each("train_map")[-1:], abs=0.01)


def test_pictures_show_what_was_found(learned: Training, images: Path, tmp_path: Path) -> None:
    """The first test images appear twice, side by side: left with the true boxes in lime, right with the found
    boxes in red."""
    assert sorted(path.name for path in (learned.folder / "pictures").iterdir()) == ["1-0001.jpg", "2-0002.jpg"]
    pictures = layouts.read(images).train
    found = table(pictures)[:2]
    found[1, 5] = 0.1  # too low a score to be drawn
    results.draw(pictures, layouts.read(images).categories, found, 1, tmp_path)
    with Image.open(tmp_path / "1-0001.jpg") as picture:
        assert picture.size == (128, 32)
        left, right = (picture.crop((x, 0, x + 64, 32)) for x in (0, 64))
    corners = [box[:2] for box in pictures.boxes[:2].int().tolist()]
    assert [_close(left.getpixel((x, y)), (0, 255, 0)) for x, y in corners] == [True, True]
    assert [_close(right.getpixel((x, y)), (255, 0, 0)) for x, y in corners] == [True, False]


def _close(pixel: Any, colour: tuple[int, int, int]) -> bool:
    return bool(max(abs(one - other) for one, other in zip(pixel, colour, strict=True)) < 100)  # JPEG


def test_a_stopped_training_goes_on_as_one_process(
    alone: None, images: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """SIGTERM to one of two processes ends both with 143; one process continues from their checkpoint to the same end.

    Three wide and high images a step are padded alike in both processes; in every second step the second process has no
    image. The losses are those of one undisturbed process.
    """
    args = ["--data", str(images), *SMALL, "--epochs", "4", "--batch-size", "3", "--test-every", "4", "--no-script"]
    where = ["--metrics-dir", str(tmp_path / "two"), "--checkpoint-dir", str(tmp_path / "checkpoints")]
    processes = run.start_ranks([*args, *where], 2, SCRIPT)
    rows = tmp_path / "two" / "metrics.jsonl"
    wait_for(lambda: rows.exists() and rows.read_text(), run.DEADLINE_SECONDS, "a row of metrics")
    processes[1].send_signal(signal.SIGTERM)
    ended = [run.finish(process) for process in processes]
    assert [result.code for result in ended] == [143, 143], ended
    assert [result.err[-1].startswith(f"rank {n}: stopped: rank 1 got") for n, result in enumerate(ended)] == [True] * 2
    stopped = max(row["step"] for row in run.metrics(tmp_path / "two"))
    assert stopped < 8
    assert here(*args, *where) == 0
    assert "resumed from" in capfd.readouterr().out
    assert here(*args, "--metrics-dir", tmp_path / "one") == 0
    one, two = Training([], tmp_path / "one"), Training([], tmp_path / "two")
    assert [row["step"] for row in two.rows] == [*range(1, 9), 8]
    assert {row["world_size"] for row in two.rows[:stopped]} == {2}
    assert two.each("train_loss") == pytest.approx(one.each("train_loss"), rel=1e-3)


def test_a_seed_fixes_the_result(alone: None, images: Path, tmp_path: Path) -> None:
    """The same seed gives bit-identical losses, also with reading processes; another seed does not."""
    losses = []
    for name, seed, workers in (("a", 5, 0), ("b", 5, 1), ("c", 6, 0)):
        args = ["--epochs", 1, "--batch-size", 2, "--seed", seed, "--workers", workers, "--mirror"]
        assert here("--data", images, *SMALL, *args, "--metrics-dir", tmp_path / name) == 0
        losses.append(Training([], tmp_path / name).each("train_loss"))
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize("name", ["fcos_resnet50_fpn", "fasterrcnn_resnet50_fpn"])
def test_other_models_train_too(alone: None, images: Path, tmp_path: Path, name: str) -> None:
    """Another model, selected by name, trains, is tested and saved; its losses have torchvision's names."""
    sizes = ["--backbone", "resnet18", "--min-size", 64, "--max-size", 64]
    where = ["--data", images, "--metrics-dir", tmp_path, "--model-dir", tmp_path, "--no-script"]
    assert here(*where, "--model", name, *sizes, "--epochs", 1, "--batch-per-process", 2) == 0
    (last,) = (row for row in run.metrics(tmp_path) if "train_loss" in row)
    assert {"train_loss", "train_" + ("bbox_ctrness" if "fcos" in name else "loss_objectness")} <= set(last)
    assert models.load(tmp_path)[1]["plan"]["name"] == name


def settings_for(*args: str) -> Settings:
    return Settings.of(arguments("").parse_args(["--data", "x", "--backbone", "resnet18", *args]))


def test_weights_of_a_backbone(tmp_path: Path) -> None:
    """ImageNet weights go below the pyramid with frozen statistics, and the first stages stay unchanged."""
    torch.save(torchvision.models.resnet18(weights=None).state_dict(), tmp_path / "resnet18.pth")
    given = settings_for("--weights-backbone", "resnet18.pth")
    plan, net, notes = train.prepared(given, given.plan, tmp_path)
    assert plan.frozen_norm
    assert notes[0].startswith("resnet18.pth: 100 tensors loaded")
    still = {name.split(".")[2] for name, weights in net.named_parameters() if not weights.requires_grad}
    assert still == {"conv1", "layer1"}
    frozen = settings_for("--weights-backbone", "resnet18.pth", "--freeze-backbone")
    _, net, _ = train.prepared(frozen, frozen.plan, tmp_path)
    assert not any(weights.requires_grad for weights in models.body(net).parameters())
    assert all(weights.requires_grad for name, weights in net.named_parameters() if "backbone.body" not in name)


def test_weights_of_another_data_set(learned: Training) -> None:
    """A model of two classes initializes a model of five: everything except the classifier's last layer is copied."""
    given = settings_for("--weights", "model.safetensors", "--anchor", "16")
    plan, _, notes = train.prepared(given, models.Plan(**{**vars(given.plan), "classes": 5}), learned.folder)
    assert not plan.frozen_norm
    assert notes[0].endswith(
        "new: head.classification_head.cls_logits.weight, head.classification_head.cls_logits.bias"
    )


def test_weights_that_do_not_fit_are_told(learned: Training, tmp_path: Path) -> None:
    """A missing file, a file without weights, and weights of another model each raise DataError with the reason."""
    (tmp_path / "text.pt").write_text("hello")
    for flag, source, message in (
        (
            "--weights-backbone",
            "none.pt",
            "expected a file, none, or one of IMAGENET1K_V1, DEFAULT, found no such file",
        ),
        ("--weights", "text.pt", "expected weights saved by torch.save, found"),
        (
            "--weights-backbone",
            str(learned.folder / "model.safetensors"),
            "expected weights for this model, found no conv1.weight",
        ),
    ):
        given = settings_for(flag, source)
        with pytest.raises(DataError, match=message):
            train.prepared(given, given.plan, tmp_path)


def test_bad_data_ends_with_2(alone: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Annotations without categories, and a truncated image, end the job with 2 and a line that names the place."""
    shapes(tmp_path, 2)
    path = tmp_path / "images" / "train2017" / "0001.png"
    path.write_bytes(path.read_bytes()[:60])
    assert here("--data", tmp_path, *SMALL) == 2
    assert f"rank 0: bad data: {path}: expected an image, found" in capfd.readouterr().err.splitlines()[-1]
    change(tmp_path, lambda content: content.pop("categories"))
    assert here("--data", tmp_path, *SMALL) == 2
    last = capfd.readouterr().err.splitlines()[-1]
    assert last.startswith(f"rank 0: bad data: {tmp_path}/annotations/instances_train2017.json: expected an object")
    assert "found no categories" in last
