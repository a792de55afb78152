"""Detection data in CSV, as keras-retinanet reads it.

train.csv or annotations.csv, and val.csv, with rows `image,xmin,ymin,xmax,ymax,class`, or `image,,,,,` for an image
without objects; classes.csv with rows `class,id`; images by their path from the folder of the .csv.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator

from .boxes import Box, Boxed, Category, Found, Object, Reader
from .names import first_match, joined

TRAIN = ("train*.csv", "annotations.csv")
HEADINGS = ("image", "path", "filename", "class")  # first cells of a header

Thing = tuple[str, Box, str]  # the place of the row, the box, the class


def read(reader: Reader) -> Found | None:
    """Return the data set, or None if no data set has this layout."""
    train = first_match(reader.paths, TRAIN, reader.label(""))
    if not train:
        return None
    folder = train.rpartition("/")[0]
    beside = sorted(path for path in reader.paths if path.endswith(".csv") and path.rpartition("/")[0] == folder)
    val = next((path for path in beside if path.rpartition("/")[2].startswith("val")), "")
    files = tuple(filter(None, (train, val)))
    parts = [_part(reader, path) for path in files]
    listed = joined(folder, "classes.csv")
    if listed in reader.paths:
        categories = _classes(reader, listed)
    else:
        names = sorted({name for part in parts for things in part.values() for _, _, name in things})
        categories = [Category(number, name) for number, name in enumerate(names)]
    labels = {category.name: label for label, category in enumerate(categories, start=1)}
    records = [_records(reader, path, part, labels) for path, part in zip(files, parts, strict=True)]
    return Found("CSV", categories, records[0], records[1] if val else None, files)


def _rows(reader: Reader, path: str) -> Iterator[tuple[str, list[str]]]:
    text = reader.text(path, "utf-8-sig")
    rows = csv.reader((text or "").splitlines(keepends=True))
    number = 0
    try:
        for number, row in enumerate(rows, start=1):
            if row and not (number == 1 and row[0].strip().lower() in HEADINGS):
                yield f"{reader.label(path)}: line {number}", [cell.strip() for cell in row]
    except csv.Error as error:
        reader.complain("csv", f"{reader.label(path)}: line {number + 1}", f"expected CSV, found {error}")


def _part(reader: Reader, path: str) -> dict[str, list[Thing]]:
    """Return the objects of each image, each with the place of its row."""
    images: dict[str, list[Thing]] = {}
    for place, row in _rows(reader, path):
        if len(row) != 6:
            reader.complain("columns", place, f"expected image,xmin,ymin,xmax,ymax,class, found {len(row)} values")
            continue
        things = images.setdefault(row[0], [])
        if not any(row[1:]):
            continue
        try:
            x1, y1, x2, y2 = map(float, row[1:5])
        except ValueError:
            reader.complain("numbers", place, f"expected four numbers, found {','.join(row[1:5])}")
            continue
        if reader.check_box(place, (x1, y1, x2, y2)):
            things.append((place, (x1, y1, x2, y2), row[5]))
    return images


def _classes(reader: Reader, path: str) -> list[Category]:
    categories = []
    for place, row in _rows(reader, path):
        if len(row) != 2 or not row[0] or not row[1].isdecimal():
            reader.complain("classes", place, f"expected class,id, found {','.join(row)}")
            continue
        categories.append(Category(int(row[1]), row[0]))
    for what in ("id", "name"):
        if len({getattr(category, what) for category in categories}) < len(categories):
            reader.complain("classes", reader.label(path), f"expected each {what} once, found one again")
    return categories


def _records(reader: Reader, source: str, images: dict[str, list[Thing]], labels: dict[str, int]) -> list[Boxed]:
    folder = source.rpartition("/")[0]
    inside = {name: reader.below(folder, name, reader.label(source)) for name in images}
    paths = {name: path for name, path in inside.items() if path is not None}
    absent = reader.missing(source, paths.values())
    for place, _, name in (thing for things in images.values() for thing in things):
        if name not in labels:
            reader.complain("category", place, f"expected a class of classes.csv, found {name!r}")
    return [
        Boxed(paths[name], number, (0, 0), [Object(box, labels[kind]) for _, box, kind in things if kind in labels])
        for number, (name, things) in enumerate(images.items(), start=1)
        if name in paths and paths[name] not in absent
    ]
