"""What surrounds a training on one machine: the digits that go in, and the picture that comes out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from local import curves, digits


def rows(epochs: int = 4, per_epoch: int = 20) -> list[curves.Row]:
    """Metrics as a trainer writes them: a loss that falls by a half each epoch, on two processes, a row a second."""
    written: list[curves.Row] = []
    for step in range(1, epochs * per_epoch + 1):
        epoch = (step - 1) // per_epoch + 1
        row = {"time": 1000.0 + step, "step": step, "epoch": epoch, "world_size": 2}
        written.append(
            {**row, "train_loss": 2 * 0.5 ** (step / per_epoch), "train_accuracy": 1 - 0.5 ** (1 + step / 9)}
        )
        if step % per_epoch == 0:
            written.append({**row, "test_loss": 2 * 0.5**epoch, "test_accuracy": 1 - 0.5 ** (1 + epoch)})
    return written


def test_the_digits_are_always_the_same_bytes(tmp_path: Path) -> None:
    """The same four files come out of every call, so that the same digits are never trained twice."""
    one, two = digits.write(tmp_path / "one"), digits.write(tmp_path / "two")
    assert [path.name for path in one] == [path.name for path in two]
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_enlarged_digits_keep_their_shape() -> None:
    """A digit of 8 x 8 becomes 28 x 28 with an empty border of 2, its brightness in the same places."""
    small = np.zeros((1, 8, 8))
    small[0, 2, 5] = 16
    large = digits.enlarge(small)[0]
    assert large.shape == (28, 28)
    assert np.unravel_index(large.argmax(), large.shape) == (2 + 2 * 3 + 1, 2 + 5 * 3 + 1)
    assert large.max() == 255
    assert not large[:2].any()
    assert not large[:, -2:].any()


def test_the_picture_shows_both_curves(tmp_path: Path) -> None:
    """The PNG opens, and both panels hold the colours of both curves."""
    curves.draw(rows(), tmp_path / "new" / "curves.png", "mnist-1234", nodes=2, seconds=12.3)
    with Image.open(tmp_path / "new" / "curves.png") as image:
        pixels = np.asarray(image.convert("RGB"))
    assert pixels.shape == (784, 1760, 3)
    for half in (pixels[:, :880], pixels[:, 880:]):
        for colour in (curves.TRAIN, curves.TEST):
            rgb = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
            assert (half == rgb).all(axis=2).sum() > 200


@pytest.mark.parametrize(
    ("nodes", "seconds", "words"),
    [
        (None, None, "96.88% test accuracy   ·   2 processes   ·   4 epochs   ·   1 min 19 s"),
        (1, 9.26, "96.88% test accuracy   ·   1 node   ·   4 epochs   ·   9.3 s"),
    ],
)
def test_the_subtitle_gives_the_facts(nodes: int | None, seconds: float | None, words: str) -> None:
    """Accuracy, processes or nodes, epochs and duration stand under the title; the rows give what is not given."""
    assert curves.subtitle(rows(), nodes, seconds) == words


@pytest.mark.parametrize(
    "given", [[], rows()[:1], [{"epoch": 1, "test_accuracy": 0.5}], [{"step": 1, "train_loss": 0.0}]]
)
def test_what_is_not_there_is_not_drawn(tmp_path: Path, given: list[curves.Row]) -> None:
    """A run that left few rows or none still gets its picture."""
    curves.draw(given, tmp_path / "curves.png", "a run")
    with Image.open(tmp_path / "curves.png") as image:
        image.verify()


def test_a_long_curve_is_smoothed_and_keeps_its_level() -> None:
    """The running mean lies between the extremes and starts and ends with the curve; a short curve stays as it is."""
    noisy = [(float(x), 1.0 + (-1) ** x) for x in range(200)]
    smooth = curves.smooth(noisy)
    assert [x for x, _ in smooth] == [x for x, _ in noisy]
    assert all(0.5 < y < 1.5 for _, y in smooth)
    assert curves.smooth(noisy[:10]) == noisy[:10]


def test_a_row_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    """Reading the metrics of a running job takes whole lines alone."""
    whole = json.dumps({"step": 1, "train_loss": 0.5})
    (tmp_path / "metrics.jsonl").write_text(f'{whole}\n{{"step": 2, "tra')
    assert curves.read(tmp_path / "metrics.jsonl") == [{"step": 1, "train_loss": 0.5}]
