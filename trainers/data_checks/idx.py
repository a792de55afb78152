"""MNIST's four IDX files (format: the note at the end of http://yann.lecun.com/exdb/mnist/). Pure."""

from __future__ import annotations

import math
import struct

from .findings import DataError

CLASSES = 10
SIDE = 28  # pixels
MAX_IMAGES = 1_000_000  # limits the expansion of a compressed file
HEADER = 8  # bytes, and 4 for each further size

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


def count(place: str, header: bytes, item: tuple[int, ...]) -> int:
    """Return the number of items in a file's header. `item` has the sizes of one item, () for a label.

    Raises DataError unless the header is that of unsigned bytes with these sizes.
    """
    if len(header) < HEADER + 4 * len(item):
        raise DataError(f"{place}: expected a header of {HEADER + 4 * len(item)} bytes, found {len(header)}")
    magic, items, *found = struct.unpack(f">{2 + len(item)}I", header)
    expected = 0x0801 + len(item)  # 08: unsigned bytes; then the number of dimensions
    if magic != expected:
        raise DataError(f"{place}: expected magic number 0x{expected:08x}, found 0x{magic:08x}")
    if tuple(found) != item:
        sizes, ours = (" x ".join(map(str, each)) for each in (found, item))
        raise DataError(f"{place}: expected images of {ours} pixels, found {sizes}")
    if not 0 < items <= MAX_IMAGES:
        raise DataError(f"{place}: expected 1 to {MAX_IMAGES:,} items, found {items:,}")
    return int(items)


def check_length(place: str, found: int, shape: tuple[int, ...]) -> None:
    """Raise DataError unless the number of bytes after the header matches the sizes in the header."""
    if found != math.prod(shape):
        words = f"{found:,}" if found < math.prod(shape) else "more"
        sizes = " x ".join(f"{size:,}" for size in shape)
        raise DataError(f"{place}: expected {math.prod(shape):,} bytes ({sizes}) after the header, found {words}")


def check_pair(place: str, labels: int, images: int, of_images: str) -> None:
    """Raise DataError unless there is one label per image."""
    if labels != images:
        raise DataError(f"{place}: expected {images:,} labels, one per image of {of_images}, found {labels:,}")


def check_label(place: str, highest: int, position: int) -> None:
    """Raise DataError for a label that is not a class."""
    if highest >= CLASSES:
        raise DataError(f"{place}: expected labels 0 to {CLASSES - 1}, found {highest} at {position}")
