"""Images in memory with their classes, and each process's share of a batch."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Images:
    """Images as uint8 (N, channels, height, width), and their labels as int64 (N,)."""

    pixels: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: Tensor) -> tuple[Tensor, Tensor]:
        return self.pixels[index], self.labels[index]


@dataclass(frozen=True)
class Batch:
    """This process's share of a batch, on the device. `whole` is the size of the batch over all processes."""

    pixels: Tensor  # float32 (N, channels, height, width); N may be 0 if there are more processes than images
    labels: Tensor  # int64 (N,)
    whole: int
    waited: float  # seconds until it was ready
