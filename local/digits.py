"""The demo's data: scikit-learn's 1,797 handwritten digits as MNIST's four files. Needs no download.

$ .trainyard/venv/bin/python local/digits.py FOLDER
"""

from __future__ import annotations

import argparse
import gzip
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TEST_IMAGES = 360  # a fifth, with each digit's share as in the whole set
SIDE, MARGIN, SCALE = 28, 2, 3  # 8 x 8 pixels become 24 x 24, with a border of 2


def write(folder: Path) -> list[Path]:
    """Write 1,437 training and 360 test images into `folder`, and return the four paths. The bytes are always the
    same."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    images, labels = enlarge(digits.images), digits.target.astype(np.uint8)
    train, test, train_labels, test_labels = train_test_split(
        images, labels, test_size=TEST_IMAGES, stratify=labels, random_state=0
    )
    arrays = {
        "train-images-idx3-ubyte.gz": train,
        "train-labels-idx1-ubyte.gz": train_labels,
        "t10k-images-idx3-ubyte.gz": test,
        "t10k-labels-idx1-ubyte.gz": test_labels,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        # without a time in the file, the bytes are always equal
        (folder / name).write_bytes(gzip.compress(idx(array), mtime=0))
    return [folder / name for name in arrays]


def enlarge(images: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Enlarge images (N, 8, 8) with values 0 to 16 to (N, 28, 28) with values 0 to 255, as in MNIST: linear, with a
    border."""
    centres = (np.arange(8 * SCALE) + 0.5) / SCALE - 0.5  # of the new pixels, in units of the old ones
    weights = np.stack([np.interp(centres, np.arange(8), one) for one in np.eye(8)], axis=1)  # (24, 8)
    large = np.round(weights @ images @ weights.T * (255 / 16)).astype(np.uint8)
    return np.pad(large, ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN)))


def idx(array: NDArray[np.uint8]) -> bytes:
    """Return an array in the IDX format: magic number (08 = unsigned bytes, then the dimensions), sizes, values."""
    return struct.pack(f">{1 + array.ndim}I", 0x0800 + array.ndim, *array.shape) + array.tobytes()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="made if it is not there")
    write(parser.parse_args().folder)
