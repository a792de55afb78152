"""Unusual damage of annotations (COCO, VOC, CSV) for `bench data_checks`, and harmless oddities without names."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks._data_damage import Damage
from benchmarks._strange_pictures import ORIENTATION, saved

TRAIN = "annotations/instances_train2017.json"


def edit(change: Callable[[Any], object]) -> Callable[[Path], object]:
    def harm(target: Path) -> None:
        document = json.loads((target / TRAIN).read_text())
        change(document)
        (target / TRAIN).write_text(json.dumps(document))

    return harm


def every(key: str, change: Callable[[Any], object]) -> Callable[[Path], object]:
    return edit(lambda document: [change(each) for each in document[key]])


def to_shares(document: Any) -> None:
    sizes = {image["id"]: (image["width"], image["height"]) for image in document["images"]}
    for each in document["annotations"]:
        (x, y, w, h), (width, height) = each["bbox"], sizes[each["image_id"]]
        each["bbox"] = [x / width, y / height, w / width, h / height]


def to_corners(document: Any) -> None:
    for each in document["annotations"]:
        x, y, width, height = each["bbox"]
        each["bbox"] = [x, y, x + width, y + height]


def coco(folder: Path) -> list[Damage]:
    content = json.loads((folder / TRAIN).read_text())
    at = next(i for i, a in enumerate(content["annotations"]) if not a["iscrowd"])
    wide = next(i for i, image in enumerate(content["images"]) if image["width"] != image["height"])
    return [*_of_boxes(at), *_of_pictures(wide, content["images"][wide]["file_name"]), *_of_the_document()]


def _of_boxes(at: int) -> list[Damage]:
    """Damage of the boxes, or of the box at this place in the document."""
    here = (f"annotations[{at}]",)

    def box(*values: Any) -> Callable[[Path], object]:
        return edit(lambda c: c["annotations"][at].update(bbox=list(values)))

    return [
        Damage("corners instead of sizes", edit(to_corners), ("leave their image",)),
        Damage("NaN box", box(float("nan"), 1, 9, 9), here),
        Damage("infinite box", box(1, 1, float("inf"), 9), here),
        Damage("numbers as text", box("1", "2", "9", "9"), here),
        Damage("category id as text", edit(lambda c: c["annotations"][at].update(category_id="1")), here),
        Damage("boxes as shares", edit(to_shares), ("1 pixel", "shares", "pixel")),
        Damage(
            "boxes as corners",
            every(
                "annotations",
                lambda a: a.update(
                    bbox=[a["bbox"][0], a["bbox"][1], a["bbox"][0] + a["bbox"][2], a["bbox"][1] + a["bbox"][3]]
                ),
            ),
            ("leave their image",),
        ),
        Damage("no areas, no crowds", every("annotations", lambda a: [a.pop("area", 0), a.pop("iscrowd", 0)]), ()),
    ]


def _of_pictures(wide: int, name: str) -> list[Damage]:
    """Damage of the rows of pictures. The picture at the place `wide` has this name, and is no square."""

    def turn(document: Any) -> None:
        image = document["images"][wide]
        image["width"], image["height"] = image["height"], image["width"]

    return [
        Damage("duplicate image id", edit(lambda c: c["images"][1].update(id=c["images"][0]["id"])), ("images[1]",)),
        Damage(
            "one file twice",
            edit(lambda c: c["images"][1].update(file_name=c["images"][0]["file_name"])),
            ("images[1]", "images[0]"),
        ),
        Damage("width and height swapped", edit(turn), (name,)),
        Damage(
            "Windows paths",
            every("images", lambda i: i.update(file_name="train2017\\" + i["file_name"])),
            ("train2017\\",),
        ),
        Damage("absolute paths", every("images", lambda i: i.update(file_name="/data/" + i["file_name"])), ("/data",)),
        Damage("EXIF rotation", lambda d: turned_in_place(d / "train2017" / name), (name,)),
        Damage("dot before the names", every("images", lambda i: i.update(file_name="./" + i["file_name"])), ()),
        Damage("sizes as 640.0", every("images", lambda i: i.update(width=float(i["width"]))), ()),
    ]


def _of_the_document() -> list[Damage]:
    return [
        Damage(
            "categories from 0",
            every("annotations", lambda a: a.update(category_id=a["category_id"] - 1)),
            ("category",),
        ),
        Damage("annotations null", edit(lambda c: c.update(annotations=None)), ("annotations",)),
        Damage("other annotations beside", lambda d: (d / "annotations/captions_train2017.json").write_text("{}"), ()),
        Damage("no annotations", edit(lambda c: c.update(annotations=[])), ("objects to train on",)),
        Damage("UTF-16", lambda d: (d / TRAIN).write_text((d / TRAIN).read_text(), "utf-16"), (TRAIN.split("/")[1],)),
        Damage("JSON lines", lambda d: (d / TRAIN).write_text("{}\n{}\n"), (TRAIN.split("/")[1],)),
        Damage("category without a name", edit(lambda c: c["categories"][0].pop("name")), ("categories[0]",)),
        Damage("empty name of a category", edit(lambda c: c["categories"][0].update(name=" ")), ("name",)),
    ]


def turned_in_place(path: Path) -> None:
    """Store the picture lying on its side, with an orientation tag that tells how to turn it."""
    with Image.open(path) as image:
        lying = image.convert("RGB").transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    lying.save(path, exif=exif)


def voc(_folder: Path) -> list[Damage]:
    root, one = Path("VOC2012"), "2012_000003"
    xml, listed = root / f"Annotations/{one}.xml", root / "ImageSets/Main/train.txt"

    def change(old: str, new: str) -> Callable[[Path], object]:
        return lambda d: (d / xml).write_text((d / xml).read_text().replace("dog", "cat").replace(old, new))

    bomb = '<!DOCTYPE a [<!ENTITY a "' + "x" * 1000 + '"><!ENTITY b "' + "&a;" * 5000 + '">]>'
    return [
        Damage("empty class", change("cat", ""), (one,)),
        Damage("class in other case", change("cat", "Cat"), ("Cat", "cat")),
        Damage("NaN box", change("<xmin>3", "<xmin>nan"), (one,)),
        Damage(
            "list with extensions",
            lambda d: (d / listed).write_text((d / listed).read_text().replace("\n", ".jpg\n")),
            (".jpg.xml", ".jpg"),
        ),
        Damage("long entities", change("<annotation>", bomb + "<annotation>&b;"), ()),
        Damage("no objects in a file", lambda d: without_objects(d / xml), ()),
        Damage("CRLF", lambda d: (d / listed).write_bytes((d / listed).read_bytes().replace(b"\n", b"\r\n")), ()),
        Damage(
            "UTF-16 XML",
            lambda d: (d / xml).write_text('<?xml version="1.0" encoding="utf-16"?>' + (d / xml).read_text(), "utf-16"),
            (),
        ),
        Damage("size unknown", lambda d: without_size(d / xml), ()),
    ]


def without_objects(path: Path) -> None:
    text = path.read_text()
    path.write_text(text[: text.index("<object>")] + "</annotation>")


def without_size(path: Path) -> None:
    text = path.read_text()
    path.write_text(text[: text.index("<size>")] + text[text.index("</size>") + 7 :])


def make_boxes(folder: Path) -> None:
    """Write boxes in the CSV layout of keras-retinanet."""
    folder.mkdir()
    dice = random.Random(4)
    for split, count in (("train", 30), ("val", 8)):
        rows = []
        for number in range(count):
            name = f"{split}{number}.jpg"
            saved(folder / name, (60 + number, 50))
            rows += [f"{name},{3 + n},4,{20 + n},{30 + n},{dice.choice(('cat', 'dog'))}\n" for n in range(2)]
        (folder / f"{split}.csv").write_text("".join(rows))


def boxes(_folder: Path) -> list[Damage]:
    def rows(change: Callable[[str], str]) -> Callable[[Path], object]:
        return lambda d: (d / "train.csv").write_text(change((d / "train.csv").read_text()))

    def shares(text: str) -> str:
        cells = [line.split(",") for line in text.splitlines()]
        return "".join(",".join([row[0], *(f"{int(v) / 100:.4f}" for v in row[1:5]), row[5]]) + "\n" for row in cells)

    return [
        Damage("semicolons", rows(lambda t: t.replace(",", ";")), ("train.csv: line 1",)),
        Damage("shares", rows(shares), ("pixel",)),
        Damage(
            "other columns",
            rows(lambda t: "\n".join(",".join(row.split(",")[::-1]) for row in t.splitlines())),
            ("line 1",),
        ),
        Damage("a class in other case", rows(lambda t: t.replace("cat", "Cat", 3)), ("Cat",)),
        Damage("NaN", rows(lambda t: t.replace(",3,", ",nan,", 1)), ("line 1",)),
        Damage("a header", rows(lambda t: "image,xmin,ymin,xmax,ymax,class\n" + t), ()),
        Damage("CRLF", rows(lambda t: t.replace("\n", "\r\n")), ()),
        Damage("an image without objects", rows(lambda t: t + "val0.jpg,,,,,\n"), ("val0.jpg",)),
    ]
