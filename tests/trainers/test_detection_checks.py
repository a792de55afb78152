"""The checks of detection data (COCO, Pascal VOC, CSV): the damage that they name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from data_checks.findings import Severity

from tests.trainers.damaged import Damage, checked, codes, cut, mark, picture, words


def coco(folder: Path) -> Path:
    """12 and 4 pictures, each with two boxes."""
    for split, count in (("train", 12), ("val", 4)):
        images: list[dict[str, Any]] = []
        things: list[dict[str, Any]] = []
        for number in range(count):
            picture(folder / f"{split}2017" / f"{number}.png", number, (64, 48))
            images.append({"id": number, "file_name": f"{number}.png", "width": 64, "height": 48})
            for category in (1, 2):
                box = [5 * category, 5, 20, 20]
                things.append({"id": len(things), "image_id": number, "category_id": category, "bbox": box})
        classes = [{"id": number, "name": f"c{number}"} for number in (1, 2)]
        write(folder, split, {"images": images, "annotations": things, "categories": classes})
    return folder


def write(folder: Path, split: str, content: object) -> None:
    (folder / "annotations").mkdir(exist_ok=True)
    (folder / "annotations" / f"instances_{split}2017.json").write_text(json.dumps(content))


def change(folder: Path, what: Callable[[Any], object]) -> None:
    content = json.loads((folder / "annotations" / "instances_train2017.json").read_text())
    what(content)
    write(folder, "train", content)


ANNOTATIONS = "annotations/instances_{}2017.json"
BOXES: dict[str, tuple[Damage, str, str]] = {
    "missing": (lambda d: (d / "train2017/3.png").unlink(), "missing_images", "train2017/3.png"),
    "outside": (lambda d: change(d, lambda c: c["annotations"][0].update(bbox=[50, 5, 40, 9])), "outside", "0.png"),
    "no area": (lambda d: change(d, lambda c: c["annotations"][0].update(bbox=[9, 5, 0, 9])), "no_area", "0.png"),
    "negative": (lambda d: change(d, lambda c: c["annotations"][0].update(bbox=[9, 5, -4, 9])), "box", "[9, 5, -4, 9]"),
    "category": (lambda d: change(d, lambda c: c["annotations"][0].update(category_id=9)), "category", "found 9"),
    "image": (lambda d: change(d, lambda c: c["annotations"][0].update(image_id=99)), "image_id", "found 99"),
    "two ids": (lambda d: change(d, lambda c: c["images"][1].update(id=0)), "image", "found id 0"),
    "swapped": (
        lambda d: shutil.copy(d / ANNOTATIONS.format("train"), d / ANNOTATIONS.format("val")),
        "missing_images",
        "val2017/4.png",
    ),
    "size": (
        lambda d: picture(d / "train2017/3.png", size=(30, 30)),
        "size",
        "3.png is 30 x 30, its annotation says 64",
    ),
    "cut": (lambda d: cut(d / "train2017/3.png"), "broken", "train2017/3.png: it is cut off"),
    "bom": (lambda d: mark(d / ANNOTATIONS.format("train")), "json", "BOM"),
    "latin": (lambda d: (d / ANNOTATIONS.format("val")).write_bytes(b'{"\xe9": 1}'), "encoding", "byte 0xe9 at 2"),
    "half": (lambda d: cut(d / ANNOTATIONS.format("val")), "json", "instances_val2017.json: expected JSON"),
    "unused": (
        lambda d: change(d, lambda c: c.update(annotations=[a for a in c["annotations"] if a["category_id"] == 1])),
        "no_box",
        "c2",
    ),
    "leak": (lambda d: shutil.copy(d / "train2017/1.png", d / "val2017/1.png"), "leakage", "val2017/1.png"),
    "unnamed": (lambda d: picture(d / "train2017/extra.png"), "unnamed", "train2017/extra.png"),
    "no layout": (lambda d: shutil.rmtree(d / "annotations"), "layout", "found none of them"),
}


@pytest.mark.parametrize("name", BOXES)
def test_damage_of_detection_data_is_named(tmp_path: Path, name: str) -> None:
    """The undamaged data has no findings; each damage is found under its code, with the name of the file or place."""
    damage, code, word = BOXES[name]
    assert not checked(coco(tmp_path), "detection").findings
    damage(tmp_path)
    result = checked(tmp_path, "detection", whole=False)
    assert code in codes(result), words(result)
    assert word in words(result)


def voc(folder: Path) -> Path:
    for name in ("Annotations", "ImageSets/Main", "JPEGImages"):
        (folder / name).mkdir(parents=True)
    for number in range(6):
        picture(folder / "JPEGImages" / f"{number}.jpg", number, (64, 48))
        box = "<bndbox><xmin>2</xmin><ymin>3</ymin><xmax>20</xmax><ymax>30</ymax></bndbox>"
        (folder / "Annotations" / f"{number}.xml").write_text(
            f"<annotation><filename>{number}.jpg</filename><size><width>64</width><height>48</height></size>"
            f"<object><name>cat</name>{box}</object></annotation>"
        )
    (folder / "ImageSets/Main/train.txt").write_text("0\n1\n2\n3\n")
    (folder / "ImageSets/Main/val.txt").write_text("4\n5\n")
    return folder


def test_damage_of_voc_is_named(tmp_path: Path) -> None:
    """A list with a byte order mark, swapped annotations, a missing and a broken annotation are named, and nothing
    else."""
    folder = voc(tmp_path)
    assert not checked(folder, "detection").findings
    first, second = folder / "Annotations/0.xml", folder / "Annotations/1.xml"
    one, other = first.read_text(), second.read_text()
    first.write_text(other)
    second.write_text(one)
    (folder / "Annotations/2.xml").unlink()
    (folder / "Annotations/4.xml").write_text("<annotation>")
    mark(folder / "ImageSets/Main/val.txt")
    result = checked(folder, "detection", whole=False)
    assert set(codes(result)) == {"other_picture", "missing_images", "xml", "encoding"}
    for word in (
        "0.xml: it is beside 0.jpg and describes '1.jpg'",
        "Annotations/2.xml",
        "Annotations/4.xml",
        "byte order",
    ):
        assert word in words(result)


def test_boxes_in_csv_are_measured_by_their_pictures(tmp_path: Path) -> None:
    """CSV does not state the size of an image, so the check reads it from the picture."""
    for number in range(4):
        picture(tmp_path / f"{number}.png", number)
    rows = [f"{number}.png,1,2,20,20,cat\n" for number in range(3)]
    (tmp_path / "train.csv").write_text("".join([*rows, "3.png,1,2,60,20,cat\n"]))
    (tmp_path / "val.csv").write_text("0.png,1,2,20,20,cat\n")
    result = checked(tmp_path, "detection")
    assert "3.png (40 x 30): 1, 2, 60, 20" in words(result)
    assert codes(result) == {"outside": Severity.WARN, "leakage": Severity.WARN}
