"""cifar_elastic/train.py as a whole: it learns, survives a kill, and gives the same result with any number of
processes."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import checkpoint
import predict
import pytest
import torch
import yaml
from cifar_elastic import batches, train
from cifar_elastic.pixels import Normalised
from cifar_elastic.resnet import ResNet18
from safetensors.torch import load_file
from torch import nn
from torchvision.transforms.functional import to_pil_image

from emulators.process import wait_for
from tests.trainers import launch as run
from tests.trainers.cifar import write

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # azure-ai-ml on its own marshmallow
    from azure.ai.ml import load_job
    from azure.ai.ml.entities import Command

SCRIPT = "cifar_elastic/train.py"
JOB = run.TRAINERS / "cifar_elastic" / "job.yaml"
EPOCHS, TRAIN, STEPS = 6, 195, 10  # 195 images in steps of 20: the last has 15, 8 and 7 for two processes
SETTINGS = f"--epochs {EPOCHS} --batch-size 20 --width 8 --lr 0.05 --log-interval 2 --test-batch-size 30".split()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("colours"), per_batch=TRAIN // 5, test=100)


@dataclass(frozen=True)
class Trained:
    """A finished training, with its files in `folder`."""

    folder: Path

    @property
    def rows(self) -> list[dict[str, Any]]:
        return run.metrics(self.folder)

    def values(self, name: str) -> list[float]:
        return [row[name] for row in self.rows if name in row]


def places(folder: Path) -> list[str]:
    kinds = ("models", "metrics", "checkpoints", "trace")
    return [f"--{kind.removesuffix('s') if kind != 'metrics' else kind}-dir={folder / kind}" for kind in kinds]


@pytest.fixture(scope="module")
def one(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A training in one process, without interruption."""
    folder = tmp_path_factory.mktemp("one")
    process = run.start([SCRIPT, "--data", str(data), *SETTINGS, *places(folder)], run.environment())
    result = run.finish(process)
    assert result.code == 0, result
    return Trained(folder / "metrics")


def test_it_learns(one: Trained) -> None:
    """Six epochs are enough to distinguish ten colours, also in images that were not trained on."""
    assert one.values("test_accuracy")[-1] >= 0.9


def test_killed_in_the_middle_it_ends_as_if_nothing_had_been(data: Path, one: Trained, tmp_path: Path) -> None:
    """After kill -9 of a rank under torchrun, each step has its rows once, each epoch has each image once, the last
    loss equals that of the undisturbed training, and two processes give the result of one."""
    args = ["--data", str(data), *SETTINGS, *places(tmp_path), "--checkpoint-every", "3"]
    process = run.start_torchrun(args, 2, SCRIPT, ["--max-restarts", "1"])
    try:
        wait_for(lambda: list(tmp_path.glob("checkpoints/*-step-1?")), run.DEADLINE_SECONDS, "a checkpoint in epoch 2")
        [victim, _] = run.children(process.pid)
        os.kill(victim, signal.SIGKILL)
        result = run.finish(process)
    finally:
        process.kill()
    assert result.code == 0, result
    assert any(line.startswith("resumed from ") for line in result.out)
    two = Trained(tmp_path / "metrics")
    keys = [[(row["step"], row["epoch"], sorted(row)) for row in trained.rows] for trained in (one, two)]
    assert keys[0] == keys[1]
    assert two.values("learning_rate") == pytest.approx(one.values("learning_rate"))
    assert two.values("test_loss")[0] == pytest.approx(one.values("test_loss")[0], rel=0.02)
    assert two.values("test_loss")[-1] == pytest.approx(one.values("test_loss")[-1], rel=0.2, abs=0.05)
    assert two.values("test_accuracy")[-1] == pytest.approx(one.values("test_accuracy")[-1], abs=0.05)
    seen = last_taken(tmp_path / "trace")
    assert sorted({step for step, _ in seen}) == list(range(1, STEPS * EPOCHS + 1))
    for epoch in range(1, EPOCHS + 1):
        steps = range((epoch - 1) * STEPS + 1, epoch * STEPS + 1)
        assert Counter(image for step, image in seen if step in steps) == Counter(range(TRAIN))


def last_taken(folder: Path) -> list[tuple[int, int]]:
    """Return the (step, image) pairs of the last time that each step was made, because the model has forgotten
    earlier times."""
    rows = [json.loads(line) for path in folder.iterdir() for line in path.read_text().splitlines()]
    last = {row["step"]: max(r["restart"] for r in rows if r["step"] == row["step"]) for row in rows}
    return [(row["step"], image) for row in rows if row["restart"] == last[row["step"]] for image in row["images"]]


def test_the_model_predicts_as_it_was_tested(data: Path, one: Trained) -> None:
    """model.pt2 without our code, and model.safetensors with our code, give the reported accuracy."""
    folder = one.folder.parent / "models"
    facts = json.loads((folder / "model.json").read_text())
    _, test_set, classes = batches.read(data)
    net = nn.Sequential(Normalised(torch.zeros(3), torch.ones(3)), ResNet18(10, width=8))
    net.load_state_dict(load_file(folder / facts["weights"]))
    program = torch.export.load(folder / facts["program"]).module()
    with torch.inference_mode():
        logits, again = net(test_set.pixels), program(test_set.pixels)
    assert torch.allclose(logits, again, atol=1e-4)
    assert (logits.argmax(1) == test_set.labels).double().mean().item() == pytest.approx(
        facts["metrics"]["test_accuracy"]
    )
    assert facts["metrics"]["test_accuracy"] == pytest.approx(one.values("test_accuracy")[-1])
    assert facts["classes"] == classes
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "model.pt2", "model.safetensors"]


def test_no_epochs_only_test_a_model(alone: None, data: Path, one: Trained, tmp_path: Path) -> None:
    """With --epochs 0 the model of --from-model is tested unchanged."""
    args = ["--data", data, "--epochs", 0, "--width", 8, "--from-model", one.folder.parent / "models"]
    assert here(*args, "--metrics-dir", tmp_path) == 0
    assert Trained(tmp_path).values("test_loss") == pytest.approx(one.values("test_loss")[-1:])


def test_predict_shows_what_was_tested(
    alone: None, data: Path, one: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """predict.py finds the same classes of test images as the training, from image files, and draws the images."""
    _, test_set, classes = batches.read(data)
    images = [tmp_path / f"{number}.png" for number in range(5)]
    for pixels, image in zip(test_set.pixels, images, strict=False):
        to_pil_image(pixels).save(image)
    picture = tmp_path / "seen.png"
    models = one.folder.parent / "models"
    assert predict.main([str(models), *map(str, images), "--picture", str(picture)]) == 0
    told = [json.loads(line)["guesses"][0]["label"] for line in capsys.readouterr().out.splitlines()]
    true = [classes[label] for label in test_set.labels[:5].tolist()]
    assert sum(a == b for a, b in zip(told, true, strict=True)) >= 4
    assert picture.read_bytes().startswith(b"\x89PNG")


def here(*args: object) -> int:
    """Train in this process, and return the exit code."""
    return train.main([str(arg) for arg in args])


def test_a_finished_training_only_saves_its_model(
    alone: None, data: Path, one: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A finished training that is started again trains nothing, adds no row, and saves a model of the same
    accuracy."""
    before = len(one.rows)
    where = [place for place in places(one.folder.parent) if not place.startswith("--model-dir")]
    assert here("--data", data, *SETTINGS, *where, "--model-dir", tmp_path) == 0
    assert len(one.rows) == before
    facts = json.loads((tmp_path / "model.json").read_text())
    assert facts["metrics"]["test_accuracy"] == pytest.approx(one.values("test_accuracy")[-1])


def test_a_seed_fixes_the_result(alone: None, data: Path, tmp_path: Path) -> None:
    """The same seed gives bit-identical losses; another seed does not."""
    losses = []
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        args = ["--data", data, "--epochs", 1, "--width", 8, "--batch-size", 50, "--seed", seed]
        assert here(*args, "--log-interval", 1, "--metrics-dir", tmp_path / name) == 0
        losses.append(Trained(tmp_path / name).values("train_loss"))
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]


def test_other_settings_do_not_go_on(
    alone: None, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A checkpoint of a training with another batch size is refused with exit code 2 and one line."""
    base = ["--data", data, "--epochs", 1, "--width", 8, "--checkpoint-dir", tmp_path]
    assert here(*base, "--batch-size", 100) == 0
    assert here(*base, "--batch-size", 65) == 2
    assert "expected checkpoints with batch_size 65, found batch_size 100" in capsys.readouterr().err


def test_sigterm_before_the_test_ends_is_taken_up(alone: None, data: Path, tmp_path: Path) -> None:
    """A training stopped between an epoch's last step and its test continues with the test, and no row occurs
    twice."""
    base = ["--data", data, "--epochs", 2, "--width", 8, "--batch-size", 100, "--checkpoint-dir", tmp_path / "c"]
    args = [*base, "--metrics-dir", tmp_path / "m"]  # four steps in all
    evaluate = train.evaluate
    with pytest.MonkeyPatch.context() as patch:

        def told_to_stop(*both: Any) -> Any:
            signal.raise_signal(signal.SIGTERM)
            return evaluate(*both)

        patch.setattr(train, "evaluate", told_to_stop)
        assert here(*args) == 143
    [found] = [checkpoint.verified(path) for path in (tmp_path / "c").glob("0*")]
    assert found
    assert found["facts"] == {"epoch": 1, "samples": TRAIN, "step": 2}
    assert here(*args) == 0
    rows = [(row["step"], "test_loss" in row) for row in run.metrics(tmp_path / "m")]
    assert rows == [(2, False), (2, True), (4, False), (4, True)]


def test_bad_data_is_one_line(alone: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unusable data ends the training with exit code 2 and one line, without a traceback."""
    (tmp_path / "notes.txt").touch()
    assert here("--data", tmp_path) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"rank 0: bad data: {tmp_path}: expected the files data_batch_1, ")


@pytest.mark.filterwarnings("ignore:.*(marshmallow|context. parameter).*", "ignore::DeprecationWarning")
def test_azure_ml_accepts_the_job() -> None:
    """Microsoft's client loads the job: one node that starts torchrun itself, and three outputs."""
    job = load_job(JOB)
    assert isinstance(job, Command)
    assert (job.resources.instance_count, job.distribution) == (1, None)
    assert (JOB.parent / str(job.code)).resolve() == run.TRAINERS
    outputs = {name: (out.type, out.mode) for name, out in job.outputs.items()}
    assert outputs == dict.fromkeys(("models", "metrics", "checkpoints"), ("uri_folder", "rw_mount"))


def test_the_trainer_takes_what_the_job_passes() -> None:
    """Every placeholder of the command is an input or output of the job, and every flag is a flag of the trainer."""
    job = yaml.safe_load(JOB.read_text())
    given = {f"inputs.{name}": value for name, value in job["inputs"].items()}
    given |= {"inputs.data": "/in/data"} | {f"outputs.{name}": f"/out/{name}" for name in job["outputs"]}
    words = shlex.split(re.sub(r"\$\{\{(.+?)\}\}", lambda found: str(given.pop(found[1])), job["command"]))
    assert words[:5] == ["python", "-m", "elastic.launch", "--in-place", SCRIPT]
    args = train.arguments().parse_args(words[5:])
    defaults = train.arguments().parse_args(["--data", "x"])
    assert not given  # none is left unused
    for name in ("epochs", "batch_size", "lr", "width"):
        assert getattr(args, name) == getattr(defaults, name)
    assert [str(path) for path in (args.model_dir, args.metrics_dir, args.checkpoint_dir)] == [
        "/out/models",
        "/out/metrics",
        "/out/checkpoints",
    ]
