"""The parts of the demo that need no cloud: data, progress, claims, arguments."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from local import record
from local.demo import claims, data
from local.demo.claims import Archive, check
from local.demo.phases import Seen, phases
from local.demo.progress import Log, share_done
from local.demo.run import Demo, parse

MNIST = Path(__file__).resolve().parents[3] / "shared" / "data" / "mnist"


# --- data ------------------------------------------------------------------------------------------------------------


def test_without_a_folder_the_digits_are_written(tmp_path: Path) -> None:
    """The default data needs no download: all 1,797 digits, in the same four files that --data accepts."""
    files = data.files(None, tmp_path)
    assert files == data.find(tmp_path)
    counts = [int.from_bytes(gzip.decompress(file.read_bytes())[4:8], "big") for file in files]
    assert counts[0] == counts[1]
    assert counts[2] == counts[3]
    assert counts[0] + counts[2] == 1797


def test_files_may_be_compressed(tmp_path: Path) -> None:
    """A file is found plain or as .gz, with -idx or .idx in its name."""
    (tmp_path / data.NAMES[0]).write_bytes(b"x")
    (tmp_path / data.NAMES[1].replace("-idx", ".idx")).write_bytes(b"x")
    for name in data.NAMES[2:]:
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(b"x"))
    found = [p.name.removesuffix(".gz").replace(".idx", "-idx") for p in data.find(tmp_path)]
    assert found == list(data.NAMES)


def test_missing_files_are_named(tmp_path: Path) -> None:
    """A folder without the four files is refused, with the names of the missing files."""
    (tmp_path / data.NAMES[0]).write_bytes(b"x")
    with pytest.raises(data.NoData) as refused:
        data.find(tmp_path)
    assert all(name in str(refused.value) for name in data.NAMES[1:])
    assert data.NAMES[0] not in str(refused.value)


@pytest.mark.skipif(not MNIST.is_dir(), reason="needs ../shared/data/mnist, which is no part of this repository")
def test_mnist_itself_is_found() -> None:
    """MNIST's own four files are accepted as published."""
    assert len(data.find(MNIST)) == 4


# --- what is left ---------------------------------------------------------------------------------------------------


def test_a_demo_says_what_it_left(tmp_path: Path) -> None:
    """A failed demo names its logs, and how to remove its own cloud; a successful demo removes only its own cloud."""
    made = Demo(parse(["--home", str(tmp_path / "cloud")]), Console())
    (tmp_path / "cloud").mkdir()
    made.forget()
    assert (tmp_path / "cloud").is_dir()
    assert "purge" not in made.left()
    made.home = record.beside(tmp_path / "cloud")
    made.home.mkdir()
    assert str(made.home / "logs") in made.left()
    assert "down --purge" in made.left()
    made.forget()
    assert not made.home.exists()


# --- progress --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "share"),
    [
        ("epoch 1/4 step 10/20 train_loss 0.5", 0.125),
        ("Epoch 4/4 test_accuracy 0.98", 1.0),
        ("epoch 2/4", 0.5),
        ("loading data", 0.0),
        ("epoch 1/0", 0.0),
    ],
)
def test_share_done(line: str, share: float) -> None:
    """A line's epoch, and its step within the epoch, give the share done; any other line gives none."""
    assert share_done(line) == share


def test_a_line_in_pieces_counts_once() -> None:
    """A log that arrives cut anywhere gives the same lines, and the share never decreases."""
    text = "start\nepoch 1/2 loss 1\nepoch 2/2 loss 0\nepoch 1/2 again\n"
    log = Log()
    for character in text:
        log.add(character)
    assert list(log.lines) == text.splitlines()
    assert (log.total, log.share) == (4, 1.0)


# --- claims ----------------------------------------------------------------------------------------------------------


def good() -> dict[str, Any]:
    """Everything that the demo checks, after a successful run."""
    run = {
        "run": "mnist-1",
        "state": "completed",
        "nodes": 2,
        "archived_at": "2026-01-01T00:00:00+00:00",
        "reason": "",
        "metrics": {"last": {"test_accuracy": 0.95}},
        "history": [{"state": "received"}, {"state": "completed"}],
    }
    files = {
        "models/m.pt": 9,
        "metrics/metrics.jsonl": 5,
        "logs/std_log_process_0.txt": 4,
        "logs/std_log_process_1.txt": 4,
    }
    manifest = {"files": [{"name": name, "size": size} for name, size in files.items()]}
    metrics = [{"epoch": 1, "test_accuracy": 0.95, "world_size": 2}]
    archive = Archive("mnist/mnist-1", {**files, claims.MANIFEST: 99}, manifest, metrics)
    row = {"state": "completed", "archived_at": "2026-01-01"}
    return {"run": run, "cluster": {"nodes": 0}, "archive": archive, "row": row}


def failed(there: dict[str, Any]) -> list[str]:
    seen = Seen(began=None, run=there["run"], cluster=there["cluster"])  # type: ignore[arg-type]
    return [claim.text for claim in check(seen, there["archive"], there["row"], 0.9) if not claim.holds]


def test_a_good_run_keeps_every_promise() -> None:
    """After a successful run, no claim fails."""
    assert failed(good()) == []


@pytest.mark.parametrize(
    ("spoil", "claim"),
    [
        (lambda g: g["run"].update(state="failed"), "completed"),
        (lambda g: g["run"].update(archived_at=None), "archived"),
        (lambda g: g["row"].clear(), "Table Storage"),
        (lambda g: g["archive"].blobs.pop("metrics/metrics.jsonl"), "manifest"),
        (lambda g: g["archive"].blobs.update({"models/m.pt": 8}), "manifest"),
        (lambda g: g["archive"].blobs.update({"models/other.pt": 8}), "manifest"),
        (lambda g: g["archive"].manifest.clear(), "manifest"),
        (lambda g: g["archive"].blobs.pop("models/m.pt"), "model"),
        (lambda g: g["archive"].metrics[0].update(world_size=1), "trained together"),
        (lambda g: g["archive"].blobs.update({"logs/std_log_process_1.txt": 0}), "log of every rank"),
        (lambda g: g["archive"].metrics[0].update(test_accuracy=0.5), "accuracy"),
        (lambda g: g["archive"].metrics.clear(), "accuracy"),
        (lambda g: g["run"]["metrics"]["last"].clear(), "accuracy"),
        (lambda g: g["cluster"].update(nodes=1), "zero nodes"),
    ],
)
def test_each_broken_promise_is_found(spoil: Any, claim: str) -> None:
    """Each missing or different part makes its claim fail."""
    there = good()
    spoil(there)
    assert any(claim in text for text in failed(there))


def test_a_cluster_that_others_need_may_stay_up() -> None:
    """If another person's run needs the cluster, the demo does not promise zero nodes, and does not wait for the
    cluster."""
    there = good()
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    seen = Seen(moment, run=there["run"], cluster={"nodes": 2}, kept_for="run x")
    claim = check(seen, there["archive"], there["row"], 0.9)[-1]
    assert (claim.holds, claim.found) == (True, "2 nodes, for run x")
    seen.run = {}
    assert phases(seen, moment)[-1].seconds is None


# --- arguments -------------------------------------------------------------------------------------------------------


def test_a_relative_folder_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--data is relative to the user's current folder, not to the repository."""
    monkeypatch.setenv("TRAINYARD_CWD", str(tmp_path))
    assert parse(["--data", "here"]).data == tmp_path / "here"


def test_only_the_default_must_reach_an_accuracy() -> None:
    """The minimum accuracy applies to the digits with the trainer's own number of epochs."""
    assert parse([]).least_accuracy == claims.DIGITS_ACCURACY
    assert parse(["--epochs", "1"]).least_accuracy == 0.0


def test_no_epochs_make_no_training() -> None:
    """--epochs below 1 is refused at once."""
    with pytest.raises(SystemExit):
        parse(["--epochs", "0"])
