"""A strict reader of MNIST's four IDX files (format: the note at the end of http://yann.lecun.com/exdb/mnist/)."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import torch
from files import DataError, find
from labelled import Images

CLASSES = 10
SIDE = 28  # pixels
MAX_IMAGES = 1_000_000  # bounds what a compressed file can unfold to

# Mirrors write both `train-images-idx3-ubyte` and `train-images.idx3-ubyte`, compressed or not.
FILES = {
    name: name.replace("-idx", "[-.]idx") + r"(\.gz)?"
    for name in (
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    )
}


def read(folder: Path) -> tuple[Images, Images]:
    """Return the training and the test images below `folder`. Pixels are (N, 1, 28, 28); 0 is background.

    Raises DataError if a file is missing or broken.
    """
    train_images, train_labels, test_images, test_labels = find(folder, FILES).values()
    return _pair(train_images, train_labels), _pair(test_images, test_labels)


def _pair(images: Path, labels: Path) -> Images:
    pixels, values = _array(images, (SIDE, SIDE)), _array(labels, ())
    if len(values) != len(pixels):
        raise DataError(
            f"{labels}: expected {len(pixels):,} labels, one per image of {images.name}, found {len(values):,}"
        )
    if int(values.max()) >= CLASSES:
        position = int(values.argmax())
        raise DataError(f"{labels}: expected labels 0 to {CLASSES - 1}, found {int(values[position])} at {position}")
    return Images(pixels.unsqueeze(1), values.long())


def _array(path: Path, item: tuple[int, ...]) -> torch.Tensor:
    """Read one file: the magic number, big-endian sizes (the count, then the sizes of an `item`), and unsigned
    bytes. Raises DataError if anything else follows."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            shape = (_count(path, file.read(8 + 4 * len(item)), item), *item)
            content = bytearray(file.read(math.prod(shape) + 1))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: expected a complete gzip file, found a damaged one: {error}") from error
    if len(content) != math.prod(shape):
        found = f"{len(content):,}" if len(content) < math.prod(shape) else "more"
        sizes = " x ".join(f"{size:,}" for size in shape)
        raise DataError(f"{path}: expected {math.prod(shape):,} bytes ({sizes}) after the header, found {found}")
    return torch.frombuffer(content, dtype=torch.uint8).view(shape)


def _count(path: Path, header: bytes, item: tuple[int, ...]) -> int:
    """Check the header, and return the number of items in it."""
    if len(header) < 8 + 4 * len(item):
        raise DataError(f"{path}: expected a header of {8 + 4 * len(item)} bytes, found {len(header)}")
    magic, count, *found = struct.unpack(f">{2 + len(item)}I", header)
    expected = 0x0801 + len(item)  # 08: unsigned bytes; then the number of dimensions
    if magic != expected:
        raise DataError(f"{path}: expected magic number 0x{expected:08x}, found 0x{magic:08x}")
    if tuple(found) != item:
        raise DataError(f"{path}: expected images of {SIDE} x {SIDE} pixels, found {' x '.join(map(str, found))}")
    if not 0 < count <= MAX_IMAGES:
        raise DataError(f"{path}: expected 1 to {MAX_IMAGES:,} items, found {count:,}")
    return int(count)
