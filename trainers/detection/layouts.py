"""Images with boxes in one of three layouts, read into one.

COCO, as published:
    annotations/instances_train2017.json, annotations/instances_val2017.json, and the images in images/train2017/ and
    images/val2017/, in train2017/ and val2017/, or all in images/
Pascal VOC, as published:
    Annotations/*.xml, ImageSets/Main/train.txt and val.txt (or trainval.txt and test.txt), JPEGImages/
CSV, as keras-retinanet reads it:
    train.csv or annotations.csv, and val.csv, with rows `image,xmin,ymin,xmax,ymax,class`, or `image,,,,,` for an
    image without objects; classes.csv with rows `class,id`; images by their path from the folder of the .csv

Each may be in a sub-folder. Without a part for validation, `val` is None.

What counts as what:
    An image without objects is background, and is trained on and tested like any other.
    A crowd (COCO's iscrowd, VOC's difficult) is not trained on; in a test it counts neither for nor against.
    A box is cut at the image's border for training, and left out if no area remains. COCO's and VOC's own numbers
    are tested against as they are.
    An image that is not there, a box without end after its start, an unknown id: DataError, with file and place.
"""

from __future__ import annotations

import csv
import json
import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from detection.data import Category, DataSet, Object, Pictures, Record, size_of
from files import DataError

LAYOUTS = "annotations/instances_train*.json (COCO), ImageSets/Main/train.txt (Pascal VOC) or train.csv (CSV)"


def read(folder: Path) -> DataSet:
    """Read the data set in `folder`. Raises DataError for a file that is missing, broken or contradicts another."""
    for layout, reader in (("COCO", _read_coco), ("Pascal VOC", _read_voc), ("CSV", _read_csv)):
        if found := reader(folder):
            categories, train, val = found
            data = DataSet(layout, categories, Pictures(train), Pictures(val) if val is not None else None)
            if not data.train.trained.any():
                raise DataError(f"{folder}: expected objects to train on, found none in {len(train)} images")
            if data.val and data.val.crowd.all():
                raise DataError(f"{folder}: expected objects to test on, found none in {len(data.val)} images")
            return data
    raise DataError(f"{folder}: expected {LAYOUTS}, found none of them")


Found = tuple[list[Category], list[Record], list[Record] | None]


def _one(folder: Path, *patterns: str) -> Path | None:
    """Return the first file that matches a pattern, in `folder` or up to two folders below it."""
    for pattern in patterns:
        found = sorted({path for above in ("", "*/", "*/*/") for path in folder.glob(above + pattern)})
        if len(found) > 1:
            raise DataError(f"{folder}: expected one {pattern}, found {', '.join(map(str, found))}")
        if found:
            return found[0]
    return None


def _check_there(source: Path, paths: Iterable[Path]) -> None:
    """Raise DataError for missing images. Lists each folder once, because a request per file is slow on a mount."""
    listed: dict[Path, set[str]] = {}
    missing = []
    for path in paths:
        if path.parent not in listed:
            listed[path.parent] = {p.name for p in path.parent.iterdir()} if path.parent.is_dir() else set()
        if path.name not in listed[path.parent]:
            missing.append(str(path))
    if missing:
        more = f" and {len(missing) - 3:,} more" if len(missing) > 3 else ""
        raise DataError(f"{source}: expected its images beside it, found no {', '.join(missing[:3])}{more}")


def _below(folder: Path, name: str, source: str) -> Path:
    if not name or PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise DataError(f"{source}: expected the name of an image inside the data set, found {name!r}")
    return folder / name


# COCO


def _read_coco(folder: Path) -> Found | None:
    train = _one(folder, "annotations/instances_train*.json", "annotations/train*.json")
    if not train:
        return None
    val = _one(folder, "annotations/instances_val*.json", "annotations/val*.json")
    categories, records = _coco_part(train)
    if not val:
        return categories, records, None
    others, val_records = _coco_part(val)
    if {category.id: category.name for category in others} != {category.id: category.name for category in categories}:
        raise DataError(f"{val}: expected the categories of {train.name}, found others")
    return categories, records, val_records


def _coco_part(path: Path) -> tuple[list[Category], list[Record]]:
    """Read one annotation file, https://cocodataset.org/#format-data. Segmentations are ignored."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: expected JSON, found {error}") from error
    keys = ("images", "annotations", "categories")
    missing = [key for key in keys if not isinstance(content, dict) or not isinstance(content.get(key), list)]
    if missing:
        raise DataError(
            f"{path}: expected an object with the lists {', '.join(keys)}, found no {' and no '.join(missing)}"
            + (' (a category is {"id": 1, "name": "person"})' if "categories" in missing else "")
        )
    categories = [Category(*_fields(path, "categories", i, c, id=int, name=str)) for i, c in _items(content, keys[2])]
    labels = {category.id: label for label, category in enumerate(categories, start=1)}
    if not categories or len(labels) < len(categories):
        raise DataError(f"{path}: expected categories with an id of their own each, found {len(labels)} different ids")
    images = [
        (index, *_fields(path, "images", index, item, id=int, file_name=str, width=int, height=int))
        for index, item in _items(content, "images")
    ]
    root = _coco_images(path, [image[2] for image in images])
    records: dict[int, Record] = {}
    for index, number, name, width, height in images:
        place = f"{path}: images[{index}]"
        if number in records or min(width, height) < 1:
            raise DataError(f"{place}: expected an id of its own and a size, found id {number}, {width} x {height}")
        records[number] = Record(_below(root, name, place), number, (width, height))
    _check_there(path, (record.path for record in records.values()))
    for index, item in _items(content, "annotations"):
        image, thing = _coco_object(path, index, item, labels)
        if image not in records:
            raise DataError(f"{path}: annotations[{index}]: expected an image_id of images, found {image}")
        records[image].objects.append(thing)
    return categories, list(records.values())


def _items(content: dict[str, Any], key: str) -> Iterator[tuple[int, Any]]:
    return enumerate(content[key])


def _fields(path: Path, key: str, index: int, item: object, **wanted: type) -> tuple[Any, ...]:
    """Return the values of an entry. Each must have the type in `wanted`."""
    values = tuple(item.get(name) if isinstance(item, dict) else None for name in wanted)
    for (name, kind), value in zip(wanted.items(), values, strict=True):
        if not isinstance(value, kind) or isinstance(value, bool):
            raise DataError(f"{path}: {key}[{index}]: expected {name} ({kind.__name__}), found {value!r}")
    return values


def _coco_object(path: Path, index: int, item: Any, labels: dict[int, int]) -> tuple[int, Object]:
    image, category, box = _fields(path, "annotations", index, item, image_id=int, category_id=int, bbox=list)
    place = f"{path}: annotations[{index}]"
    if category not in labels:
        raise DataError(f"{place}: expected a category_id of categories, found {category}")
    if len(box) != 4 or not all(isinstance(n, int | float) and math.isfinite(n) for n in box) or min(box[2:]) < 0:
        raise DataError(f"{place}: expected bbox [x, y, width, height], found {box}")
    x, y, width, height = box
    area = item.get("area")
    return image, Object(
        (x, y, x + width, y + height),
        labels[category],
        bool(item.get("iscrowd", 0)),
        float(area) if isinstance(area, int | float) else None,
    )


def _coco_images(annotations: Path, names: list[str]) -> Path:
    """Return the folder that contains the first of the images."""
    if not names:
        raise DataError(f"{annotations}: expected images, found an empty list")
    part = annotations.stem.removeprefix("instances_")  # train2017
    above = annotations.parents[1]
    tried = [above / "images" / part, above / part, above / "images", above]
    for folder in tried:
        if (folder / names[0]).is_file():
            return folder
    raise DataError(f"{annotations}: expected {names[0]} in one of {', '.join(map(str, tried))}, found it in none")


# Pascal VOC


def _read_voc(folder: Path) -> Found | None:
    train = _one(folder, "ImageSets/Main/train.txt", "ImageSets/Main/trainval.txt")
    if not train:
        return None
    root = train.parents[2]
    val = _one(root, "ImageSets/Main/val.txt", "ImageSets/Main/test.txt")
    parts = [_voc_part(root, listed) for listed in (train, val) if listed]
    names = sorted({name for part in parts for _, _, things in part for name, *_ in things})
    labels = {name: label for label, name in enumerate(names, start=1)}
    records = [
        [
            Record(path, number, size, [Object(box, labels[name], hard) for name, box, hard in things])
            for number, (path, size, things) in enumerate(part, start=1)
        ]
        for part in parts
    ]
    return [Category(label, name) for name, label in labels.items()], records[0], records[1] if val else None


VocImage = tuple[Path, tuple[int, int], list[tuple[str, tuple[float, float, float, float], bool]]]


def _voc_part(root: Path, listed: Path) -> list[VocImage]:
    names = [line.split()[0] for line in listed.read_text(encoding="utf-8").splitlines() if line.strip()]
    images = root / "JPEGImages"
    by_stem = {path.stem: path for path in images.iterdir()} if images.is_dir() else {}
    paths = [by_stem.get(name, images / f"{name}.jpg") for name in names]
    _check_there(listed, paths)
    _check_there(listed, (root / "Annotations" / f"{name}.xml" for name in names))
    return [_voc_image(root / "Annotations" / f"{name}.xml", path) for name, path in zip(names, paths, strict=True)]


def _voc_image(source: Path, image: Path) -> VocImage:
    """Read one .xml file. VOC counts pixels from 1 and includes the last pixel; this trainer counts corners from 0."""
    try:
        # expat limits entities that grow (2.4.1 and later), and ElementTree fetches none from outside
        tree = ElementTree.parse(source).getroot()  # noqa: S314
        things = []
        for element in tree.iter("object"):
            x1, y1, x2, y2 = (float(element.findtext(f"bndbox/{n}", "")) for n in ("xmin", "ymin", "xmax", "ymax"))
            _check_box(f"{source}", (x1 - 1, y1 - 1, x2, y2))
            hard = element.findtext("difficult", "0").strip() == "1"
            things.append((element.findtext("name", "").strip(), (x1 - 1, y1 - 1, x2, y2), hard))
        size = tuple(int(tree.findtext(f"size/{name}", "0")) for name in ("width", "height"))
    except (ElementTree.ParseError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{source}: expected an annotation of Pascal VOC, found {error}") from error
    return image, (size[0], size[1]) if min(size) > 0 else size_of(image), things


def _check_box(place: str, box: tuple[float, float, float, float]) -> None:
    if not (all(map(math.isfinite, box)) and box[0] < box[2] and box[1] < box[3]):
        raise DataError(f"{place}: expected xmin < xmax and ymin < ymax, found {', '.join(f'{n:g}' for n in box)}")


# CSV


def _read_csv(folder: Path) -> Found | None:
    train = _one(folder, "train*.csv", "annotations.csv")
    if not train:
        return None
    listed = train.with_name("classes.csv")
    val = next(iter(sorted(train.parent.glob("val*.csv"))), None)
    parts = [_csv_part(path) for path in (train, val) if path]
    if listed.is_file():
        categories = _csv_classes(listed)
    else:
        names = sorted({name for part in parts for things in part.values() for _, _, name in things})
        categories = [Category(number, name) for number, name in enumerate(names)]
    labels = {category.name: label for label, category in enumerate(categories, start=1)}
    records = [_csv_records(path, part, labels) for path, part in zip((train, val), parts, strict=False) if path]
    return categories, records[0], records[1] if val else None


def _csv_rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        for number, row in enumerate(csv.reader(file), start=1):
            if row and not (number == 1 and row[0].strip().lower() in ("image", "path", "filename", "class")):
                yield f"{path}: line {number}", [cell.strip() for cell in row]


CsvThing = tuple[str, tuple[float, float, float, float], str]


def _csv_part(path: Path) -> dict[str, list[CsvThing]]:
    """Return the objects of each image, each with its row number."""
    images: dict[str, list[CsvThing]] = {}
    for place, row in _csv_rows(path):
        if len(row) != 6:
            raise DataError(f"{place}: expected image,xmin,ymin,xmax,ymax,class, found {len(row)} values")
        things = images.setdefault(row[0], [])
        if not any(row[1:]):
            continue
        try:
            x1, y1, x2, y2 = map(float, row[1:5])
        except ValueError as error:
            raise DataError(f"{place}: expected four numbers, found {','.join(row[1:5])}") from error
        _check_box(place, (x1, y1, x2, y2))
        things.append((place, (x1, y1, x2, y2), row[5]))
    return images


def _csv_classes(path: Path) -> list[Category]:
    categories = []
    for place, row in _csv_rows(path):
        if len(row) != 2 or not row[0] or not row[1].isdecimal():
            raise DataError(f"{place}: expected class,id, found {','.join(row)}")
        categories.append(Category(int(row[1]), row[0]))
    for what in ("id", "name"):
        if len({getattr(category, what) for category in categories}) < len(categories):
            raise DataError(f"{path}: expected each {what} once, found one again")
    return categories


def _csv_records(source: Path, images: dict[str, list[CsvThing]], labels: dict[str, int]) -> list[Record]:
    paths = {name: _below(source.parent, name, str(source)) for name in images}
    _check_there(source, paths.values())
    for place, _, name in (thing for things in images.values() for thing in things):
        if name not in labels:
            raise DataError(f"{place}: expected a class of classes.csv, found {name!r}")
    return [
        Record(paths[name], number, size_of(paths[name]), [Object(box, labels[kind]) for _, box, kind in things])
        for number, (name, things) in enumerate(images.items(), start=1)
    ]
