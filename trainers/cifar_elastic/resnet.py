"""ResNet-18 for images of 32 x 32, with group normalisation."""

from __future__ import annotations

from torch import Tensor, nn

CHANNELS_PER_GROUP = 8


def norm(channels: int) -> nn.GroupNorm:
    """Return group normalization (Wu and He 2018, arXiv:1803.08494): over the channels of one image, never over a
    batch.

    With batch normalization, the result would depend on how a batch is divided among processes, and here the number of
    processes changes during a training. (SyncBatchNorm avoids that, but only on GPUs.)
    """
    return nn.GroupNorm(max(1, channels // CHANNELS_PER_GROUP), channels)


class Block(nn.Module):
    """Two convolutions and a skip connection: relu(x + f(x)) (He et al. 2015, arXiv:1512.03385, figure 2)."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        last_norm = norm(after)
        nn.init.zeros_(last_norm.weight)  # each block starts as the identity (Goyal et al. 2017, 5.1)
        self.way = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, padding=1, bias=False),
            norm(after),
            nn.ReLU(inplace=True),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            last_norm,
        )
        self.around: nn.Module = nn.Identity()
        if stride > 1 or before != after:
            self.around = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), norm(after))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.around(x) + self.way(x))  # type: ignore[no-any-return]


class ResNet18(nn.Sequential):
    """ResNet-18: normalized images (N, 3, 32, 32) to logits (N, classes). The first layer has `width` channels, 64 in
    the paper.

    The first convolution is 3 x 3 without stride, and no pooling follows. The original's first two layers are made for
    224 x 224, and would reduce an image to 8 x 8 here.
    """

    def __init__(self, classes: int, width: int = 64) -> None:
        widths = [width, width, width * 2, width * 4, width * 8]
        blocks = []
        for stage in range(1, 5):
            blocks.append(Block(widths[stage - 1], widths[stage], stride=1 if stage == 1 else 2))
            blocks.append(Block(widths[stage], widths[stage], stride=1))
        super().__init__(
            nn.Conv2d(3, width, 3, padding=1, bias=False),
            norm(width),
            nn.ReLU(inplace=True),
            *blocks,  # (N, 8 * width, 4, 4)
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(8 * width, classes),
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
