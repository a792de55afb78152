"""mnist/train.py as a whole: real processes that meet over gloo and learn real digits."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from labelled import Images
from mnist import idx, train
from safetensors.torch import load_file

from emulators.process import wait_for
from tests.trainers import launch as run

MNIST = run.ROOT.parent / "shared" / "data" / "mnist"
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
LINE = re.compile(
    r"epoch \d+/\d+ step \d+/\d+  Time [\d.]+ \([\d.]+\)  Data [\d.]+ \([\d.]+\)  "
    r"Loss [\d.]+ \([\d.]+\)  Prec@1 [\d.]+ \([\d.]+\)  Prec@5 [\d.]+ \([\d.]+\)"
)


@dataclass(frozen=True)
class Training:
    """A finished training: the ended processes and what they wrote."""

    results: list[run.Result]
    folder: Path

    @property
    def rows(self) -> list[dict[str, Any]]:
        return run.metrics(self.folder)

    def tests(self, name: str) -> list[float]:
        return [row[name] for row in self.rows if name in row]


@pytest.fixture(scope="module")
def two(digits_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Training:
    """The default training on the digits, in two processes with the environment of Azure ML."""
    folder = tmp_path_factory.mktemp("two")
    args = ["--data", str(digits_folder), "--model-dir", str(folder), "--metrics-dir", str(folder)]
    return Training([run.finish(process) for process in run.start_ranks(args, 2)], folder)


def here(*args: object) -> int:
    """Train in this process, and return the exit code."""
    return train.main([str(arg) for arg in args])


def test_two_processes_learn_the_digits(two: Training) -> None:
    """Two gloo processes with default settings reach 97 % on the digits' test set, and exit with 0."""
    assert [result.code for result in two.results] == [0, 0], two.results
    assert two.tests("test_accuracy")[-1] >= 0.97


def test_rank_0_alone_logs_and_all_say_how_it_ended(two: Training) -> None:
    """The step lines contain Time, Data, Loss, Prec@1 and Prec@5 with their means; each rank has one last line."""
    first, second = two.results
    assert len([line for line in first.out if LINE.fullmatch(line)]) == 30  # 23 steps: 10, 20 and 23, ten times
    assert first.out[-1].startswith("rank 0: done: test accuracy 9")
    assert [line.split(",")[0].replace("1", "0", 1) for line in second.out] == [first.out[-1].split(",")[0]]


def test_every_row_says_how_it_went(two: Training) -> None:
    """A training row has speed, share of waiting, memory and world size; one row an epoch has the test results."""
    rows = [row for row in two.rows if "train_loss" in row]
    assert {row["world_size"] for row in rows} == {2}
    for row in rows:
        assert 0 <= row["train_accuracy"] <= 1
        assert 0 <= row["data_wait_share"] <= 1
        assert row["images_per_second"] > 0
        assert row["peak_memory_mib"] > 50
        assert 0 <= row.get("others_wait_share", 0) <= 1
    assert [row["step"] for row in rows if "others_wait_share" not in row] == [10]  # the first says since when
    steps = [(row["step"], row["epoch"]) for row in two.rows if "test_accuracy" in row and "test_loss" in row]
    assert steps == [(23 * epoch, epoch) for epoch in range(1, 11)]


def test_a_saved_model_predicts_as_it_was_tested(two: Training, digits_folder: Path) -> None:
    """model.safetensors, fed as model.json describes, has the reported test accuracy."""
    facts = json.loads((two.folder / "model.json").read_text())
    net = train.Net()
    net.load_state_dict(load_file(two.folder / facts["weights"]))
    _, test_set = idx.read(digits_folder)
    with torch.inference_mode():
        guesses = net(train.normalise(test_set.pixels, **facts["normalisation"])).argmax(1)
    accuracy = (guesses == test_set.labels).double().mean().item()
    assert accuracy == facts["metrics"]["test_accuracy"] == pytest.approx(two.tests("test_accuracy")[-1])
    assert sum(p.numel() for p in net.parameters()) == 105_866
    assert facts["classes"] == list("0123456789")
    assert sorted(path.name for path in two.folder.iterdir()) == ["metrics.jsonl", "model.json", "model.safetensors"]


def test_no_epochs_only_test_a_model(alone: None, two: Training, digits_folder: Path, tmp_path: Path) -> None:
    """With --epochs 0 the model of --from-model is tested on the data, with the model's own mean and deviation."""
    others = shutil.copytree(digits_folder, tmp_path / "others")  # tested on the same, but of darker training images
    images = next(others.glob("train-images*"))
    read = gzip.decompress(images.read_bytes())
    images.write_bytes(gzip.compress(read[:16] + bytes(value // 2 for value in read[16:])))
    args = ["--data", others, "--epochs", 0, "--from-model", two.folder, "--metrics-dir", tmp_path / "tested"]
    assert here(*args) == 0
    tested = Training([], tmp_path / "tested")
    assert tested.tests("test_accuracy") == pytest.approx(two.tests("test_accuracy")[-1:])
    assert tested.tests("test_loss") == pytest.approx(two.tests("test_loss")[-1:], rel=1e-4)


def test_uneven_shares_weigh_every_image_alike(alone: None, digits_folder: Path, tmp_path: Path) -> None:
    """With equal batch size, the number of processes changes only rounding, even if a last batch of one image leaves
    the second process without an image: the losses in training and test are the same.

    The processes meet by --world-size, --rank and --dist-url alone, and divide the cores of this machine.
    """
    size = 359  # 1,437 = 4 * 359 + 1
    args = ["--data", str(digits_folder), "--epochs", "1", "--batch-size", str(size), "--log-interval", "1"]
    meet = ["--world-size", "2", "--dist-url", f"tcp://127.0.0.1:{run.free_port()}", "--dist-backend", "gloo"]
    env = run.environment()
    del env["OMP_NUM_THREADS"]
    base = ["mnist/train.py", *args, *meet, "--metrics-dir", str(tmp_path / "two")]
    results = [run.finish(p) for p in [run.start([*base, "--rank", str(rank)], env) for rank in (0, 1)]]
    assert [result.code for result in results] == [0, 0], results
    assert f"processes 2 (gloo), device cpu, threads {max(1, CORES // 2)} each" in results[0].out[0]
    assert here(*args, "--metrics-dir", tmp_path / "one") == 0
    one, two = Training([], tmp_path / "one"), Training([], tmp_path / "two")
    assert len(one.tests("train_loss")) == 5
    assert one.tests("train_loss") == pytest.approx(two.tests("train_loss"), rel=1e-3)
    assert one.tests("test_loss") == pytest.approx(two.tests("test_loss"), rel=1e-3)


def test_a_seed_fixes_the_result(alone: None, digits_folder: Path, tmp_path: Path) -> None:
    """The same seed gives the same losses and weights, also with data workers; another seed does not."""
    losses = []
    for name, seed, workers in (("a", 5, 0), ("b", 5, 1), ("c", 6, 0)):
        folder = tmp_path / name
        args = ["--data", digits_folder, "--epochs", 1, "--seed", seed, "--workers", workers, "--metrics-dir", folder]
        assert here(*args, "--model-dir", folder) == 0
        losses.append(Training([], folder).tests("train_loss"))
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]
    assert (tmp_path / "a" / "model.safetensors").read_bytes() == (tmp_path / "b" / "model.safetensors").read_bytes()


@pytest.mark.parametrize("flag", ["--lr=0.01", "--momentum=0", "--weight-decay=0.1", "--batch-size=128", "--epochs=2"])
def test_every_knob_turns_something(alone: None, digits_folder: Path, tmp_path: Path, flag: str) -> None:
    """Each optimisation setting changes the losses."""
    for folder, extra in (("plain", []), ("turned", [flag])):
        base = ["--data", digits_folder, "--epochs", 1, "--log-interval", 23, "--metrics-dir", tmp_path / folder]
        assert here(*base, *extra) == 0
    plain, turned = (Training([], tmp_path / folder).tests("test_loss") for folder in ("plain", "turned"))
    assert plain != turned


def test_how_tests_are_batched_changes_nothing(alone: None, digits_folder: Path, tmp_path: Path) -> None:
    """The test set is counted exactly with any --test-batch-size, even if the size is not a divisor."""
    accuracies = []
    for size in (7, 1000):
        base = ["--data", digits_folder, "--epochs", 1, "--metrics-dir", tmp_path / str(size)]
        assert here(*base, "--test-batch-size", size) == 0
        accuracies += Training([], tmp_path / str(size)).tests("test_accuracy")
    assert accuracies[0] == accuracies[1]
    assert accuracies[0] * 360 == pytest.approx(round(accuracies[0] * 360))


def test_stopped_and_resumed_it_ends_as_if_nothing_had_been(
    alone: None, digits_folder: Path, two: Training, tmp_path: Path
) -> None:
    """A process that is stopped two epochs in, and another that continues, give the rows of an undisturbed
    training."""
    args = ["--data", digits_folder, "--metrics-dir", tmp_path / "m", "--checkpoint-dir", tmp_path / "c"]
    evaluate, tests = train.evaluate, []

    def stop_at_the_second(t: train.Training, images: Images) -> tuple[float, float, float]:
        tests.append(t.position.step)
        if len(tests) == 2:
            signal.raise_signal(signal.SIGTERM)
        return evaluate(t, images)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "evaluate", stop_at_the_second)
        assert here(*args) == 143
    assert here(*args) == 0
    resumed = Training([], tmp_path / "m")
    saved = {"save_share", "others_wait_share"}  # the first depends on the clock, the second on other processes
    assert [(row["step"], row.keys() - saved) for row in resumed.rows] == [
        (row["step"], row.keys() - saved) for row in two.rows
    ]
    assert resumed.tests("learning_rate") == pytest.approx(two.tests("learning_rate"))
    assert resumed.tests("test_accuracy")[-1] == pytest.approx(two.tests("test_accuracy")[-1], abs=0.0112)


def test_speed_is_switched_by_flags(alone: None, digits_folder: Path, tmp_path: Path) -> None:
    """The memory order of images changes the losses only by float32 rounding, --amp only by bfloat16 rounding."""
    losses = {}
    for name, flags in (("plain", ["--no-channels-last"]), ("channels_last", []), ("amp", ["--amp"])):
        assert here("--data", digits_folder, "--epochs", 1, "--metrics-dir", tmp_path / name, *flags) == 0
        losses[name] = Training([], tmp_path / name).tests("train_loss")
    assert losses["channels_last"] == pytest.approx(losses["plain"], rel=1e-3)
    assert losses["amp"] != pytest.approx(losses["plain"], rel=1e-5)
    assert losses["amp"][0] == pytest.approx(losses["plain"][0], rel=0.05)  # rounding grows from step to step


def test_the_others_end_when_one_is_killed(digits_folder: Path, tmp_path: Path) -> None:
    """When a rank is killed, the others do not wait: they fail with exit code 1 and one last line."""
    args = ["--data", str(digits_folder), "--epochs", "1000000", "--metrics-dir", str(tmp_path)]
    processes = run.start_ranks(args, 2)
    metrics = tmp_path / "metrics.jsonl"
    try:
        wait_for(lambda: metrics.exists() and metrics.stat().st_size, run.DEADLINE_SECONDS, "the first row")
        processes[1].kill()
        survivor = run.finish(processes[0])
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert survivor.code == 1
    assert survivor.err[-1].startswith("rank 0: failed: ")
    assert any("Traceback" in line for line in survivor.err)


def test_a_loss_that_is_no_number_ends_the_training(
    alone: None, digits_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A diverged training fails at the next log line, with the traceback and then one line that names the step."""
    assert here("--data", digits_folder, "--lr", "1e30") == 1
    err = capsys.readouterr().err.splitlines()
    assert any("Traceback" in line for line in err)
    assert err[-1] == "rank 0: failed: ValueError: train_loss is nan at step 10"


def test_bad_data_is_one_line(alone: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unusable data ends the training with exit code 2 and one line, without a traceback."""
    assert here("--data", tmp_path / "nowhere") == 2
    err = capsys.readouterr().err.splitlines()
    assert err == [f"rank 0: bad data: {tmp_path / 'nowhere'}: expected a folder or an archive, found nothing"]


@pytest.mark.parametrize(
    ("args", "environ", "message"),
    [
        (["--epochs", "-1"], {}, "must be at least 0, not -1"),
        (["--world-size", "2", "--rank", "2"], {}, "--rank (RANK) must be 0 to 1 with 2 processes, not 2"),
        (["--world-size", "2"], {}, "--rank (RANK) must be 0 to 1 with 2 processes, not -1"),
        ([], {"WORLD_SIZE": "two"}, "WORLD_SIZE must be a number, not 'two'"),
        ([], {"WORLD_SIZE": "2", "RANK": "0"}, "MASTER_ADDR is not set"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    alone: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    args: list[str],
    environ: dict[str, str],
    message: str,
) -> None:
    """A wrong argument or variable is named before anything starts, with exit code 2."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match="2"):
        here("--data", "x", *args)
    assert message in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_nccl_needs_a_gpu(alone: None, capsys: pytest.CaptureFixture[str]) -> None:
    """--dist-backend nccl without a GPU is refused, and the message names the alternative."""
    with pytest.raises(SystemExit, match="2"):
        here("--data", "x", "--dist-backend", "nccl")
    assert "--dist-backend nccl needs a GPU, and there is none here; use gloo" in capsys.readouterr().err
