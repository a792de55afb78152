"""How an image file becomes a tensor, and what of it a network sees.

Decoded images are not kept: a photo of 384 x 256 takes 0.4 ms to decode and 0.3 ms to crop and resize, where the
forward pass of ResNet-18 alone takes 34 ms of the same core. Photos as cameras make them are another matter: 115 ms for
one of 4000 x 3000. Those are decoded at 1/2, 1/4 or 1/8, as JPEG allows: 10 ms.
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
    """An image that cannot be decoded; the message is the reason."""


@dataclass(frozen=True)
class Sample:
    """One image: where it lies, and the number of its class."""

    path: Path
    label: int


def decode(path: Path, side: int) -> Tensor:
    """An image as uint8 (3, H, W) in RGB, turned as its camera was held. Raises Broken if that cannot be.

    A JPEG of more than twice `side` both ways is decoded at 1/2, 1/4 or 1/8, with no side shorter than `side`.
    """
    try:
        with Image.open(path) as image:
            image.draft("RGB", (side, side))
            pixels: Tensor = F.pil_to_tensor(ImageOps.exif_transpose(image).convert("RGB"))
            return pixels
    except Image.UnidentifiedImageError:
        raise Broken("not an image of any kind that Pillow reads") from None
    # Pillow's readers raise many kinds of errors on broken files. One with a number is of the system, not of the image.
    except Exception as error:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) is not None:
            raise
        raise Broken(f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class View:
    """How a backbone sees an image: resized (the shorter side), cropped to size x size, normalised (values 0 to 1)."""

    resize: int
    size: int
    mean: list[float]
    std: list[float]

    @classmethod
    def of(cls, facts: dict[str, Any]) -> View:
        """As the model saw them whose model.json says this."""
        return cls(*(facts["input"][name] for name in ("resize", "size", "mean", "std")))

    @property
    def side(self) -> int:
        """The shortest side that an image may be decoded with: leaves RandomResizedCrop something to enlarge."""
        return 2 * self.resize

    def crop(self, pixels: Tensor) -> Tensor:
        """What is tested: the middle of the image. uint8 (3, H, W) to (3, size, size).

        Cropped, then resized: the same picture, and no huge one in between where an image is a thin strip.
        """
        side = max(1, round(min(pixels.shape[1:]) * self.size / self.resize))
        resized: Tensor = F.resize(F.center_crop(pixels, [side]), [self.size, self.size], antialias=True)
        return resized

    def augment(self, pixels: Tensor) -> Tensor:
        """What is trained on: some part of the image, as it is or mirrored. uint8 (3, H, W) to (3, size, size)."""
        parts = v2.RandomResizedCrop(self.size, antialias=True), v2.RandomHorizontalFlip()
        augmented: Tensor = v2.Compose(parts)(pixels)
        return augmented

    def normalise(self, pixels: Tensor) -> Tensor:
        """uint8 (N, 3, H, W) to float32 of about mean 0 and deviation 1."""
        mean, std = (torch.tensor(values, device=pixels.device).view(3, 1, 1) for values in (self.mean, self.std))
        return (pixels / 255 - mean) / std


class Images(Dataset[tuple[Tensor, Tensor]]):
    """Batches of images: a list of positions gives uint8 (N, 3, size, size) and the labels, int64 (N,).

    With a `chance` images are augmented. What one becomes depends on `chance` and its position alone, not on which
    process loads it, or when.
    """

    def __init__(self, samples: Sequence[Sample], view: View, chance: int | None = None) -> None:
        self.samples, self.view, self.chance = samples, view, chance

    def __getitem__(self, positions: Sequence[int]) -> tuple[Tensor, Tensor]:
        pixels = torch.empty(len(positions), 3, self.view.size, self.view.size, dtype=torch.uint8)
        with torch.random.fork_rng(devices=[]):
            for row, position in enumerate(positions):
                pixels[row] = self._look(position)
        return pixels, torch.tensor([self.samples[position].label for position in positions], dtype=torch.int64)

    def _look(self, position: int) -> Tensor:
        pixels = decode(self.samples[position].path, self.view.side)
        if self.chance is None:
            return self.view.crop(pixels)
        torch.default_generator.manual_seed(self.chance + position)
        return self.view.augment(pixels)
