"""Converts images to the network's input: mean 0 and deviation 1, in training also randomly shifted and mirrored."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from cifar_elastic import batches
from torch import Tensor, nn

PAD = 4  # maximum shift of an image in each direction, in pixels


class Normalised(nn.Module):
    """Converts pixels, uint8 (N, 3, 32, 32), to float32 with mean 0 and deviation 1 in each color."""

    def __init__(self, mean: Tensor, std: Tensor) -> None:
        super().__init__()
        self.mean: Tensor
        self.std: Tensor
        self.register_buffer("mean", mean.view(3, 1, 1))
        self.register_buffer("std", std.view(3, 1, 1))

    @classmethod
    def like(cls, pixels: Tensor) -> Normalised:
        """Return the normalization for these images: the exact mean and deviation, without a float copy of the
        pixels.
        """
        counts = torch.stack([torch.bincount(pixels[:, c].flatten(), minlength=256) for c in range(3)]).double()
        values = torch.arange(256, dtype=torch.double)
        mean = counts @ values / counts.sum(1)
        variance = (counts * (values - mean[:, None]) ** 2).sum(1) / counts.sum(1)
        return cls(mean.float(), variance.sqrt().clamp(min=1e-3).float())  # a plain colour has no deviation

    def forward(self, pixels: Tensor) -> Tensor:
        return (pixels.float() - self.mean) / self.std


def shifted(pixels: Tensor, by: Tensor, mirrored: Tensor) -> Tensor:
    """Return images (N, 3, 32, 32), each moved by `by` (N, 2), -PAD to PAD rows and columns, and mirrored where (N,) is
    true.

    The uncovered border is black. One gather operation moves all images; the result is in memory as channels_last.
    """
    padded = F.pad(pixels, (PAD,) * 4)
    steps = torch.arange(batches.SIDE, device=pixels.device)
    rows = steps + PAD + by[:, :1]  # (N, 32)
    columns = torch.where(mirrored[:, None], steps.flip(0), steps) + PAD + by[:, 1:]
    image = torch.arange(len(pixels), device=pixels.device)
    return padded[image[:, None, None], :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
