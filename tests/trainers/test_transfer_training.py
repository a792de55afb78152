"""transfer/train.py as a whole: what it learns, which files it writes, and how it stops and continues."""

from __future__ import annotations

import json
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file
from torchvision.models import get_model
from torchvision.transforms.v2.functional import pil_to_tensor
from transfer import backbone, train

from emulators.process import wait_for
from tests.trainers import launch

BEES = launch.ROOT.parent / "shared" / "data" / "hymenoptera_data"
SCRIPT = "transfer/train.py"
# Names that a picture might take for formulas, and a file for its own.
COLOURS = {"$blue_1$": (30, 40, 200), "grün": (40, 190, 30), "red": (200, 40, 50)}
SMALL = ["--backbone", "shufflenet_v2_x0_5", "--weights", "none", "--image-size", "32", "--batch-size", "8"]


@pytest.fixture(scope="module")
def colours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes of noisy colours: 11 images each to train on, 4 to validate; one more is truncated."""
    folder = tmp_path_factory.mktemp("colours")
    dice = torch.Generator().manual_seed(0)
    for name, colour in COLOURS.items():
        for i in range(15):
            noise = torch.randn(40, 48, 3, generator=dice) * 40 + torch.tensor(colour)
            path = folder / ("train" if i < 11 else "val") / name / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(noise.clamp(0, 255).byte().numpy()).save(path)
    (folder / "train" / "red" / "cut.png").write_bytes((folder / "train" / "red" / "0.png").read_bytes()[:900])
    return folder


def here(*args: object) -> int:
    """Train in this process, and return the exit code."""
    return train.main([str(arg) for arg in args])


def values(folder: Path, name: str) -> list[Any]:
    return [row[name] for row in launch.metrics(folder) if name in row]


@pytest.fixture(scope="module")
def trained(colours: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, launch.Result]:
    """A training on the colours, by two processes."""
    out = tmp_path_factory.mktemp("trained")
    args = ["--input_dir", str(colours), "--output_dir", str(out), "--metrics-dir", str(out), "--epochs", "20"]
    # Shares of 5 and 6 images, 2 x 2 in the last layers: with less, batch normalisation learns nothing but chance.
    args += [*SMALL, "--image-size", "64", "--batch-size", "11", "--log-interval", "2"]
    results = [launch.finish(p) for p in launch.start_ranks(args, 2, SCRIPT)]
    assert [result.code for result in results] == [0, 0], results
    return out, results[0]


def test_two_processes_learn_the_colours(trained: tuple[Path, launch.Result]) -> None:
    """Two processes distinguish three colours, report this in the last line, and name the broken image in log and
    file."""
    out, result = trained
    assert max(values(out, "val_accuracy")) >= 0.75
    assert re.fullmatch(r"rank 0: done: validation accuracy [\d.]+% in epoch \d+ of 20, [\d.]+ s", result.out[-1])
    (line,) = (out / "skipped.txt").read_text().splitlines()
    assert line.startswith("train/red/cut.png: ")
    assert f"skipped {line}" in result.out


def test_every_row_says_how_it_went(trained: tuple[Path, launch.Result]) -> None:
    """Training rows have speed, waiting, memory and world size; one row an epoch has the validation's results."""
    rows = [row for row in launch.metrics(trained[0]) if "train_loss" in row]
    assert [row["step"] for row in rows] == [step for e in range(20) for step in (3 * e + 2, 3 * e + 3)]
    for row in rows:
        assert row["world_size"] == 2
        assert 0 <= row["train_accuracy"] <= 1
        assert 0 < row["data_wait_share"] < 1
        assert row["images_per_second"] > 0
        assert row["peak_memory_mib"] > 50
    tests = [(row["step"], row["epoch"]) for row in launch.metrics(trained[0]) if "val_loss" in row]
    assert tests == [(3 * epoch, epoch) for epoch in range(1, 21)]


def test_the_best_epoch_is_saved_and_predicts_as_it_was_tested(
    alone: None, trained: tuple[Path, launch.Result], colours: Path
) -> None:
    """model.safetensors and model.pt2, fed as model.json says, both give the best epoch's confusion matrix."""
    out, _ = trained
    facts = json.loads((out / "model.json").read_text(encoding="utf-8"))
    assert facts["classes"] == list(COLOURS)
    assert facts["metrics"]["val_accuracy"] == max(values(out, "val_accuracy"))
    assert values(out, "val_accuracy")[facts["epoch"] - 1] == facts["metrics"]["val_accuracy"]
    net = get_model(facts["backbone"], num_classes=len(facts["classes"]))
    net.load_state_dict(load_file(out / facts["weights"]))
    exported = torch.export.load(out / "model.pt2").module()
    view = backbone.view_for(facts["backbone"], 64)
    assert {**vars(view)}.items() <= facts["input"].items()
    paths = [path for name in COLOURS for path in sorted((colours / "val" / name).iterdir())]
    pixels = torch.stack([view.crop(pil_to_tensor(Image.open(path))) for path in paths])
    with torch.inference_mode():
        logits = net.eval()(view.normalise(pixels))
        torch.testing.assert_close(exported(pixels / 255), logits, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(exported(pixels[:1] / 255), logits[:1], rtol=1e-3, atol=1e-4)
    labels = torch.arange(3).repeat_interleave(4)
    counts = torch.bincount(labels * 3 + logits.argmax(1), minlength=9).view(3, 3)
    assert counts.tolist() == facts["confusion"]
    with safe_open(out / "model.safetensors", "pt") as file:
        assert json.loads(file.metadata()["classes"]) == list(COLOURS)


def test_no_epochs_only_test_a_model(
    alone: None, trained: tuple[Path, launch.Result], colours: Path, tmp_path: Path
) -> None:
    """With --epochs 0 the model of --from-model is tested unchanged, at its own image size."""
    out, _ = trained
    args = ["--input-dir", colours, *SMALL, "--image-size", 96, "--epochs", 0, "--from-model", out]
    assert here(*args, "--metrics-dir", tmp_path) == 0
    assert values(tmp_path, "val_accuracy") == [max(values(out, "val_accuracy"))]


def test_the_pictures_show_something(trained: tuple[Path, launch.Result]) -> None:
    """predictions.png contains the images' own colours, confusion.png its blue; all users can read the output."""
    out, _ = trained
    assert {path.name for path in out.iterdir()} == {
        *("model.safetensors", "model.json", "model.pt2", "confusion.png", "predictions.png"),
        *("skipped.txt", "metrics.jsonl"),
    }
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in out.iterdir())
    pixels = pil_to_tensor(Image.open(out / "predictions.png").convert("RGB")).flatten(1).int()
    for colour in COLOURS.values():
        near = (pixels - torch.tensor(colour)[:, None]).abs().amax(0) < 60
        assert near.float().mean() > 0.03
    blues = pil_to_tensor(Image.open(out / "confusion.png").convert("RGB")).flatten(1).int()
    assert (blues[2] - blues[0] > 60).float().mean() > 0.1


def test_the_number_of_processes_changes_rounding_alone(alone: None, colours: Path, tmp_path: Path) -> None:
    """With the statistics of --weights kept, one and two processes have the same losses.

    One of the 17 batches has one image, so one process has none. The weights file is beside train and val, and only
    rank 0 reads it.
    """
    data = shutil.copytree(colours, tmp_path / "data")
    torch.manual_seed(9)
    torch.save(backbone.build("shufflenet_v2_x0_5", 9, 32).state_dict(), data / "known.pth")
    args = [
        "--input-dir",
        str(data),
        *SMALL,
        "--weights",
        "known.pth",
        "--batch-size",
        "2",
        "--epochs",
        "1",
        "--freeze-batch-norm",
    ]
    args += ["--log-interval", "3"]
    two = launch.start_ranks([*args, "--metrics-dir", str(tmp_path / "two")], 2, SCRIPT)
    assert here(*args, "--metrics-dir", tmp_path / "one") == 0
    results = [launch.finish(process) for process in two]
    assert [result.code for result in results] == [0, 0], results
    for name in ("train_loss", "val_loss"):
        assert values(tmp_path / "one", name) == pytest.approx(values(tmp_path / "two", name), rel=1e-3)


def test_a_seed_fixes_the_result(alone: None, colours: Path, tmp_path: Path) -> None:
    """The same seed gives bit-identical losses and weights, with workers too; another seed does not."""
    for name, seed, workers in (("a", 5, 0), ("b", 5, 1), ("c", 6, 0)):
        folder = tmp_path / name
        args = ["--epochs", 1, "--seed", seed, "--workers", workers, "--metrics-dir", folder, "--output-dir", folder]
        assert here("--input-dir", colours, *SMALL, "--no-export", *args) == 0
    a, b, c = (values(tmp_path / name, "train_loss") for name in "abc")
    assert a == b != c
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in "abc"]
    assert weights[0] == weights[1] != weights[2]


@pytest.fixture
def stopped(colours: Path, tmp_path: Path) -> list[str]:
    """The arguments of a training in two processes that SIGTERM to one process ended within an epoch."""
    args = ["--input-dir", str(colours), *SMALL, "--lr", "0.05", "--tune", "head", "--log-interval", "1"]
    args += ["--epochs", "20", "--no-export", "--checkpoint-dir", str(tmp_path / "checkpoints")]
    processes = launch.start_ranks([*args, "--metrics-dir", str(tmp_path)], 2, SCRIPT)
    metrics = tmp_path / "metrics.jsonl"
    try:
        wait_for(lambda: metrics.exists() and metrics.stat().st_size, launch.DEADLINE_SECONDS, "the first row")
        processes[1].send_signal(signal.SIGTERM)
        results = [launch.finish(process) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert [result.code for result in results] == [143, 143], results
    first, second = (result.err[-1] for result in results)
    assert re.fullmatch(r"rank 0: stopped: rank 1 got SIGTERM; \d+ steps were done", first)
    assert second == first.replace("rank 0", "rank 1", 1)  # at the same step
    assert not any("Traceback" in line for result in results for line in result.err)
    return args


def test_a_stopped_training_goes_on_in_another_number_of_processes(
    alone: None, stopped: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After SIGTERM in two processes, one process continues from their position, and ends like an undisturbed
    training."""
    assert here(*stopped, "--metrics-dir", tmp_path, "--output-dir", tmp_path / "out") == 0
    assert "resumed from" in capsys.readouterr().out
    undisturbed = [*stopped[: stopped.index("--checkpoint-dir")], "--metrics-dir", tmp_path / "undisturbed"]
    assert here(*undisturbed, "--output-dir", tmp_path / "undisturbed") == 0
    assert [row["step"] for row in launch.metrics(tmp_path) if "train_loss" in row] == list(range(1, 101))
    for name in ("train_loss", "val_loss"):
        assert values(tmp_path, name) == pytest.approx(values(tmp_path / "undisturbed", name), rel=1e-3)
    ours, theirs = (load_file(place / "model.safetensors") for place in (tmp_path / "out", tmp_path / "undisturbed"))
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def test_a_training_that_is_done_only_writes_its_results_again(alone: None, colours: Path, tmp_path: Path) -> None:
    """A training started with a finished training's checkpoints makes no step, and still knows its best epoch."""
    args = ["--input-dir", colours, *SMALL, "--epochs", 2, "--no-export", "--checkpoint-dir", tmp_path / "checkpoints"]
    texts = []
    for name in ("first", "again"):
        assert here(*args, "--output-dir", tmp_path / name, "--metrics-dir", tmp_path / "metrics") == 0
        texts.append((tmp_path / name / "model.json").read_text())
    assert texts[0] == texts[1]
    assert len(values(tmp_path / "metrics", "val_loss")) == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--weights", "nowhere.pth"], "--weights nowhere.pth: expected imagenet, none or a file with weights"),
        (["--max-broken", "0"], "expected at most 0% of 46 images to be broken (--max-broken), found 1"),
        (["--input-dir", "/nowhere"], "/nowhere: expected a folder or an archive, found nothing"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    alone: None, colours: Path, capsys: pytest.CaptureFixture[str], args: list[str], message: str
) -> None:
    """Bad data and bad weights end with exit code 2 and one line, without a traceback."""
    assert here("--input-dir", colours, *SMALL, *args) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("rank 0: bad data: ")
    assert message in line


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--backbone", "resnet19"], "invalid choice: 'resnet19'"),
        (["--tune", "tail"], "invalid choice: 'tail'"),
        (["--val-share", "1"], "must be below 1, not 1"),
        (["--epochs", "-1"], "must be at least 0, not -1"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    capsys: pytest.CaptureFixture[str], args: list[str], message: str
) -> None:
    """A wrong argument is named before anything starts, with exit code 2."""
    with pytest.raises(SystemExit, match="2"):
        here("--input-dir", "x", *args)
    assert message in capsys.readouterr().err


def test_ants_and_bees_under_torchrun(tmp_path: Path) -> None:
    """With the real photos in two processes, each validation image is counted once, in its class."""
    if not BEES.is_dir():
        pytest.skip(f"the ants and bees are not in {BEES}")
    args = ["--input_dir", str(BEES), "--weights", "none", "--image-size", "64", "--epochs", "1", "--no-export"]
    result = launch.torchrun([*args, "--output_dir", str(tmp_path)], 2, SCRIPT)
    assert result.code == 0, result.err
    facts = json.loads((tmp_path / "model.json").read_text())
    assert (facts["classes"], torch.tensor(facts["confusion"]).sum(1).tolist()) == (["ants", "bees"], [70, 83])
    assert facts["metrics"]["val_accuracy"] == (facts["confusion"][0][0] + facts["confusion"][1][1]) / 153
