"""Detection data in one of three layouts: COCO, Pascal VOC or CSV. Each may be in a sub-folder."""

from __future__ import annotations

from . import boxes_csv, coco, voc
from .boxes import Boxed, Found, Reader

LAYOUTS = "annotations/instances_train*.json (COCO), ImageSets/Main/train.txt (Pascal VOC) or train.csv (CSV)"


def read(reader: Reader) -> Found | None:
    """Return the data set, or complain and return None if the data has none of the layouts.

    Complains if there is nothing to train on or nothing to test on.
    """
    for read_layout in (coco.read, voc.read, boxes_csv.read):
        if found := read_layout(reader):
            return found
    reader.complain("layout", reader.label(""), f"expected {LAYOUTS}, found none of them")
    return None


def trained(record: Boxed) -> int:
    """Return the number of an image's objects for training: no crowds, and only boxes with an area inside the
    image."""
    width, height = record.size if min(record.size) > 0 else (float("inf"), float("inf"))
    return sum(
        not thing.crowd
        and min(thing.box[2], width) > max(thing.box[0], 0)
        and min(thing.box[3], height) > max(thing.box[1], 0)
        for thing in record.objects
    )


def check_objects(found: Found, reader: Reader) -> None:
    """Complain if the data set has no objects to train on, or if its test part has none."""
    place = reader.label("")
    if not any(map(trained, found.train)):
        reader.complain("no_objects", place, f"expected objects to train on, found none in {len(found.train)} images")
    if found.val is not None and all(thing.crowd for record in found.val for thing in record.objects):
        reader.complain("no_objects", place, f"expected objects to test on, found none in {len(found.val)} images")
