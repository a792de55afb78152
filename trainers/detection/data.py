"""Images with boxes in the trainer's format: stored in columns, loaded singly, grouped into batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from data_checks.boxes import Category as Category
from data_checks.boxes import Object as Object
from files import DataError
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset
from torchvision.transforms.functional import pil_to_tensor

UNREADABLE = (
    OSError,
    SyntaxError,
    ValueError,
    Image.DecompressionBombError,
)  # the errors that Pillow raises for a broken file


@dataclass(frozen=True)
class Record:
    """One image of the data set: the path, the number in the data set, width and height, and the objects."""

    path: Path
    id: int
    size: tuple[int, int]
    objects: list[Object] = field(default_factory=list)


class Pictures:
    """N images with M objects, stored in columns, because a million Python objects would need a gigabyte in every
    process.

    sizes (N, 2) are widths and heights; boxes (M, 4) x1, y1, x2, y2 in pixels; labels (M,) from 1; crowd (M,) bool;
    areas (M,); image i has the objects starts[i] to starts[i + 1]. `trained` (M,) marks the objects that are trained
    on.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        objects = [thing for record in records for thing in record.objects]
        self.paths = [str(record.path) for record in records]
        self.ids = [record.id for record in records]
        self.sizes = torch.tensor([record.size for record in records]).reshape(-1, 2)
        self.boxes = torch.tensor([thing.box for thing in objects], dtype=torch.float64).reshape(-1, 4)
        self.labels = torch.tensor([thing.label for thing in objects], dtype=torch.int64)
        self.crowd = torch.tensor([thing.crowd for thing in objects], dtype=torch.bool)
        rectangle = (self.boxes[:, 2:] - self.boxes[:, :2]).prod(1)
        given = torch.tensor([math.nan if o.area is None else o.area for o in objects], dtype=torch.float64)
        self.areas = torch.where(given.isnan(), rectangle, given)
        counts = torch.tensor([len(record.objects) for record in records], dtype=torch.int64)
        self.starts = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
        limits = self.sizes.repeat_interleave(counts, 0).repeat(1, 2)
        self.inside = torch.minimum(self.boxes.clamp(min=0), limits)
        self.empty = (self.inside[:, 2:] <= self.inside[:, :2]).any(1)
        self.trained = ~self.crowd & ~self.empty

    def __len__(self) -> int:
        return len(self.paths)

    def __str__(self) -> str:
        return f"{len(self):,} images with {len(self.boxes):,} objects"

    def objects(self, index: int) -> slice:
        """Return the slice of an image's objects in the columns."""
        return slice(int(self.starts[index]), int(self.starts[index + 1]))

    def wide(self) -> Tensor:
        """Return which images are at least as wide as they are high, (N,)."""
        return self.sizes[:, 0] >= self.sizes[:, 1]


@dataclass(frozen=True)
class DataSet:
    """The data set. Label k stands for categories[k - 1]; label 0 is the background."""

    layout: str
    categories: list[Category]
    train: Pictures
    val: Pictures | None


def size_of(path: Path) -> tuple[int, int]:
    """Return width and height, read from the first bytes of the file."""
    try:
        with Image.open(path) as image:
            return image.size
    except UNREADABLE as error:
        raise DataError(f"{path}: expected an image, found {type(error).__name__}: {error}") from error


def load(pictures: Pictures, index: int) -> Tensor:
    """Return the pixels of an image, uint8 (3, H, W), without rotation: boxes count from the corner of the stored
    image."""
    path = pictures.paths[index]
    try:
        with Image.open(path) as image:
            pixels: Tensor = pil_to_tensor(image.convert("RGB"))
    except UNREADABLE as error:
        raise DataError(f"{path}: expected an image, found {type(error).__name__}: {error}") from error
    width, height = pictures.sizes[index].tolist()
    if pixels.shape != (3, height, width):
        found = f"{pixels.shape[2]} x {pixels.shape[1]}"
        raise DataError(f"{path}: expected {width} x {height} pixels, as its annotation says, found {found}")
    return pixels


def target(pictures: Pictures, index: int) -> tuple[Tensor, Tensor]:
    """Return the training target of an image: boxes float32 (K, 4), labels int64 (K,)."""
    things = pictures.objects(index)
    kept = pictures.trained[things]
    return pictures.inside[things][kept].float(), pictures.labels[things][kept]


@dataclass(frozen=True)
class Example:
    """One image for training, on the CPU."""

    pixels: Tensor
    boxes: Tensor
    labels: Tensor


class Examples(Dataset[Any]):
    """Maps a list of (index, mirrored?) to a list of Example, or to the DataError that occurred.

    The error is returned as a value, because a DataLoader process would turn an exception into a page of traceback.
    """

    def __init__(self, pictures: Pictures) -> None:
        self._pictures = pictures

    def __getitem__(self, wanted: list[tuple[int, bool]]) -> list[Example] | DataError:
        try:
            return [self._example(*each) for each in wanted]
        except DataError as error:
            return error

    def _example(self, index: int, mirrored: bool) -> Example:
        pixels, (boxes, labels) = load(self._pictures, index), target(self._pictures, index)
        if mirrored:
            pixels = pixels.flip(2)
            boxes = (
                boxes[:, [2, 1, 0, 3]] * boxes.new_tensor([-1, 1, -1, 1])
                + boxes.new_tensor([1, 0, 1, 0]) * (pixels.shape[2])
            )
        return Example(pixels, boxes, labels)


def grouped(order: Sequence[int], wide: Tensor, size: int) -> list[list[int]]:
    """Cut an order of images into batches of `size` with only wide or only high images, to minimize padding.

    Images that fill no batch come last, wide images first. So the number of batches is the same as without grouping,
    and at most one batch is mixed. Cutting the rest of an order after any of its batches gives the same batches again.
    """
    batches: list[list[int]] = []
    waiting: dict[bool, list[int]] = {True: [], False: []}
    for index in order:
        group = waiting[bool(wide[index])]
        group.append(index)
        if len(group) == size:
            batches.append(group.copy())
            group.clear()
    rest = waiting[True] + waiting[False]
    return batches + [rest[start : start + size] for start in range(0, len(rest), size)]


def remaining(order: Sequence[int], wide: Tensor, cuts: Sequence[tuple[int, int]], size: int) -> list[list[int]]:
    """Return the batches of `size` for the rest of an epoch's order.

    `cuts` lists how many images were taken in batches of which size, because restarts may have changed the size. These
    batches are cut from the order again, and the remaining images are cut anew. So an epoch takes each image once,
    however often the number of processes changes.
    """
    for earlier, taken in cuts:
        order = [index for batch in grouped(order, wide, earlier) for index in batch][taken:]
    return grouped(order, wide, size)
