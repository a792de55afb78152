"""bert/train.py as a whole: real processes that meet over gloo and learn to predict words of real text."""

from __future__ import annotations

import itertools
import json
import math
import pydoc_data.topics
import shutil
import signal
import socket
from pathlib import Path

import numpy as np
import predict
import pytest
import torch
from bert import model, order, pythondocs, text, train
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, AutoTokenizer

from emulators.process import wait_for
from tests.trainers import launch as run

QUICK = ["--length", "32", "--vocabulary", "600", "--val-share", "0.1", "--epochs", "2", "--log-interval", "1"]
SCRIPT = "bert/train.py"


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty topics of Python's own help: real text."""
    folder = tmp_path_factory.mktemp("docs")
    for name, words in sorted(pydoc_data.topics.topics.items(), key=lambda topic: len(topic[1]))[20:40]:
        (folder / f"{name}.txt").write_text(words, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def batch_size(docs: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A batch size that leaves a single row for the last batch of an epoch."""
    folder, paths, held = tmp_path_factory.mktemp("tokens"), text.text_files(docs), text.Held(10)
    tokenizer = text.train_tokenizer(paths, held, 600)
    for _ in text.tokenise(paths, held, tokenizer, folder):
        pass
    rows = len(text.Rows(folder / "train", np.uint16, 32, text.Specials.of(tokenizer)))
    return str(next(size for size in range(20, rows) if rows % size == 1))


def here(*args: object) -> int:
    """Train in this process, and return the exit code."""
    return train.main([str(arg) for arg in args])


def values(folder: Path, name: str) -> dict[int, float]:
    """Return a metric by step. No step has two rows with this metric."""
    rows = [row for row in run.metrics(folder) if name in row]
    assert len({row["step"] for row in rows}) == len(rows)
    return {row["step"]: row[name] for row in rows}


@pytest.fixture(scope="module")
def one(docs: Path, batch_size: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a training in one process."""
    folder = tmp_path_factory.mktemp("one")
    args = [
        *QUICK,
        "--data",
        docs,
        "--batch-size",
        batch_size,
        "--metrics-dir",
        folder,
        "--model-dir",
        folder / "model",
    ]
    torch.set_num_threads(1)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")  # keeps the trainer from choosing a number
        assert here(*args) == 0
    signal.signal(signal.SIGTERM, before)
    return folder


def test_one_process_trains_as_two_do(one: Path, docs: Path, batch_size: str, tmp_path: Path) -> None:
    """With equal batch size, two processes have the losses of one: the mean over all masked tokens of the whole batch.

    Each process computes its share in two parts, from a .zip that one process unpacks. The last batch has a single row,
    so the second process and the second part have none.
    """
    data = shutil.make_archive(str(tmp_path / "docs"), "zip", docs)
    args = [*QUICK, "--data", data, "--batch-size", batch_size, "--accumulate", 2, "--metrics-dir", tmp_path]
    results = [run.finish(process) for process in run.start_ranks([str(arg) for arg in args], 2, SCRIPT)]
    assert [result.code for result in results] == [0, 0], results
    for name in ("train_loss", "val_loss", "gradient_norm"):
        assert values(tmp_path, name) == pytest.approx(values(one, name), rel=2e-3)
    assert results[0].out[-1].startswith("rank 0: done: perplexity ")
    assert [line.split(",")[0].replace("1", "0", 1) for line in results[1].out] == [results[0].out[-1].split(",")[0]]


@pytest.fixture
def stopped(docs: Path, batch_size: str, tmp_path: Path) -> Path:
    """The folder of a training in two processes with FSDP2, one of which got SIGTERM in the first epoch."""
    args = [*QUICK, "--data", docs, "--batch-size", batch_size, "--parallel", "fsdp2", "--log-interval", 1]
    args += ["--metrics-dir", tmp_path, "--checkpoint-dir", tmp_path / "checkpoints"]
    processes = run.start_ranks([str(arg) for arg in args], 2, SCRIPT)
    metrics = tmp_path / "metrics.jsonl"
    try:
        wait_for(lambda: metrics.exists() and metrics.stat().st_size, run.DEADLINE_SECONDS, "the first row")
        processes[1].send_signal(signal.SIGTERM)
        results = [run.finish(process) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [result.code for result in results] == [143, 143], results
    assert results[0].err[-1].startswith("rank 0: stopped: rank 1 got SIGTERM; ")
    return tmp_path


def test_a_stopped_training_goes_on_in_another_shape(
    alone: None, stopped: Path, one: Path, docs: Path, batch_size: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two FSDP2 processes that got SIGTERM, and one DDP process that continues, have the losses of an undisturbed
    training.

    Each step occurs once: no row and no masked token was repeated or left out.
    """
    steps = len(values(stopped, "train_loss"))
    args = [*QUICK, "--data", docs, "--batch-size", batch_size, "--log-interval", 1]
    args += ["--metrics-dir", stopped, "--checkpoint-dir", stopped / "checkpoints"]
    assert here(*args) == 0
    assert f"step {steps}, " in next(line for line in capsys.readouterr().out.splitlines() if "resumed from" in line)
    losses, undisturbed = values(stopped, "train_loss"), values(one, "train_loss")
    assert list(losses) == list(undisturbed) == list(range(1, max(undisturbed) + 1))
    assert losses == pytest.approx(undisturbed, rel=2e-3)
    assert values(stopped, "val_loss") == pytest.approx(values(one, "val_loss"), rel=2e-3)


def test_fsdp2_validates_and_saves_what_ddp_does(
    alone: None, one: Path, docs: Path, batch_size: str, tmp_path: Path
) -> None:
    """With FSDP2 the losses equal DDP's, and the saved model has whole weights under the same names."""
    args = [*QUICK, "--data", docs, "--batch-size", batch_size, "--parallel", "fsdp2", "--metrics-dir", tmp_path]
    assert here(*args, "--model-dir", tmp_path) == 0
    assert values(tmp_path, "val_loss") == pytest.approx(values(one, "val_loss"), rel=2e-3)
    ours, theirs = (load_file(folder / "model.safetensors") for folder in (tmp_path, one / "model"))
    assert ours.keys() == theirs.keys()
    assert all(torch.allclose(ours[name], theirs[name], atol=0.02) for name in ours)


def test_another_training_does_not_go_on_from_a_checkpoint(
    alone: None, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A checkpoint of another text or of other relevant settings is refused with exit code 2."""
    args = [*QUICK, "--epochs", 1, "--batch-size", 512, "--checkpoint-dir", tmp_path / "checkpoints"]
    other = shutil.copytree(docs, tmp_path / "other")
    (other / "more.txt").write_text("One document more. " * 100)
    assert here(*args, "--data", docs) == 0
    assert here(*args, "--data", docs) == 0
    assert "resumed from" in capsys.readouterr().out
    assert here(*args, "--data", docs, "--lr", 1e-4) == 2
    assert here(*args, "--data", other) == 2
    errors = capsys.readouterr().err.splitlines()
    assert "expected checkpoints with lr 0.0001, found lr None" in errors[0]
    assert "expected checkpoints with text " in errors[1]


def test_every_row_says_how_it_went(one: Path) -> None:
    """A training row has loss, rate, norm, speed, waiting, memory and world size; each validation has its own row."""
    rows = run.metrics(one)
    kinds = {frozenset(row) - {"time", "step", "epoch", "save_share"} for row in rows}
    training = {"train_loss", "learning_rate", "gradient_norm", "tokens_per_second", "data_wait_share"}
    assert kinds == {frozenset(training | {"peak_memory_mib", "world_size"}), frozenset({"val_loss", "val_perplexity"})}
    for row in rows:
        assert row.get("tokens_per_second", 1) > 0
        assert 0 <= row.get("data_wait_share", 0) <= 1
        assert 0 <= row.get("save_share", 0) <= 1
        assert row.get("val_perplexity", 0) == pytest.approx(math.exp(row["val_loss"]) if "val_loss" in row else 0)


def test_transformers_reads_the_model(one: Path) -> None:
    """from_pretrained loads model and tokenizer without a network; its own loss on the masks equals the training's."""
    folder = one / "model"
    assert sorted(path.name for path in folder.iterdir()) == [
        *("config.json", "model.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    ]
    net, tokenizer = AutoModelForMaskedLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert tokenizer.mask_token == "[MASK]"
    assert tokenizer.model_max_length == 32
    encoded = tokenizer("The [MASK] statement is used", return_tensors="pt")
    assert encoded.input_ids[0, 0] == tokenizer.cls_token_id
    assert (encoded.input_ids == tokenizer.mask_token_id).sum() == 1
    with torch.no_grad():
        assert net(**encoded).logits.shape == (*encoded.input_ids.shape, len(tokenizer))


def test_predict_fills_each_gap(alone: None, one: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """predict.py guesses each [MASK] of each line, and names a line without one; a picture is refused."""
    sentences = tmp_path / "sentences.txt"
    sentences.write_text("The [MASK] statement is [MASK]\n\nAn [MASK] is\n", "utf-8")
    assert predict.main([str(one / "model"), str(sentences)]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["file"][:3] for row in told] == ["The", "The", "An "]
    assert all(len(row["guesses"]) == 3 and row["guesses"][0]["score"] > 0 for row in told)
    assert predict.main([str(one / "model"), str(sentences), f"--picture={tmp_path / 'seen.png'}"]) == 2
    assert "so there is no picture to draw" in capsys.readouterr().err
    sentences.write_text("No gap\n", "utf-8")
    assert predict.main([str(one / "model"), str(sentences)]) == 2
    assert "expected [MASK] in the first 32 tokens of 'No gap'" in capsys.readouterr().err


def test_the_loss_is_that_of_transformers(one: Path) -> None:
    """The loss at the masked positions alone equals BertForMaskedLM's with labels of -100 everywhere else."""
    config = AutoModelForMaskedLM.from_pretrained(one / "model").config
    torch.manual_seed(3)
    ours = model.MaskedLanguage(config)
    tokens = np.random.default_rng(3).integers(5, 500, (4, 32))
    m = order.mask(tokens, np.arange(4), 1, 500, 4, [])
    inputs, positions, targets = (torch.from_numpy(array) for array in (m.inputs, m.positions, m.targets))
    labels = torch.full_like(inputs, -100).scatter(1, positions, targets)
    loss = ours(inputs, positions, targets) / targets.numel()
    assert loss.item() == pytest.approx(ours.net(input_ids=inputs, labels=labels).loss.item(), rel=1e-5)


def test_tiny_learns_to_use_the_words_around(alone: None, tmp_path: Path) -> None:
    """If only the neighbours determine a word, perplexity falls from the seven words' 7 to below 1.5, offline.

    A model that knows only the frequency of the words, and not their order, stays at 7.
    """
    days = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    for number in range(40):
        (tmp_path / f"{number:02}.txt").write_text(" ".join(days[(number + i) % 7] for i in range(300)))
    args = ["--data", tmp_path, "--length", 16, "--vocabulary", 300, "--batch-size", 16, "--lr", 2e-3]
    assert here(*args, "--val-share", 0.1, "--epochs", 4, "--metrics-dir", tmp_path / "metrics") == 0
    assert min(values(tmp_path / "metrics", "val_perplexity").values()) < 1.5


def test_a_seed_fixes_the_result(alone: None, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed gives bit-identical losses, with dropout too, and no network connection is made."""
    called: list[object] = []
    monkeypatch.setattr(socket.socket, "connect", lambda _self, address: called.append(address))
    losses = []
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        args = [
            *QUICK,
            "--data",
            docs,
            "--epochs",
            1,
            "--seed",
            seed,
            "--dropout",
            0.1,
            "--metrics-dir",
            tmp_path / name,
        ]
        assert here(*args, "--model-dir", tmp_path / name) == 0
        losses.append(values(tmp_path / name, "train_loss"))
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]
    assert (tmp_path / "a" / "model.safetensors").read_bytes() == (tmp_path / "b" / "model.safetensors").read_bytes()
    assert not called


def test_validation_may_come_more_often(alone: None, docs: Path, tmp_path: Path) -> None:
    """--val-interval adds validations within an epoch, which do not change the training; bfloat16 learns alike."""
    base = [*QUICK, "--data", docs, "--epochs", 1]
    assert here(*base, "--metrics-dir", tmp_path / "plain") == 0
    assert here(*base, "--metrics-dir", tmp_path / "often", "--val-interval", 4, "--val-rows", 20) == 0
    assert here(*base, "--metrics-dir", tmp_path / "half", "--amp") == 0
    plain, often, half = (values(tmp_path / name, "train_loss") for name in ("plain", "often", "half"))
    steps = list(values(tmp_path / "often", "val_loss"))
    assert steps[:2] == [4, 8]
    assert steps[-1] == max(plain)
    assert often[max(often)] == pytest.approx(plain[max(plain)], rel=0.1)
    assert list(half.values()) == pytest.approx(list(plain.values()), rel=0.02)


def test_the_rate_rises_and_falls() -> None:
    """The rate rises linearly over the warm-up, then falls along half a cosine; the last step is small and none is
    0."""
    rates = [train.rate(step, 100, 0.1) for step in range(1, 101)]
    assert rates[:10] == pytest.approx([0.1 * step for step in range(1, 11)])
    assert rates[54] == pytest.approx(0.5, abs=0.02)
    assert all(a > b for a, b in itertools.pairwise(rates[9:]))
    assert 0 < rates[-1] < 0.001
    assert [train.rate(1, 1, share) for share in (0.0, 0.9)] == [1, 1]


def test_sizes_are_the_published_ones() -> None:
    """With BERT's 30,522 tokens and 512 positions, base has the published 110 million weights, tiny 4.4 million;
    heads are 64 wide."""
    with torch.device("meta"):
        counts = {
            name: sum(p.numel() for p in model.MaskedLanguage(model.config(size, 30_522, 512, 0, 0.1)).parameters())
            for name, size in model.SIZES.items()
        }
    # Turc et al. 2019, table 1, in millions, without the head of 0.05 to 1.1 million.
    published = {"tiny": 4.4, "mini": 11.3, "small": 29.1, "medium": 41.7, "base": 110.1, "large": 335}
    assert {name: count / 1e6 for name, count in counts.items()} == pytest.approx(published, rel=0.02)


def test_bad_text_ends_both_processes_with_its_name(docs: Path, tmp_path: Path) -> None:
    """One process of a node reads the text. A problem in the text is the last line of all processes, with exit code
    2."""
    data = shutil.copytree(docs, tmp_path / "data")
    (data / "z.txt").write_bytes(b"\xff")
    script = (
        "import argparse, os, sys, pathlib, dist; from bert import corpus; "
        "p = argparse.ArgumentParser(); dist.add_arguments(p); place = dist.place(p.parse_args([]), os.environ); "
        "source = corpus.Source(pathlib.Path(sys.argv[1]), None, 600, 32, 0.1); "
        "dist.leave(dist.run(lambda _, stop: corpus.prepare(source, place, stop).fingerprint, place))"
    )
    for folder, code, words in ((data, 2, "z.txt: expected text in UTF-8, found the byte 0xff"), (docs, 0, "done: ")):
        shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(run.free_port())}
        envs = [run.environment(**shared, RANK=str(rank)) for rank in (0, 1)]
        results = [run.finish(process) for process in [run.start(["-c", script, str(folder)], env) for env in envs]]
        assert [result.code for result in results] == [code, code], results
        lines = [(result.err if code else result.out)[-1].split(": ", 1)[1] for result in results]
        assert lines[0] == lines[1]
        assert words in lines[0]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--model", "huge"], "invalid choice: 'huge'"),
        (["--length", "4"], "must be at least 8, not 4"),
        (["--warmup", "1"], "must be below 1, not 1"),
        (["--val-share", "0"], "must be above 0, not 0"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    alone: None, capsys: pytest.CaptureFixture[str], args: list[str], message: str
) -> None:
    """A wrong argument is named before anything starts, with exit code 2."""
    with pytest.raises(SystemExit, match="2"):
        here("--data", "x", *args)
    assert message in capsys.readouterr().err


def test_too_little_text_is_refused(alone: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A text with nothing left to train on after the held-out piece is refused with a message and exit code 2."""
    (tmp_path / "short.txt").write_text("A few words.\n" * 20)
    assert here("--data", tmp_path) == 2
    assert "expected at least 126 tokens to train on, found 0" in capsys.readouterr().err


def test_the_documentation_of_python_is_text_at_hand(tmp_path: Path) -> None:
    """Docstrings of modules, classes and functions are written, code is not; an unparsable module gives no text."""
    (tmp_path / "a.py").write_text(
        '"""One."""\nclass A:\n    """Two."""\n    def f(self):\n        """Three."""\nx = 4\n'
    )
    (tmp_path / "b.py").write_text("def broken(:")
    assert pythondocs.docstrings(tmp_path / "a.py") == "One.\n\nTwo.\n\nThree.\n\n"
    assert pythondocs.docstrings(tmp_path / "b.py") == ""
