"""CIFAR-10's pickled batches: what is read from them, and the messages that refuse others."""

from __future__ import annotations

import os
import pickle
import pickletools
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cifar_elastic import batches
from cifar_elastic.pixels import PAD, Normalised, shifted
from data_checks import cifar as cifar_checks
from files import DataError, opened

from tests.trainers import launch as run
from tests.trainers.cifar import write

REAL = run.ROOT.parent / "shared" / "data" / "cifar-10-small-python.tar.gz"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set of 5 x 4 and 6 images that a test may break."""
    return write(tmp_path / "drop", per_batch=4, test=6)


def test_the_published_archive_is_read() -> None:
    """A .tar.gz in the published layout gives images, labels and classes; the pixels equal those of numpy's reader."""
    if not REAL.is_file():
        pytest.skip(f"the small CIFAR-10 is not at {REAL}")
    with opened(REAL) as folder:
        train, test, classes = batches.read(folder)
        with (folder / "cifar-10-batches-py" / "data_batch_1").open("rb") as file:
            first = pickle.load(file, encoding="bytes")
    assert (train.pixels.shape, test.pixels.shape) == ((4000, 3, 32, 32), (1000, 3, 32, 32))
    assert (train.pixels.dtype, train.labels.dtype) == (torch.uint8, torch.int64)
    assert classes == ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    assert np.array_equal(train.pixels[:800].flatten(1).numpy(), first[b"data"])
    assert train.labels[:800].tolist() == first[b"labels"]


@pytest.mark.parametrize("protocol", [0, 1, 2, 4, 5])
def test_any_pickle_protocol_is_read(tmp_path: Path, protocol: int) -> None:
    """The images are the same for every pickle protocol. The published batches were written by Python 2 with
    protocol 2."""
    train, test, _ = batches.read(write(tmp_path / "a", per_batch=4, test=6, protocol=protocol))
    again, _, _ = batches.read(write(tmp_path / "b", per_batch=4, test=6, protocol=2))
    assert torch.equal(train.pixels, again.pixels)
    assert (len(train), len(test)) == (20, 6)


class Call:
    """An object whose pickle is a call of `function` with `args`."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.call = (function, args)

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (Call(os.system, "touch {mark}"), "a call of posix.system, which plain data does not need"),
        (Call(eval, "open('{mark}', 'w')"), "a call of __builtin__.eval, which"),
        (Call(np.load, "{mark}"), "which plain data does not need"),
        (Call(np.ndarray, (2**40,)), "TypeError"),  # a name that is only named
        (OrderedDict(), "a call of collections.OrderedDict, which"),
    ],
)
def test_a_pickle_calls_nothing(folder: Path, tmp_path: Path, call: Any, words: str) -> None:
    """A file that would run a program, open a file or exhaust the memory is refused by name, without any effect."""
    mark = tmp_path / "mark"
    if isinstance(call, Call):
        call.call = (call.call[0], tuple(a.format(mark=mark) if isinstance(a, str) else a for a in call.call[1]))
    (folder / "data_batch_3").write_bytes(pickle.dumps({b"data": call, b"labels": []}, protocol=2))
    with pytest.raises(DataError, match=r"data_batch_3: expected a pickled batch of CIFAR-10, found ") as error:
        batches.read(folder)
    assert words in str(error.value)
    assert not mark.exists()


def test_only_known_names_are_in_the_published_files(folder: Path) -> None:
    """numpy's form of an array needs only names that the reader knows."""
    content = (folder / "test_batch").read_bytes()
    names = {tuple(str(a).split()) for op, a, _ in pickletools.genops(content) if op.name == "GLOBAL"}
    assert names
    assert names <= set(cifar_checks._PlainData.KNOWN)


IMAGE = np.zeros((2, 3072), np.uint8)


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ({b"labels": [1]}, "expected data, an array of bytes (N, 3,072), found None"),
        ({b"data": IMAGE[:, :100], b"labels": [1, 1]}, "expected data, an array of bytes (N, 3,072), found an array"),
        ({b"data": IMAGE.astype(np.float32), b"labels": [1, 1]}, "found an array (2, 3072) of f4 with 24,576 bytes"),
        ({b"data": np.asfortranarray(IMAGE), b"labels": [1, 1]}, "expected data, an array of bytes"),
        ({b"data": IMAGE[:0], b"labels": []}, "expected data, an array of bytes (N, 3,072), found an array (0, 3072)"),
        ({b"data": IMAGE, b"labels": [1]}, "expected labels, a list of 2, one per image, found 1"),
        ({b"data": IMAGE}, "expected labels, a list of 2, one per image, found NoneType"),
        ({b"data": IMAGE, b"fine_labels": [1, 1]}, "expected labels, a list of 2"),
        ({b"data": IMAGE, b"labels": [1, 10]}, "expected labels 0 to 9, found 10"),
        ({b"data": IMAGE, b"labels": [1, "cat"]}, "expected labels 0 to 9, found 'cat'"),
        ([1, 2], "expected a pickled dictionary, found list"),
    ],
)
def test_a_wrong_batch_is_named(folder: Path, batch: Any, words: str) -> None:
    """The error names the file, the expected content and the found content."""
    (folder / "data_batch_2").write_bytes(pickle.dumps(batch, protocol=2))
    with pytest.raises(DataError) as error:
        batches.read(folder)
    assert str(error.value).startswith(f"{folder / 'data_batch_2'}: expected ")
    assert words in str(error.value)


@pytest.mark.parametrize("content", [b"", b"no pickle", b"\x80\x02}q\x00("])
def test_a_broken_file_is_named(folder: Path, content: bytes) -> None:
    """An empty file, an incomplete file and a file of another kind are refused by name."""
    (folder / "test_batch").write_bytes(content)
    with pytest.raises(DataError, match="test_batch: expected a pickled batch of CIFAR-10, found "):
        batches.read(folder)


def test_a_missing_batch_is_named(folder: Path) -> None:
    """The error names the missing batch."""
    (folder / "data_batch_4").unlink()
    with pytest.raises(DataError, match=r"found no data_batch_4$"):
        batches.read(folder)


def test_pixels_are_normalised_by_colour() -> None:
    """Each colour has mean 0 and deviation 1 over all images; a plain colour causes no division by zero."""
    pixels = torch.randint(0, 256, (50, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    pixels[:, 2] = 7
    normal = Normalised.like(pixels)(pixels)
    assert normal.mean((0, 2, 3)).tolist() == pytest.approx([0, 0, 0], abs=1e-4)
    assert normal.std((0, 2, 3)).tolist() == pytest.approx([1, 1, 0], abs=1e-4)


def test_each_image_is_shifted_and_mirrored_as_drawn() -> None:
    """An image moves by its own rows and columns, the uncovered border is black, and only drawn images are
    mirrored."""
    image = torch.arange(1, 1 + 3 * 32 * 32).view(3, 32, 32) % 255 + 1
    pixels = image.to(torch.uint8).expand(4, 3, 32, 32)
    by = torch.tensor([[0, 0], [PAD, 0], [0, -PAD], [0, 0]])
    moved = shifted(pixels, by, torch.tensor([False, False, False, True]))
    assert torch.equal(moved[0], pixels[0])
    assert torch.equal(moved[1][:, :-PAD], pixels[0][:, PAD:])
    assert not moved[1][:, -PAD:].any()
    assert torch.equal(moved[2][:, :, PAD:], pixels[0][:, :, :-PAD])
    assert torch.equal(moved[3], pixels[0].flip(2))
    assert moved.is_contiguous(memory_format=torch.channels_last)
