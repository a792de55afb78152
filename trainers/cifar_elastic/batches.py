"""Reads CIFAR-10 as published for Python into memory; data_checks.cifar reads each file without trusting its pickle."""

from __future__ import annotations

from pathlib import Path

import torch
from data_checks import cifar
from data_checks.cifar import FILES, META, TEST, TRAIN
from data_checks.cifar import SIDE as SIDE
from files import find
from labelled import Images


def read(folder: Path) -> tuple[Images, Images, list[str]]:
    """Return the training images and the test images below `folder`, RGB (N, 3, 32, 32), and the names of the ten
    classes.

    The batches may hold any number of images. Raises DataError if a file is missing, is broken, or contains more than
    plain data.
    """
    paths = find(folder, FILES)
    classes = cifar.class_names(str(paths[META]), _content(paths[META]))
    parts = [_images(paths[name], len(classes)) for name in TRAIN]
    train = Images(torch.cat([part.pixels for part in parts]), torch.cat([part.labels for part in parts]))
    return train, _images(paths[TEST], len(classes)), classes


def _images(path: Path, classes: int) -> Images:
    batch = cifar.batch(str(path), _content(path), classes)
    pixels = torch.frombuffer(bytearray(batch.content), dtype=torch.uint8).view(-1, 3, SIDE, SIDE)
    return Images(pixels, torch.tensor(batch.labels))


def _content(path: Path) -> bytes:
    cifar.check_size(str(path), path.stat().st_size)
    return path.read_bytes()
