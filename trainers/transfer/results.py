"""The results of a training: the model in two formats, its description, and two pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import files
import torch
import weights
from matplotlib.figure import Figure
from torch import Tensor, nn
from transfer.images import Sample, View, decode

GRID = 16
NAMED_CLASSES = 40  # with more classes, the names beside the confusion matrix overlap
COUNTED_CLASSES = 15  # with more classes, the numbers within overlap


class Exported(nn.Module):
    """The network with its normalization: float32 (N, 3, size, size) with values 0 to 1 in, logits (N, classes)
    out."""

    mean: Tensor
    std: Tensor

    def __init__(self, net: nn.Module, view: View) -> None:
        super().__init__()
        self.net = net
        self.register_buffer("mean", torch.tensor(view.mean).view(3, 1, 1))
        self.register_buffer("std", torch.tensor(view.std).view(3, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        logits: Tensor = self.net((pixels - self.mean) / self.std)
        return logits


def save_weights(net: nn.Module, folder: Path, facts: dict[str, Any]) -> None:
    """Write model.safetensors, with the class names in the header, and model.json. Each file is written whole or not at
    all.
    """
    weights.write(folder, net.state_dict(), {"backbone": facts["backbone"], "classes": json.dumps(facts["classes"])})
    weights.describe(folder, facts)


def export(net: nn.Module, view: View, folder: Path) -> float:
    """Write model.pt2 (torch.export, any batch size), and return the largest difference between its logits and `net`'s.

    `net` must be on the CPU and in eval mode. Raises ValueError, and writes nothing, if the difference is not rounding.
    """
    model = Exported(net, view).eval()
    # 2 images, because 0 and 1 count as fixed sizes (https://docs.pytorch.org/docs/stable/export.html).
    example = torch.rand(2, 3, view.size, view.size, generator=torch.Generator().manual_seed(0))
    program = torch.export.export(model, (example,), dynamic_shapes={"pixels": {0: torch.export.Dim.DYNAMIC}})
    with files.replacing(folder / "model.pt2") as path:
        with path.open("wb") as file:
            torch.export.save(program, file)
        loaded = torch.export.load(path.open("rb")).module()
        with torch.inference_mode():
            batches = (example, example[:1], example.repeat(2, 1, 1, 1)[:3])
            difference = max(float((loaded(pixels) - model(pixels)).abs().max()) for pixels in batches)
        if not difference < 1e-3:
            raise ValueError(f"model.pt2 gives logits that differ by {difference} from the model it was made from")
    return difference


def confusion_picture(counts: Tensor, classes: Sequence[str], path: Path) -> None:
    """Draw the counts (true class, predicted class): the color shows the share of the true class, the number shows
    the images."""
    side = min(3.5 + 0.45 * len(classes), 20)
    figure = Figure(figsize=(side + 1, side), layout="constrained")
    axes = figure.subplots()
    shares = counts / counts.sum(1, keepdim=True).clamp(min=1)
    image = axes.imshow(shares.numpy(), cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, label="share of the true class", shrink=0.8)
    right = int(counts.diagonal().sum())
    axes.set(xlabel="predicted", ylabel="true", title=f"{right} of {int(counts.sum())} right")
    if len(classes) <= NAMED_CLASSES:
        axes.set_xticks(range(len(classes)), classes, rotation=45, ha="right", parse_math=False)
        axes.set_yticks(range(len(classes)), classes, parse_math=False)
    if len(classes) <= COUNTED_CLASSES:
        for row, column in torch.cartesian_prod(*[torch.arange(len(classes))] * 2).tolist():
            colour = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, str(int(counts[row, column])), ha="center", va="center", color=colour)
    _write(figure, path)


def predictions_picture(net: nn.Module, view: View, samples: Sequence[Sample], classes: list[str], path: Path) -> None:
    """Draw a random sample of images with the predicted class and its probability."""
    order = torch.randperm(len(samples), generator=torch.Generator().manual_seed(0))[:GRID].tolist()
    figure = Figure(figsize=(11, 11.5), layout="constrained")
    axes = list(figure.subplots(4, 4).flat)
    for one in axes:
        one.axis("off")
    for one, position in zip(axes, order, strict=False):
        sample = samples[position]
        pixels = view.crop(decode(sample.path, view.side))
        with torch.inference_mode():
            sure, guess = net(view.normalise(pixels[None])).softmax(1)[0].max(0)
        guessed, true = classes[int(guess)], classes[sample.label]
        text = guessed if guessed == true else f"{guessed}, but is {true}"
        one.imshow(pixels.permute(1, 2, 0).numpy())
        one.set_title(f"{text} ({sure:.0%})", color="black" if guessed == true else "firebrick", parse_math=False)
    _write(figure, path)


def _write(figure: Figure, path: Path) -> None:
    with files.replacing(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=100)
