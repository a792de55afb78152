"""A strict reader of MNIST's four IDX files (format: the note at the end of http://yann.lecun.com/exdb/mnist/)."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import torch
from data_checks import idx as checks
from data_checks.idx import CLASSES as CLASSES
from data_checks.idx import FILES
from data_checks.idx import SIDE as SIDE
from files import DataError, find
from labelled import Images


def read(folder: Path) -> tuple[Images, Images]:
    """Return the training and the test images below `folder`. Pixels are (N, 1, 28, 28); 0 is background.

    Raises DataError if a file is missing or broken.
    """
    train_images, train_labels, test_images, test_labels = find(folder, FILES).values()
    return _pair(train_images, train_labels), _pair(test_images, test_labels)


def _pair(images: Path, labels: Path) -> Images:
    pixels, values = _array(images, (SIDE, SIDE)), _array(labels, ())
    checks.check_pair(str(labels), len(values), len(pixels), images.name)
    checks.check_label(str(labels), int(values.max()), int(values.argmax()))
    return Images(pixels.unsqueeze(1), values.long())


def _array(path: Path, item: tuple[int, ...]) -> torch.Tensor:
    """Read one file: the magic number, big-endian sizes (the count, then the sizes of an `item`), and unsigned
    bytes. Raises DataError if anything else follows."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            shape = (checks.count(str(path), file.read(checks.HEADER + 4 * len(item)), item), *item)
            content = bytearray(file.read(math.prod(shape) + 1))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: expected a complete gzip file, found a damaged one: {error}") from error
    checks.check_length(str(path), len(content), shape)
    return torch.frombuffer(content, dtype=torch.uint8).view(shape)
