"""The peer of trainers/detection: pytorch/vision, references/detection/train.py, engine.py and coco_utils.py.

Taken from there: CocoDetection with a target made anew from the annotations of each image, images in groups of similar
aspect ratio, a loop that reads every loss by `item()` into a MetricLogger and checks that their sum is finite, an
evaluation by pycocotools one image at a time. Taken from our trainer: the network, AdamW and its rates by step.
"""

from __future__ import annotations

import contextlib
import io
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from detection.model import Plan, build
from pycocotools.cocoeval import COCOeval
from torch import Tensor, nn
from torch.utils.data import DataLoader, Sampler
from torchvision.datasets import CocoDetection
from torchvision.transforms.v2 import functional as F

from benchmarks.peers.common import Journal, Meter, arguments


class Coco(CocoDetection):  # type: ignore[misc]  # torchvision has no types
    """The data set of coco_utils.py: crowds and boxes without area are left out; labels count from 1."""

    def __init__(self, data: Any, part: str, mirror: bool) -> None:
        super().__init__(str(data / f"{part}2017"), str(data / "annotations" / f"instances_{part}2017.json"))
        self.mirror, self.numbers = mirror, {c: n for n, c in enumerate(sorted(self.coco.getCatIds()), start=1)}

    def __getitem__(self, index: int) -> tuple[Tensor, dict[str, Any]]:
        image, things = super().__getitem__(index)
        width, height = image.size
        things = [thing for thing in things if not thing["iscrowd"]]
        boxes = torch.as_tensor([thing["bbox"] for thing in things], dtype=torch.float32).reshape(-1, 4)
        boxes[:, 2:] += boxes[:, :2]
        boxes[:, 0::2].clamp_(min=0, max=width)
        boxes[:, 1::2].clamp_(min=0, max=height)
        labels = torch.tensor([self.numbers[thing["category_id"]] for thing in things], dtype=torch.int64)
        keep = (boxes[:, 3] > boxes[:, 1]) & (boxes[:, 2] > boxes[:, 0])
        boxes, labels = boxes[keep], labels[keep]
        pixels = F.to_dtype(F.pil_to_tensor(image), torch.float, scale=True)
        if self.mirror and torch.rand(1) < 0.5:
            pixels, boxes[:, [0, 2]] = F.horizontal_flip(pixels), width - boxes[:, [2, 0]]
        return pixels, {"boxes": boxes, "labels": labels, "image_id": self.ids[index]}


class Grouped(Sampler[list[int]]):
    """The sampler of group_by_aspect_ratio.py: a batch has only wide or only high images. The remaining images come
    last, mixed."""

    def __init__(self, data: Coco, size: int) -> None:
        images = data.coco.loadImgs(data.ids)
        self.wide, self.size = [image["width"] >= image["height"] for image in images], size

    def __len__(self) -> int:
        return math.ceil(len(self.wide) / self.size)

    def __iter__(self) -> Iterator[list[int]]:
        groups: dict[bool, list[int]] = {True: [], False: []}
        for index in torch.randperm(len(self.wide)).tolist():
            group = groups[self.wide[index]]
            group.append(index)
            if len(group) == self.size:
                yield group.copy()
                group.clear()
        rest = groups[True] + groups[False]
        yield from (rest[start : start + self.size] for start in range(0, len(rest), self.size))


def collate(batch: list[Any]) -> tuple[Any, ...]:
    return tuple(zip(*batch, strict=True))


def main(argv: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--backbone", required=True)
    parser.add_argument("--min-size", type=int, required=True)
    parser.add_argument("--max-size", type=int, required=True)
    args = parser.parse_args(argv)
    train_set, val_set = Coco(args.data, "train", True), Coco(args.data, "val", False)
    loader: DataLoader[Any] = DataLoader(
        train_set, batch_sampler=Grouped(train_set, args.batch_size), collate_fn=collate
    )
    torch.manual_seed(args.seed)
    classes = len(train_set.numbers)
    model = build(Plan(backbone=args.backbone, classes=classes, min_size=args.min_size, max_size=args.max_size))
    optimizer = torch.optim.AdamW(model.parameters(), args.lr, weight_decay=1e-4)
    total = args.epochs * len(loader)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, total))
    journal, step = Journal(args.metrics_dir), 0
    for epoch in range(1, args.epochs + 1):
        model.train()
        meters: dict[str, Meter] = {}
        since = Meter()
        for images, targets in journal.watched(loader):
            losses = model(list(images), [{key: target[key] for key in ("boxes", "labels")} for target in targets])
            loss = sum(losses.values())
            if not math.isfinite(loss.item()):
                sys.exit(f"Loss is {loss.item()}, stopping training")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            for name, value in {"loss": loss, **losses}.items():
                meters.setdefault(name, Meter()).update(value.item())
            since.update(loss.item(), len(images))
            step += 1
            if step % args.log_interval == 0:
                print(f"Epoch: [{epoch}]", "  ".join(f"{name}: {meter}" for name, meter in meters.items()))
                journal.trained(step, epoch, since.mean)
                since = Meter()
    numbers = evaluate(model, val_set)
    journal.write(step, args.epochs, val_map=numbers[0], val_map50=numbers[1])
    return 0


def rate(step: int, steps: int) -> float:
    """Return the share of the learning rate: a rise in a tenth of the steps, then falls to a tenth after 2/3 and
    after 8/9 of them."""
    return min(1.0, (step + 1) / (steps / 10)) * 0.1 ** (sum(step >= steps * part for part in (2 / 3, 8 / 9)))


@torch.inference_mode()
def evaluate(model: nn.Module, data: Coco) -> list[float]:
    """Return COCO's twelve numbers."""
    model.eval()
    ids = {number: category for category, number in data.numbers.items()}
    rows = []
    for images, targets in DataLoader(data, 1, collate_fn=collate):
        for target, answer in zip(targets, model(list(images)), strict=True):
            boxes = answer["boxes"].clone()
            boxes[:, 2:] -= boxes[:, :2]
            found = zip(boxes.tolist(), answer["scores"].tolist(), answer["labels"].tolist(), strict=True)
            rows += [(target["image_id"], ids[label], box, score) for box, score, label in found]
    if not rows:
        return [0.0] * 12
    with contextlib.redirect_stdout(io.StringIO()):
        names = "image_id", "category_id", "bbox", "score"
        results = data.coco.loadRes([dict(zip(names, row, strict=True)) for row in rows])
        evaluation = COCOeval(data.coco, results, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return [float(number) for number in evaluation.stats]


if __name__ == "__main__":
    main()
