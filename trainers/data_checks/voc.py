"""Detection data in Pascal VOC's layout, as published.

Annotations/*.xml, ImageSets/Main/train.txt and val.txt (or trainval.txt and test.txt), JPEGImages/.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from .boxes import Box, Boxed, Category, Found, Object, Reader
from .names import first_match, joined

TRAIN = ("ImageSets/Main/train.txt", "ImageSets/Main/trainval.txt")
VAL = ("ImageSets/Main/val.txt", "ImageSets/Main/test.txt")

Thing = tuple[str, Box, bool]
Image = tuple[str, tuple[int, int], list[Thing]]


def read(reader: Reader) -> Found | None:
    """Return the data set, or None if no data set has this layout."""
    train = first_match(reader.paths, TRAIN, reader.label(""))
    if not train:
        return None
    root = train.removesuffix("/" + "/".join(train.split("/")[-3:])) if train.count("/") > 2 else ""
    lists = [path for path in reader.paths if path.startswith(root) and path.endswith(".txt")]
    val = first_match(lists, VAL, reader.label(root))
    named: dict[str, str] = {}
    parts = [_part(reader, root, listed, named) for listed in (train, val) if listed]
    names = sorted({name for part in parts for _, _, things in part for name, *_ in things})
    labels = {name: label for label, name in enumerate(names, start=1)}
    records = [
        [
            Boxed(path, number, size, [Object(box, labels[name], hard) for name, box, hard in things])
            for number, (path, size, things) in enumerate(part, start=1)
        ]
        for part in parts
    ]
    categories = [Category(label, name) for name, label in labels.items()]
    files = tuple(filter(None, (train, val)))
    splits = {path: "val" if listed == val else "train" for path, listed in named.items()}
    return Found("Pascal VOC", categories, records[0], records[1] if val else None, files, splits)


def _part(reader: Reader, root: str, listed: str, named: dict[str, str]) -> list[Image]:
    """Return the images of a list whose annotations can be read. `named` receives every image, with the list."""
    text = reader.text(listed)
    if text is None:
        return []
    if text.startswith("\ufeff"):
        reader.complain("encoding", reader.label(listed), "expected names of images, found a byte order mark first")
        text = text[1:]
    names = [line.split()[0] for line in text.splitlines() if line.strip()]
    if len(set(names)) < len(names):
        again = sorted({name for name in names if names.count(name) > 1}) if len(names) < 10_000 else ["names"]
        reader.doubt("same_image", reader.label(listed), f"{', '.join(again[:3])} named more than once")
    images = joined(root, "JPEGImages") + "/"
    by_stem = {path.rpartition("/")[2].rpartition(".")[0]: path for path in reader.paths if path.startswith(images)}
    pictures = {name: by_stem.get(name, f"{images}{name}.jpg") for name in names}
    sources = {name: joined(root, f"Annotations/{name}.xml") for name in names}
    named |= {path: listed for path in pictures.values() if path not in named}
    absent = reader.missing(listed, pictures.values()) | reader.missing(listed, sources.values())
    there = [name for name in names if pictures[name] not in absent and sources[name] not in absent]
    found = (_image(reader, sources[name], pictures[name]) for name in reader.some(there))
    return [image for image in found if image]


def _image(reader: Reader, source: str, picture: str) -> Image | None:
    """Read one .xml file. VOC counts pixels from 1 and includes the last pixel; this trainer counts corners from 0."""
    content, place = reader.read(source), reader.label(source)
    if content is None:
        return None
    try:
        # expat limits entities that grow (2.4.1 and later), and ElementTree fetches none from outside
        tree = ElementTree.fromstring(content)  # noqa: S314
        things = [_thing(element) for element in tree.iter("object")]
        width, height = (int(tree.findtext(f"size/{name}", "0")) for name in ("width", "height"))
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        reader.complain("xml", place, f"expected an annotation of Pascal VOC, found {error}")
        return None
    own = tree.findtext("filename", "").strip()
    if own and own.rpartition(".")[0] not in ("", picture.rpartition("/")[2].rpartition(".")[0]):
        reader.doubt("other_picture", place, f"it is beside {picture.rpartition('/')[2]} and describes {own!r}")
    if not all(name for name, *_ in things):
        reader.doubt("no_name", place, "an object has no name of a class")
    good = [thing for thing in things if reader.check_box(place, thing[1])]
    return picture, (width, height) if min(width, height) > 0 else (0, 0), good


def _thing(element: ElementTree.Element) -> Thing:
    x1, y1, x2, y2 = (float(element.findtext(f"bndbox/{n}", "")) for n in ("xmin", "ymin", "xmax", "ymax"))
    hard = element.findtext("difficult", "0").strip() == "1"
    return element.findtext("name", "").strip(), (x1 - 1, y1 - 1, x2, y2), hard
