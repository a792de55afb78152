"""Detection data in COCO's layout, as published (https://cocodataset.org/#format-data). Segmentations are ignored.

annotations/instances_train2017.json, annotations/instances_val2017.json, and the images in images/train2017/ and
images/val2017/, in train2017/ and val2017/, or all in images/.
"""

from __future__ import annotations

import json
import math
from pathlib import PurePosixPath
from typing import Any

from .boxes import Boxed, Category, Found, Object, Reader
from .names import first_match, joined

TRAIN = ("annotations/instances_train*.json", "annotations/train*.json")
VAL = ("annotations/instances_val*.json", "annotations/val*.json")
KEYS = ("images", "annotations", "categories")

Part = tuple[list[Category], list[Boxed]]


def read(reader: Reader) -> Found | None:
    """Return the data set, or None if no data set has this layout."""
    train = first_match(reader.paths, TRAIN, reader.label(""))
    if not train:
        return None
    val = first_match(reader.paths, VAL, reader.label(""))
    categories, records = _part(reader, train)
    if not val:
        return Found("COCO", categories, records, None, (train,))
    others, val_records = _part(reader, val)
    if {each.id: each.name for each in others} != {each.id: each.name for each in categories}:
        message = f"expected the categories of {train.rpartition('/')[2]}, found others"
        reader.complain("categories", reader.label(val), message)
    return Found("COCO", categories, records, val_records, (train, val))


def _part(reader: Reader, path: str) -> Part:
    content = _content(reader, path)
    if content is None:
        return [], []
    place = reader.label(path)
    listed = [_fields(reader, place, "categories", i, c, id=int, name=str) for i, c in enumerate(content["categories"])]
    categories = [Category(*each) for each in listed if each]
    labels = {category.id: label for label, category in enumerate(categories, start=1)}
    if not categories or len(labels) < len(categories):
        message = f"expected categories with an id of their own each, found {len(labels)} different ids"
        reader.complain("categories", place, message)
    records = _images(reader, path, content["images"])
    drawn: set[object] = set()
    for index, item in enumerate(content["annotations"]):
        found = _object(reader, f"{place}: annotations[{index}]", item, labels)
        if found is None:
            continue
        image, thing = found
        if image not in records:
            where = f"{place}: annotations[{index}]"
            reader.complain("image_id", where, f"expected an image_id of images, found {image}")
            continue
        if (number := item.get("id")) is not None and isinstance(number, int) and number in drawn:
            reader.doubt("same_id", f"{place}: annotations[{index}]", f"the id {number} was used before")
        drawn.add(number if isinstance(number, int) else None)
        records[image].objects.append(thing)
    return categories, list(records.values())


def _content(reader: Reader, path: str) -> dict[str, Any] | None:
    text = reader.text(path)
    if text is None:
        return None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        reader.complain("json", reader.label(path), f"expected JSON, found {error}")
        return None
    missing = [key for key in KEYS if not isinstance(content, dict) or not isinstance(content.get(key), list)]
    if missing:
        found = " and no ".join(missing)
        message = f"expected an object with the lists {', '.join(KEYS)}, found no {found}"
        example = ' (a category is {"id": 1, "name": "person"})' if "categories" in missing else ""
        reader.complain("json", reader.label(path), message + example)
        return None
    return dict(content)


def _fields(reader: Reader, place: str, key: str, index: int, item: object, **wanted: type) -> tuple[Any, ...] | None:
    """Return the values of an entry. Each value must have the type in `wanted`; otherwise complain and return None."""
    values = tuple(_whole(item.get(name), kind) if isinstance(item, dict) else None for name, kind in wanted.items())
    for (name, kind), value in zip(wanted.items(), values, strict=True):
        if not isinstance(value, kind) or isinstance(value, bool):
            message = f"expected {name} ({kind.__name__}), found {value!r}"
            reader.complain("entry", f"{place}: {key}[{index}]", message)
            return None
    return values


def _whole(value: object, kind: type) -> object:
    """Return a whole number that was written as a float as an int; anything else unchanged."""
    return int(value) if kind is int and isinstance(value, float) and value.is_integer() else value


def _images(reader: Reader, path: str, items: list[Any]) -> dict[int, Boxed]:
    place = reader.label(path)
    images = [
        (index, *found)
        for index, item in enumerate(items)
        if (found := _fields(reader, place, "images", index, item, id=int, file_name=str, width=int, height=int))
    ]
    root = _folder(reader, path, [image[2] for image in images])
    records: dict[int, Boxed] = {}
    named: dict[str, int] = {}
    for index, number, name, width, height in images:
        where = f"{place}: images[{index}]"
        if number in records or min(width, height) < 1:
            message = f"expected an id of its own and a size, found id {number}, {width} x {height}"
            reader.complain("image", where, message)
            continue
        if name in named:
            reader.doubt("same_image", where, f"{name!r} is also images[{named[name]}]")
        named[name] = index
        inside = reader.below(root, name, where)
        if inside is not None:
            records[number] = Boxed(inside, number, (width, height))
    if records and root is not None:
        reader.missing(path, (record.path for record in records.values()))
    return records


def _object(reader: Reader, place: str, item: Any, labels: dict[int, int]) -> tuple[int, Object] | None:
    where, key, index = place.rpartition(": ")[0], "annotations", int(place.rpartition("[")[2][:-1])
    found = _fields(reader, where, key, index, item, image_id=int, category_id=int, bbox=list)
    if found is None:
        return None
    image, category, box = found
    if category not in labels:
        reader.complain("category", place, f"expected a category_id of categories, found {category}")
        return None
    if len(box) != 4 or not all(isinstance(n, int | float) and math.isfinite(n) for n in box) or min(box[2:]) < 0:
        reader.complain("box", place, f"expected bbox [x, y, width, height], found {box}")
        return None
    x, y, width, height = box
    area = item.get("area")
    given = float(area) if isinstance(area, int | float) else None
    return image, Object((x, y, x + width, y + height), labels[category], bool(item.get("iscrowd", 0)), given)


def _folder(reader: Reader, annotations: str, names: list[str]) -> str:
    """Return the folder that contains the first existing image."""
    place = reader.label(annotations)
    if not names:
        reader.complain("no_images", place, "expected images, found an empty list")
        return ""
    folder, _, file = annotations.rpartition("/")
    part = file.removesuffix(".json").removeprefix("instances_")  # train2017
    above = folder.rpartition("/")[0]
    tried = [joined(above, f"images/{part}"), joined(above, part), joined(above, "images"), above]
    for name in names[:100]:
        for each in tried:
            if str(PurePosixPath(each, name)) in reader.paths:
                return each
    where = ", ".join(reader.label(each) for each in tried)
    reader.complain("missing_images", place, f"expected {names[0]} in one of {where}, found it in none")
    return tried[0]
