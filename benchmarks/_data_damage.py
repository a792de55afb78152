"""Damage for `bench data_checks`: data sets that are made here, and the damages that are done to a copy of each set.

A damage lists names, and a finding must contain one of them. The damages are those that people report for their first
runs.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
import shutil
import struct
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image


@dataclass(frozen=True)
class Damage:
    """One way to damage a data set. `harm` damages the folder or file; a finding must contain one of `names`."""

    label: str
    harm: Callable[[Path], object]
    names: tuple[str, ...]


def cut(path: Path, share: float = 0.6) -> None:
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


def mark(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


def recode(path: Path, mode: str, kind: str = "JPEG") -> None:
    with Image.open(path) as image:
        changed = image.convert(mode)
    changed.save(path, kind)


def zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def swap(one: Path, other: Path) -> None:
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def nested(folder: Path, name: str) -> None:
    with tarfile.open(folder / name, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("inner.txt"))


def first(folder: Path, pattern: str, index: int = 0) -> Path:
    return sorted(folder.rglob(pattern))[index]


def image_folder(folder: Path) -> list[Damage]:
    """Return the damages of train/<class> and val/<class> with JPEG files."""
    classes = sorted(path.name for path in (folder / "train").iterdir())
    picture, other = (first(folder / "train" / name, "*.jpg").relative_to(folder) for name in classes[:2])
    stem = picture.with_suffix("").name
    return [
        Damage("truncated picture", lambda d: cut(d / picture), (picture.name,)),
        Damage("empty picture", lambda d: (d / picture).write_bytes(b""), (picture.name,)),
        Damage("zero bytes", lambda d: zeros(d / picture), (picture.name,)),
        Damage("a page of HTML", lambda d: (d / picture).write_text("<!DOCTYPE html>"), (picture.name,)),
        Damage("wrong extension", lambda d: recode(d / picture, "RGB", "PNG"), (picture.name,)),
        Damage("CMYK", lambda d: recode(d / picture, "CMYK"), (picture.name,)),
        Damage("emptied class", lambda d: shutil.rmtree(d / "train" / classes[0]), (classes[0],)),
        Damage("emptied class in val", lambda d: shutil.rmtree(d / "val" / classes[0]), (classes[0],)),
        Damage("no val", lambda d: shutil.rmtree(d / "val"), ("val",)),
        Damage("leak", lambda d: shutil.copy(d / picture, d / "val" / classes[0] / "leak.jpg"), ("leak.jpg",)),
        Damage("two classes", lambda d: shutil.copy(d / picture, (d / other).with_name("twin.jpg")), ("twin.jpg",)),
        Damage("duplicate", lambda d: shutil.copy(d / picture, (d / picture).with_name("again.jpg")), ("again.jpg",)),
        Damage("archive inside", lambda d: nested(d / "train" / classes[0], "more.tar.gz"), ("more.tar.gz",)),
        Damage("unread type", lambda d: (d / picture).rename((d / picture).with_suffix(".heic")), (f"{stem}.heic",)),
        Damage(
            "case", lambda d: shutil.copy(d / picture, (d / picture).with_name(picture.name.upper())), (stem.upper(),)
        ),
    ]


def coco(folder: Path) -> list[Damage]:
    """Return the damages of COCO's layout."""
    train, val = (f"annotations/instances_{split}2017.json" for split in ("train", "val"))
    content = json.loads((folder / train).read_text())
    drawn = next(i for i, a in enumerate(content["annotations"]) if not a["iscrowd"])
    image = next(i for i in content["images"] if i["id"] == content["annotations"][drawn]["image_id"])
    name, picture = image["file_name"], f"train2017/{image['file_name']}"
    used = {each["category_id"] for each in content["annotations"]}
    category = next(each for each in content["categories"] if each["id"] in used)

    def edit(change: Callable[[Any], object]) -> Callable[[Path], object]:
        def harm(target: Path) -> None:
            document = json.loads((target / train).read_text())
            change(document)
            (target / train).write_text(json.dumps(document))

        return harm

    def box(*values: float) -> Callable[[Path], object]:
        return edit(lambda c: c["annotations"][drawn].update(bbox=list(values)))

    def unused(document: Any) -> None:
        document["annotations"] = [a for a in document["annotations"] if a["category_id"] != category["id"]]

    width, height = image["width"], image["height"]
    return [
        Damage("missing image", lambda d: (d / picture).unlink(), (name,)),
        Damage("truncated image", lambda d: cut(d / picture), (name,)),
        Damage("empty image", lambda d: (d / picture).write_bytes(b""), (name,)),
        Damage("zero bytes", lambda d: zeros(d / picture), (name,)),
        Damage("CMYK", lambda d: recode(d / picture, "CMYK"), (name,)),
        Damage("wrong extension", lambda d: recode(d / picture, "RGB", "PNG"), (name,)),
        Damage("box outside", box(width - 5, 3, 40, 20), (name,)),
        Damage("box beside", box(3, height + 50, 40, 20), (name,)),
        Damage("box without area", box(3, 3, 0, 20), (name,)),
        Damage("negative width", box(3, 3, -9, 20), (f"annotations[{drawn}]",)),
        Damage("unknown category", edit(lambda c: c["annotations"][0].update(category_id=999)), ("999",)),
        Damage("unknown image", edit(lambda c: c["annotations"][0].update(image_id=-5)), ("-5",)),
        Damage("emptied class", edit(unused), (category["name"],)),
        Damage("swapped annotations", lambda d: swap(d / train, d / val), ("instances_",)),
        Damage("BOM", lambda d: mark(d / train), ("BOM",)),
        Damage("truncated annotations", lambda d: cut(d / val), ("instances_val2017.json",)),
        Damage("leak", lambda d: shutil.copy(d / picture, first(d / "val2017", "*.jpg")), (name,)),
        Damage("archive inside", lambda d: nested(d, "more.tar.gz"), ("more.tar.gz",)),
    ]


def idx(_folder: Path) -> list[Damage]:
    """Return the damages of MNIST's four files."""
    images, labels = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"
    test_images, test_labels = "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"

    def edit(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
        return lambda d: (d / name).write_bytes(gzip.compress(change(gzip.decompress((d / name).read_bytes())), 1))

    def leaked(target: Path) -> None:
        picture = gzip.decompress((target / images).read_bytes())[16 : 16 + 784]
        edit(test_images, lambda c: c[:16] + picture + c[16 + 784 :])(target)

    return [
        Damage("truncated", lambda d: cut(d / images), (images,)),
        Damage("swapped labels", lambda d: swap(d / labels, d / test_labels), (labels,)),
        Damage("labels for images", lambda d: swap(d / labels, d / images), (labels,)),
        Damage("missing", lambda d: (d / test_labels).unlink(), ("t10k-labels-idx1-ubyte",)),
        Damage("empty", lambda d: (d / images).write_bytes(b""), (images,)),
        Damage("emptied class", edit(labels, lambda c: c[:8] + c[8:].replace(b"\x07", b"\x01")), ("7",)),
        Damage("wrong label", edit(labels, lambda c: c[:-1] + b"\xc8"), ("200",)),
        Damage("wrong count", edit(images, lambda c: struct.pack(">2I", 0x803, 7) + c[8:]), (images,)),
        Damage("leak", leaked, ("train 0",)),
        Damage("zero bytes", lambda d: zeros(d / images), (images,)),
        Damage("blank images", edit(images, lambda c: c[: -784 * 9] + bytes(784 * 9)), ("train 5",)),
    ]


def cifar(_archive: Path) -> list[Damage]:
    """Return the damages of an archive with CIFAR-10's batches. Pickles keep protocol 2, as published."""

    def repacked(change: Callable[[dict[str, bytes]], object]) -> Callable[[Path], object]:
        def harm(archive: Path) -> None:
            with tarfile.open(archive) as tar:
                entries = {each.name: tar.extractfile(each).read() for each in tar if each.isfile()}  # type: ignore[union-attr]
            change(entries)
            with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
                for name, content in entries.items():
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))

        return harm

    def name_of(entries: dict[str, bytes], end: str) -> str:
        return next(name for name in entries if name.endswith(end))

    def shorten(entries: dict[str, bytes]) -> None:
        name = name_of(entries, "data_batch_2")
        entries[name] = entries[name][: len(entries[name]) // 2]

    def call(entries: dict[str, bytes]) -> None:
        entries[name_of(entries, "data_batch_4")] = pickle.dumps(print, 2)

    return [
        Damage("truncated archive", cut, ("expected a readable archive",)),
        Damage("truncated batch", repacked(shorten), ("data_batch_2",)),
        Damage("missing batch", repacked(lambda e: e.pop(name_of(e, "data_batch_3"))), ("data_batch_3",)),
        Damage("a pickle that calls", repacked(call), ("data_batch_4",)),
        Damage("archive inside", repacked(lambda e: e.update({"cifar/more.zip": b"PK\x03\x04"})), ("more.zip",)),
        Damage(
            "leak", repacked(lambda e: e.update({name_of(e, "test_batch"): e[name_of(e, "data_batch_1")]})), ("test 0",)
        ),
        Damage("leads out", repacked(lambda e: e.update({"../out": b"x"})), ("../out",)),
    ]


def text(folder: Path) -> list[Damage]:
    """Return the damages of a folder of texts whose names begin with the split."""
    name = first(folder, "train*.txt").name
    words = (folder / name).read_text("utf-8")
    return [
        Damage("Latin-1", lambda d: (d / name).write_bytes(words.encode("latin-1")), (name,)),
        Damage("UTF-16", lambda d: (d / name).write_bytes(words.encode("utf-16")), (name,)),
        Damage("UTF-16 without a mark", lambda d: (d / name).write_bytes(words.encode("utf-16-le")), (name,)),
        Damage("BOM", lambda d: (d / name).write_bytes(b"\xef\xbb\xbf" + words.encode()), (name,)),
        Damage("mixed", lambda d: (d / name).write_bytes(words.encode() + "é".encode("latin-1")), (name,)),
        Damage("zero bytes", lambda d: zeros(d / name), (name,)),
        Damage("empty", lambda d: (d / name).write_bytes(b""), (name,)),
        Damage("leak", lambda d: shutil.copy(d / name, d / "test-leak.txt"), ("test-leak.txt",)),
        Damage("archive inside", lambda d: nested(d, "more.tar.gz"), ("more.tar.gz",)),
        Damage("truncated gzip", lambda d: cut(first(d, "*.gz")), (".gz",)),
    ]


def make_text(folder: Path) -> None:
    dice = random.Random(1)
    folder.mkdir()
    for number in range(6):
        split = "test" if number > 4 else "train"
        words = " ".join(dice.choice(("Straße", "déjà", "words", "naïve", "lines\n")) for _ in range(6000))
        (folder / f"{split}-{number}.txt").write_text(words, "utf-8")
    (folder / "train-9.txt.gz").write_bytes(gzip.compress(("more " + words).encode()))


def make_voc(folder: Path) -> None:
    dice = random.Random(2)
    for name in ("Annotations", "ImageSets/Main", "JPEGImages"):
        (folder / "VOC2012" / name).mkdir(parents=True)
    root = folder / "VOC2012"
    stems = [f"2012_{number:06}" for number in range(40)]
    for stem in stems:
        width, height = dice.randrange(60, 90), dice.randrange(50, 90)
        Image.frombytes("RGB", (width, height), dice.randbytes(3 * width * height)).save(
            root / "JPEGImages" / f"{stem}.jpg"
        )
        box = "<bndbox><xmin>3</xmin><ymin>4</ymin><xmax>30</xmax><ymax>40</ymax></bndbox>"
        (root / "Annotations" / f"{stem}.xml").write_text(
            f"<annotation><filename>{stem}.jpg</filename><size><width>{width}</width><height>{height}</height></size>"
            f"<object><name>{dice.choice(('cat', 'dog'))}</name>{box}</object></annotation>"
        )
    (root / "ImageSets/Main/train.txt").write_text("\n".join(stems[:30]) + "\n")
    (root / "ImageSets/Main/val.txt").write_text("\n".join(stems[30:]) + "\n")


def voc(folder: Path) -> list[Damage]:
    """Return the damages of Pascal VOC's layout."""
    root = folder.relative_to(folder) / "VOC2012"
    one, other = "2012_000003", "2012_000011"

    def edit(old: str, new: str) -> Callable[[Path], object]:
        def harm(target: Path) -> None:
            path = target / root / "Annotations" / f"{one}.xml"
            path.write_text(path.read_text().replace(old, new))

        return harm

    listed, first_xml, other_xml = (
        root / "ImageSets/Main/val.txt", root / f"Annotations/{one}.xml", root / f"Annotations/{other}.xml"
    )  # fmt: skip
    return [
        Damage("missing image", lambda d: (d / root / "JPEGImages" / f"{one}.jpg").unlink(), (f"{one}.jpg",)),
        Damage("missing annotation", lambda d: (d / root / "Annotations" / f"{one}.xml").unlink(), (f"{one}.xml",)),
        Damage("swapped labels", lambda d: swap(d / first_xml, d / other_xml), (one,)),
        Damage("box outside", edit("<xmax>30", "<xmax>300"), (one,)),
        Damage("box turned round", edit("<xmax>30", "<xmax>1"), (one,)),
        Damage("broken XML", edit("</annotation>", ""), (one,)),
        Damage("truncated", lambda d: cut(d / root / "JPEGImages" / f"{one}.jpg"), (one,)),
        Damage("BOM", lambda d: mark(d / listed), ("val.txt",)),
        Damage("in both splits", lambda d: (d / listed).write_text(f"{one}\n"), (one,)),
    ]  # fmt: skip


def make_table(folder: Path) -> None:
    folder.mkdir()
    for split, numbers in (("train", range(500)), ("test", range(900, 1000))):
        lines = [f"{number},{number * 7 % 90},city{number % 5}\n" for number in numbers]
        (folder / f"{split}.csv").write_text("".join(["id,age,city\n", *lines]))


def table(_folder: Path) -> list[Damage]:
    """Return the damages of train.csv and test.csv."""

    def add(content: bytes) -> Callable[[Path], object]:
        return lambda d: (d / "train.csv").write_bytes((d / "train.csv").read_bytes() + content)

    def header(d: Path) -> None:
        path = d / "test.csv"
        path.write_text(path.read_text().replace("id,age", "id,years"))

    return [
        Damage("missing column", header, ("test.csv",)),
        Damage("ragged row", add(b"1,2\n"), ("train.csv: line 502",)),
        Damage("mixed encodings", add("1,2,Zürich\n".encode("latin-1")), ("train.csv",)),
        Damage("BOM", lambda d: mark(d / "train.csv"), ("train.csv",)),
        Damage("empty", lambda d: (d / "test.csv").write_bytes(b""), ("test.csv",)),
        Damage("zero bytes", lambda d: zeros(d / "test.csv"), ("test.csv",)),
        Damage("leak", lambda d: shutil.copy(d / "train.csv", d / "test.csv"), ("test.csv",)),
    ]  # fmt: skip


def make_images(folder: Path) -> None:
    """Write images of three classes as JPEG files."""
    dice = random.Random(3)
    for split, count in (("train", 14), ("val", 6)):
        for name in ("Ahorn", "Birke", "Esche"):
            (folder / split / name).mkdir(parents=True)
            for number in range(count):
                size = dice.randrange(40, 60), dice.randrange(40, 60)
                image = Image.frombytes("RGB", size, dice.randbytes(3 * size[0] * size[1]))
                image.save(folder / split / name / f"leaf{number}.jpg")
