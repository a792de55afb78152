"""Images with boxes in one of three layouts, read into one form by data_checks.detection.

COCO, as published:
    annotations/instances_train2017.json, annotations/instances_val2017.json, and the images in images/train2017/ and
    images/val2017/, in train2017/ and val2017/, or all in images/
Pascal VOC, as published:
    Annotations/*.xml, ImageSets/Main/train.txt and val.txt (or trainval.txt and test.txt), JPEGImages/
CSV, as keras-retinanet reads it:
    train.csv or annotations.csv, and val.csv, with rows `image,xmin,ymin,xmax,ymax,class`, or `image,,,,,` for an
    image without objects; classes.csv with rows `class,id`; images by their path from the folder of the .csv

The data set may be in a sub-folder. Without a part for validation, `val` is None.

How special cases are treated:
    An image without objects is background, and is used in training and tests like any other image.
    A crowd (COCO's iscrowd, VOC's difficult) is not trained on; in a test it counts neither for nor against.
    A box is cut at the image's border for training, and left out if no area remains. Tests use the unchanged boxes of
    COCO and VOC.
    A missing image, a box whose end is not after its start, and an unknown id raise DataError, with file and place.
"""

from __future__ import annotations

from pathlib import Path

from data_checks import detection
from data_checks.boxes import Boxed, Reader
from data_checks.findings import fail
from detection.data import DataSet, Pictures, Record, size_of
from files import DataError, below


def read(folder: Path) -> DataSet:
    """Read the data set in `folder`. Raises DataError for a file that is missing, broken or contradicts another."""
    paths = frozenset(path.relative_to(folder).as_posix() for path in below(folder))
    reader = Reader(paths, lambda path: (folder / path).read_bytes(), fail, lambda path: str(folder / path))
    found = detection.read(reader)
    assert found  # otherwise `fail` has raised an error
    train = Pictures(_records(folder, found.train))
    val = Pictures(_records(folder, found.val)) if found.val is not None else None
    data = DataSet(found.layout, found.categories, train, val)
    if not data.train.trained.any():
        raise DataError(f"{folder}: expected objects to train on, found none in {len(train)} images")
    if data.val and data.val.crowd.all():
        raise DataError(f"{folder}: expected objects to test on, found none in {len(data.val)} images")
    return data


def _records(folder: Path, images: list[Boxed]) -> list[Record]:
    """Return the images with absolute paths. If the annotations lack an image's size, the file gives it."""
    paths = [folder / image.path for image in images]
    return [
        Record(path, image.id, image.size if min(image.size) > 0 else size_of(path), image.objects)
        for path, image in zip(paths, images, strict=True)
    ]
