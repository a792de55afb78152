"""The results of a training: the model in two formats, and pictures of its detections."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch
import weights
from detection import model as models
from detection.data import Category, Pictures, load
from files import replacing
from torch import Tensor, nn
from torchvision.transforms.functional import to_pil_image
from torchvision.utils import draw_bounding_boxes

SHOWN = 0.3  # boxes with a lower score are not drawn


def save(net: nn.Module, plan: models.Plan, categories: list[Category], folder: Path, **facts: object) -> None:
    """Write model.safetensors and model.json (how to build and feed the model). Each file is written whole or not
    at all."""
    weights.write(folder, net.state_dict())
    content = {
        "plan": asdict(plan),
        "classes": [{"label": label, **asdict(category)} for label, category in enumerate(categories, start=1)],
        "input": "a list of images (3, height, width), float, 0 to 1; the model scales and normalises them itself",
        "output": "for each image boxes (K, 4): x1, y1, x2, y2 in its pixels; labels (K,); scores (K,)",
        **facts,
    }
    weights.describe(folder, content)


def save_script(folder: Path) -> None:
    """Write model.ts (TorchScript) of the model saved in `folder`."""
    with replacing(folder / "model.ts") as path:
        models.script(models.load(folder)[0]).save(str(path))


def draw(pictures: Pictures, categories: list[Category], found: Tensor, count: int, folder: Path) -> None:
    """Write the first `count` images as .jpg: on the left with their true boxes, on the right with the boxes in
    `found`.

    `found` (K, 7) is a table in the format of coco.gathered.
    """
    names = ["background", *(category.name for category in categories)]
    for index in range(min(count, len(pictures))):
        things = pictures.objects(index)
        rows = found[(found[:, 0] == index) & (found[:, 5] >= SHOWN)]
        true = [names[label] for label in pictures.labels[things].tolist()]
        scored = [f"{names[int(label)]} {score:.2f}" for score, label in rows[:, 5:].tolist()]
        pixels = load(pictures, index)
        halves = [_boxed(pixels, pictures.inside[things], true, "lime"), _boxed(pixels, rows[:, 1:5], scored, "red")]
        with replacing(folder / f"{index + 1}-{Path(pictures.paths[index]).stem}.jpg") as path:
            to_pil_image(torch.cat(halves, 2)).save(path, format="jpeg", quality=90)


def _boxed(pixels: Tensor, boxes: Tensor, texts: list[str], colour: str) -> Tensor:
    drawable = (boxes[:, 2:] > boxes[:, :2]).all(1)  # Pillow refuses others
    texts = [text for text, kept in zip(texts, drawable.tolist(), strict=True) if kept]
    return draw_bounding_boxes(pixels, boxes[drawable], texts, colors=colour, width=2) if texts else pixels
