"""The metrics of COCO, computed by pycocotools, whatever the layout of the data set.

faster-coco-eval computes the same numbers faster. Published results come from pycocotools, so this module uses
pycocotools.
"""

from __future__ import annotations

import contextlib
import io

import torch
import torch.distributed as c10d
from detection.data import Category, Pictures
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from torch import Tensor

# COCOeval.stats in its order, https://cocodataset.org/#detection-eval. map: mean over classes and over IoU 0.50, 0.55
# to 0.95; map50: at IoU 0.5; small: under 32 x 32 pixels, large: over 96 x 96; recall_10: with 10 boxes an image.
NAMES = ["map", "map50", "map75", "map_small", "map_medium", "map_large"]
NAMES += ["recall_1", "recall_10", "recall_100", "recall_small", "recall_medium", "recall_large"]


def gathered(found: Tensor, seen: list[int], pictures: Pictures) -> Tensor | None:
    """Send every process's boxes to rank 0, in the order of the images. Returns None in the other processes.

    `found` (K, 7) float64: index of the image, x1, y1, x2, y2, score, label. Each image must have been `seen` once.
    """
    parts: list[tuple[Tensor, list[int]]] | None = [(found, seen)] * c10d.get_world_size()
    c10d.gather_object((found, seen), parts if c10d.get_rank() == 0 else None)
    if c10d.get_rank():
        return None
    assert parts is not None
    counted = sorted(index for _, part in parts for index in part)
    assert counted == list(range(len(pictures))), f"{len(counted)} of {len(pictures)} images were tested"
    rows = torch.cat([part for part, _ in parts])
    return rows[rows[:, 0].argsort(stable=True)]


def measure(pictures: Pictures, categories: list[Category], found: Tensor) -> dict[str, float]:
    """Return COCO's twelve numbers, from 0 to 1, for boxes in the format of `gathered`.

    Numbers without anything to find are left out, for example map_large without large objects (COCO's -1).
    """
    with contextlib.redirect_stdout(io.StringIO()):  # it prints a table
        evaluation = COCOeval(_truth(pictures, categories), _results(pictures, categories, found), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return {name: float(value) for name, value in zip(NAMES, evaluation.stats, strict=True) if value >= 0}


def everywhere(numbers: dict[str, float] | None) -> dict[str, float]:
    """Return rank 0's numbers in every process."""
    box = [numbers]
    c10d.broadcast_object_list(box)
    assert box[0] is not None
    return box[0]


def _truth(pictures: Pictures, categories: list[Category]) -> COCO:
    images = torch.arange(len(pictures)).repeat_interleave(pictures.starts.diff())
    columns = zip(
        images.tolist(),
        pictures.boxes.tolist(),
        pictures.labels.tolist(),
        pictures.areas.tolist(),
        pictures.crowd.tolist(),
        strict=True,
    )
    return _index(
        pictures,
        categories,
        [_annotation(pictures, categories, *row[:3], area=row[3], iscrowd=int(row[4])) for row in columns],
    )


def _results(pictures: Pictures, categories: list[Category], found: Tensor) -> COCO:
    rows = found.tolist()
    areas = ((found[:, 3] - found[:, 1]) * (found[:, 4] - found[:, 2])).tolist()
    return _index(
        pictures,
        categories,
        [
            _annotation(pictures, categories, int(row[0]), row[1:5], int(row[6]), area=area, score=row[5], iscrowd=0)
            for row, area in zip(rows, areas, strict=True)
        ],
    )


def _annotation(
    pictures: Pictures, categories: list[Category], index: int, box: list[float], label: int, **more: float
) -> dict[str, object]:
    x1, y1, x2, y2 = box
    return {
        "image_id": pictures.ids[index],
        "category_id": categories[label - 1].id,
        "bbox": [x1, y1, x2 - x1, y2 - y1],
        **more,
    }


def _index(pictures: Pictures, categories: list[Category], annotations: list[dict[str, object]]) -> COCO:
    index = COCO()
    index.dataset = {
        "images": [{"id": number} for number in pictures.ids],
        "categories": [{"id": category.id, "name": category.name} for category in categories],
        # pycocotools takes 0 for "no match", so the numbers start at 1
        "annotations": [{**annotation, "id": number} for number, annotation in enumerate(annotations, start=1)],
    }
    index.createIndex()
    return index
