"""The small shared parts of the trainers: metrics rows, means, files that are complete or absent."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from files import replacing
from metrics import Mean, Metrics


def test_a_row_is_in_the_file_at_once(tmp_path: Path) -> None:
    """Each row can be read as soon as it is written, while the trainer still runs."""
    with Metrics(tmp_path / "new", rank=0) as metrics:
        metrics.write(10, 1, train_loss=0.5)
        row = json.loads((tmp_path / "new" / "metrics.jsonl").read_text())
        assert {**row, "time": 0} == {"time": 0, "step": 10, "epoch": 1, "train_loss": 0.5}
        assert row["time"] > 1.7e9


def test_only_rank_0_writes(tmp_path: Path) -> None:
    """Other ranks, and a run without a folder, may call the same method; no row is written."""
    for folder, rank in ((tmp_path / "other", 1), (None, 0)):
        with Metrics(folder, rank) as metrics:
            metrics.write(10, 1, train_loss=0.5)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_no_number_is_no_metric(tmp_path: Path, value: float) -> None:
    """nan and inf raise an error that names metric and step, and leave no row that JSON cannot hold."""
    with Metrics(tmp_path, rank=0) as metrics, pytest.raises(ValueError, match=f"train_loss is {value} at step 7"):
        metrics.write(7, 1, train_loss=value)
    assert not list(tmp_path.iterdir())


def test_a_mean_weighs_its_values() -> None:
    """The running mean counts each value by its weight, and is printed after the last value."""
    mean = Mean()
    mean.add(1.0, 3)
    mean.add(5.0, 1)
    assert f"{mean:.1f}" == "5.0 (2.0)"


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    """An error while writing leaves the old file unchanged, and no temporary file."""
    path = tmp_path / "model.pt"
    with replacing(path) as unfinished:
        unfinished.write_text("old")

    def fail_halfway() -> None:
        with replacing(path) as unfinished:
            unfinished.write_text("ne")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail_halfway()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
