"""Converts image files to tensors, and crops the tensors to the network's view.

Decoded images are not cached: a photo of 384 x 256 takes 0.4 ms to decode and 0.3 ms to crop and resize, while the
forward pass of ResNet-18 alone takes 34 ms of the same core. Full-size photos from cameras take longer: 115 ms for 4000
x 3000 pixels. They are decoded at 1/2, 1/4 or 1/8 of their size, as JPEG allows, in 10 ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image, ImageOps
from torch import Tensor
from torch.utils.data import Dataset
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F


class Broken(Exception):
    """An undecodable image; the message is the reason."""


@dataclass(frozen=True)
class Sample:
    """The path of an image, and the number of the image's class."""

    path: Path
    label: int


def decode(path: Path, side: int) -> Tensor:
    """Return an image as uint8 (3, H, W) in RGB, rotated by the EXIF data. Raises Broken for an undecodable image.

    A JPEG of more than twice `side` both ways is decoded at 1/2, 1/4 or 1/8, with no side shorter than `side`.
    """
    try:
        with Image.open(path) as image:
            image.draft("RGB", (side, side))
            pixels: Tensor = F.pil_to_tensor(ImageOps.exif_transpose(image).convert("RGB"))
            return pixels
    except Image.UnidentifiedImageError:
        raise Broken("not an image of any kind that Pillow reads") from None
    # Pillow's readers raise many kinds of errors on broken files. An error with an errno comes from the system instead.
    except Exception as error:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) is not None:
            raise
        raise Broken(f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class View:
    """The preprocessing for a backbone: resize (the shorter side), crop to size x size, normalize (values 0 to 1)."""

    resize: int
    size: int
    mean: list[float]
    std: list[float]

    @classmethod
    def of(cls, facts: dict[str, Any]) -> View:
        """Return the preprocessing described by this model.json."""
        return cls(*(facts["input"][name] for name in ("resize", "size", "mean", "std")))

    @property
    def side(self) -> int:
        """Return the smallest decoded side of an image, to leave RandomResizedCrop pixels to enlarge."""
        return 2 * self.resize

    def crop(self, pixels: Tensor) -> Tensor:
        """Return the middle of the image, for testing: uint8 (3, H, W) to (3, size, size).

        The image is cropped first, then resized. The result is the same, and a thin strip never becomes a huge image in
        between.
        """
        side = max(1, round(min(pixels.shape[1:]) * self.size / self.resize))
        resized: Tensor = F.resize(F.center_crop(pixels, [side]), [self.size, self.size], antialias=True)
        return resized

    def augment(self, pixels: Tensor) -> Tensor:
        """Return a random part of the image, mirrored or not, for training: uint8 (3, H, W) to (3, size, size)."""
        parts = v2.RandomResizedCrop(self.size, antialias=True), v2.RandomHorizontalFlip()
        augmented: Tensor = v2.Compose(parts)(pixels)
        return augmented

    def normalise(self, pixels: Tensor) -> Tensor:
        """Convert uint8 (N, 3, H, W) to float32 with a mean of about 0 and a deviation of about 1."""
        mean, std = (torch.tensor(values, device=pixels.device).view(3, 1, 1) for values in (self.mean, self.std))
        return (pixels / 255 - mean) / std


class ClassImages(Dataset[tuple[Tensor, Tensor]]):
    """Batches of images: a list of positions gives uint8 (N, 3, size, size) and the labels, int64 (N,).

    With a `chance`, images are augmented. The augmentation of an image depends only on `chance` and its position, not
    on the process that loads it or the time.
    """

    def __init__(self, samples: Sequence[Sample], view: View, chance: int | None = None) -> None:
        self.samples, self.view, self.chance = samples, view, chance

    def __getitem__(self, positions: Sequence[int]) -> tuple[Tensor, Tensor]:
        pixels = torch.empty(len(positions), 3, self.view.size, self.view.size, dtype=torch.uint8)
        with torch.random.fork_rng(devices=[]):
            for row, position in enumerate(positions):
                pixels[row] = self._view_of(position)
        return pixels, torch.tensor([self.samples[position].label for position in positions], dtype=torch.int64)

    def _view_of(self, position: int) -> Tensor:
        pixels = decode(self.samples[position].path, self.view.side)
        if self.chance is None:
            return self.view.crop(pixels)
        torch.default_generator.manual_seed(self.chance + position)
        return self.view.augment(pixels)
