"""Unusual damage for `bench data_checks`, and harmless oddities that the checks must not refuse.

The damages were written before the checks knew them. They are typical of cameras, operating systems, spreadsheets and
converters. A harmless oddity has no names.
"""

from __future__ import annotations

import gzip
import json
import pickle
import random
import struct
import unicodedata
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks._data_damage import Damage, cut, first, swap

ORIENTATION = 0x0112


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22e\nsize 12345\n"


def leaf(name: str = "leaf0.jpg", split: str = "train", kind: str = "Ahorn") -> Path:
    return Path(split, kind, name)


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(rows: bytes, size: int = 40, depth: int = 8, more: bytes = b"") -> bytes:
    head = struct.pack(">2I5B", size, size, depth, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + more + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    )


def noise(count: int, seed: int = 5) -> bytes:
    return random.Random(seed).randbytes(count)


def rows(size: int, depth: int = 8, seed: int = 5) -> bytes:
    """Return rows of noise for `png`, each with filter 0."""
    dice = random.Random(seed)
    return b"".join(b"\0" + dice.randbytes(size * 3 * depth // 8) for _ in range(size))


def saved(path: Path, size: tuple[int, int] = (50, 40), **how: Any) -> None:
    Image.frombytes("RGB", size, noise(3 * size[0] * size[1], len(str(path)))).save(path, **how)


def turned(path: Path) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    saved(path, exif=exif)


def progressive(path: Path) -> None:
    """Remove the last scan, and put the end marker after the remaining scans."""
    saved(path, (200, 150), progressive=True)
    content = path.read_bytes()
    path.write_bytes(content[: content.rindex(b"\xff\xda") + 20])


def overwritten(path: Path) -> None:
    """Overwrite the middle third with noise, as a bad disk block does."""
    content = path.read_bytes()
    third = len(content) // 3
    path.write_bytes(content[:third] + noise(third) + content[2 * third :])


def animated(path: Path) -> None:
    frames = [Image.new("RGB", (40, 40), color) for color in ("red", "blue", "green")]
    frames[0].save(path, save_all=True, append_images=frames[1:])


def images(_folder: Path) -> list[Damage]:
    one = leaf()
    return [
        Damage("progressive JPEG without its last scan", lambda d: progressive(d / one), (one.name,)),
        Damage("noise in the middle of a JPEG", lambda d: overwritten(d / one), (one.name,)),
        Damage(
            "pointers of Git LFS",
            lambda d: [p.write_bytes(POINTER) for p in (d / one).parent.iterdir()],
            ("Git LFS",),
        ),
        Damage("JPEG with a comment", lambda d: saved(d / one, comment=b"x" * 9000), ()),
        Damage("JPEG with restart markers", lambda d: saved(d / one, restart_marker_blocks=2), ()),
        Damage("bytes after a JPEG", lambda d: append(d / one, bytes(500) + b"camera"), ()),
        Damage(
            "JPEG, then zeros", lambda d: (d / one).write_bytes((d / one).read_bytes()[:900] + bytes(9000)), (one.name,)
        ),
        Damage("16-bit PNG", lambda d: (d / leaf("deep.png")).write_bytes(png(rows(40, 16), depth=16)), ("deep.png",)),
        Damage("animated PNG", lambda d: animated(d / leaf("film.png")), ("film.png",)),
        Damage("animated WebP", lambda d: animated(d / leaf("film.webp")), ("film.webp",)),
        Damage("EXIF rotation, which the trainer undoes", lambda d: turned(d / one), ()),
        Damage(
            "PNG with too few rows",
            lambda d: (d / leaf("rows.png")).write_bytes(png(rows(40)[: 121 * 20])),
            ("rows.png",),
        ),
        Damage(
            "PNG with broken deflate",
            lambda d: (d / leaf("bad.png")).write_bytes(
                png(b"").replace(chunk(b"IDAT", zlib.compress(b"")), chunk(b"IDAT", b"x\x9c\xff\xff\xff"))
            ),
            ("bad.png",),
        ),
        Damage(
            "PNG with unknown filters",
            lambda d: (d / leaf("filters.png")).write_bytes(png(noise(121 * 40))),
            ("filters.png",),
        ),
        Damage("HEIC as .jpg", lambda d: (d / one).write_bytes(b"\0\0\0\x18ftypheic" + noise(900)), (one.name,)),
        Damage(
            "pointer of Git LFS",
            lambda d: (d / one).write_text("version https://git-lfs.github.com/spec/v1\n"),
            (one.name,),
        ),
        Damage("unfinished download", lambda d: (d / one).rename(d / leaf("leaf0.jpg.part")), ("leaf0.jpg.part",)),
        Damage("class with a space", lambda d: spaced(d), ("Ahorn ",)),
        Damage("class in two Unicode forms", twice_in_unicode, ("Érable",)),
        Damage("Train and Val", lambda d: [(d / n).rename(d / n.title()) for n in ("train", "val")], ("Train",)),
        Damage("dangling link", lambda d: (d / leaf("lost.jpg")).symlink_to("nowhere.jpg"), ("lost.jpg",)),
        Damage(
            ".DS_Store and Thumbs.db",
            lambda d: [
                (d / "train/Ahorn" / n).write_bytes(noise(99))
                for n in (".DS_Store", "Thumbs.db", "desktop.ini", "._leaf0.jpg")
            ],
            (),
        ),
        Damage("folders in folders", lambda d: nested_class(d), ()),
        Damage("upper-case extension", lambda d: (d / one).rename(d / leaf("LEAF0.JPG")), ()),
        Damage("webp", lambda d: saved(d / leaf("x.webp")), ()),
        Damage(
            "link to a picture",
            lambda d: (d / leaf("link.jpg")).symlink_to(d / leaf("leaf1.jpg", "train", "Birke")),
            ("link.jpg",),
        ),
        Damage(
            "grey and palette",
            other_modes,
            (),
        ),
        Damage(
            "bytes after the end", lambda d: (d / one).write_bytes((d / one).read_bytes() + b"from a phone" * 99), ()
        ),
        Damage("thumbnail in EXIF", lambda d: saved(d / one, exif=b"Exif\0\0" + b"\xff\xd8thumb\xff\xd9" * 50), ()),
    ]


def other_modes(folder: Path) -> None:
    for mode in ("L", "P", "LA"):
        Image.new(mode, (40, 40), 7).save(folder / leaf(f"{mode}.png"))


def spaced(folder: Path) -> None:
    target = folder / "train/Ahorn "
    target.mkdir()
    for number in range(12):
        saved(target / f"x{number}.jpg", (40 + number, 40))


def twice_in_unicode(folder: Path) -> None:
    for form in ("NFC", "NFD"):
        target = folder / "train" / unicodedata.normalize(form, "Érable")
        target.mkdir()
        for number in range(12):
            saved(target / f"{form}{number}.jpg", (40 + number, 42))


def nested_class(folder: Path) -> None:
    inner = folder / "train/Ahorn/more/still"
    inner.mkdir(parents=True)
    (folder / leaf()).rename(inner / "leaf0.jpg")


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
    name = content["images"][wide]["file_name"]
    here = (f"annotations[{at}]",)

    def box(*values: Any) -> Callable[[Path], object]:
        return edit(lambda c: c["annotations"][at].update(bbox=list(values)))

    def turn(document: Any) -> None:
        image = document["images"][wide]
        image["width"], image["height"] = image["height"], image["width"]

    return [
        Damage("corners instead of sizes", edit(to_corners), ("leave their image",)),
        Damage(
            "categories from 0",
            every("annotations", lambda a: a.update(category_id=a["category_id"] - 1)),
            ("category",),
        ),
        Damage("annotations null", edit(lambda c: c.update(annotations=None)), ("annotations",)),
        Damage("other annotations beside", lambda d: (d / "annotations/captions_train2017.json").write_text("{}"), ()),
        Damage("NaN box", box(float("nan"), 1, 9, 9), here),
        Damage("infinite box", box(1, 1, float("inf"), 9), here),
        Damage("numbers as text", box("1", "2", "9", "9"), here),
        Damage("category id as text", edit(lambda c: c["annotations"][at].update(category_id="1")), here),
        Damage("duplicate image id", edit(lambda c: c["images"][1].update(id=c["images"][0]["id"])), ("images[1]",)),
        Damage(
            "one file twice",
            edit(lambda c: c["images"][1].update(file_name=c["images"][0]["file_name"])),
            ("images[1]", "images[0]"),
        ),
        Damage("width and height swapped", edit(turn), (name,)),
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
        Damage("no annotations", edit(lambda c: c.update(annotations=[])), ("objects to train on",)),
        Damage(
            "Windows paths",
            every("images", lambda i: i.update(file_name="train2017\\" + i["file_name"])),
            ("train2017\\",),
        ),
        Damage("absolute paths", every("images", lambda i: i.update(file_name="/data/" + i["file_name"])), ("/data",)),
        Damage("UTF-16", lambda d: (d / TRAIN).write_text((d / TRAIN).read_text(), "utf-16"), (TRAIN.split("/")[1],)),
        Damage("JSON lines", lambda d: (d / TRAIN).write_text("{}\n{}\n"), (TRAIN.split("/")[1],)),
        Damage("category without a name", edit(lambda c: c["categories"][0].pop("name")), ("categories[0]",)),
        Damage("empty name of a category", edit(lambda c: c["categories"][0].update(name=" ")), ("name",)),
        Damage("EXIF rotation", lambda d: turned_in_place(d / "train2017" / name), (name,)),
        Damage("no areas, no crowds", every("annotations", lambda a: [a.pop("area", 0), a.pop("iscrowd", 0)]), ()),
        Damage("dot before the names", every("images", lambda i: i.update(file_name="./" + i["file_name"])), ()),
        Damage("sizes as 640.0", every("images", lambda i: i.update(width=float(i["width"]))), ()),
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


IMAGES, LABELS = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"


def idx(_folder: Path) -> list[Damage]:
    def change(name: str, what: Callable[[bytes], bytes]) -> Callable[[Path], object]:
        return lambda d: (d / name).write_bytes(gzip.compress(what(gzip.decompress((d / name).read_bytes())), 1))

    def raw(name: str, what: Callable[[bytes], bytes]) -> Callable[[Path], object]:
        return lambda d: (d / name).write_bytes(what((d / name).read_bytes()))

    return [
        Damage("gzip with garbage after it", raw(LABELS, lambda c: c + b"garbage"), (LABELS,)),
        Damage("gzip of gzip", raw(LABELS, gzip.compress), (LABELS,)),
        Damage("not packed, but .gz", raw(LABELS, gzip.decompress), (LABELS,)),
        Damage("little-endian header", change(LABELS, lambda c: c[:8][::-1] + c[8:]), (LABELS,)),
        Damage("floats", change(IMAGES, lambda c: b"\0\0\x0d\x03" + c[4:]), (IMAGES,)),
        Damage("one byte too many", change(IMAGES, lambda c: c[:16] + b"\0" + c[16:]), (IMAGES,)),
        Damage(
            "labels all the same", change(LABELS, lambda c: c[:8] + bytes(len(c) - 8)), ("no image of the classes",)
        ),
        Damage("zeros after gzip", raw(LABELS, lambda c: c + bytes(512)), ()),
        Damage("two members of gzip", lambda d: two_members(d / LABELS), ()),
        Damage("unpacked", lambda d: unpacked(d / IMAGES), ()),
    ]


def two_members(path: Path) -> None:
    content = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(content[:5000]) + gzip.compress(content[5000:]))


def unpacked(path: Path) -> None:
    path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
    path.unlink()


def text(folder: Path) -> list[Damage]:
    name = first(folder, "train*.txt").name
    words = (folder / name).read_text("utf-8")

    def as_bytes(content: bytes) -> Callable[[Path], object]:
        return lambda d: (d / name).write_bytes(content)

    return [
        Damage("a page of HTML", as_bytes(b"<!DOCTYPE html>\n<html><title>403</title></html>"), (name,)),
        Damage("pointer of Git LFS", as_bytes(POINTER), (name,)),
        Damage("blank line at the end", as_bytes(words.encode() + b"\n\n"), ()),
        Damage("mixed line endings", as_bytes(words.replace("\n", "\r\n", 50).encode()), (name,)),
        Damage("NUL in text", as_bytes(words.encode() + b"a\0b"), (name,)),
        Damage("mark in the middle", as_bytes(words.encode() + b"\xef\xbb\xbf" + words.encode()), (name,)),
        Damage("decoded twice", as_bytes(words.encode().decode("latin-1").encode()), (name,)),
        Damage("only blanks", as_bytes(b" \n\t" * 500), (name,)),
        Damage("terminal escapes", as_bytes(words.encode() + b"\x1b[31mred\x1b[0m" * 20), (name,)),
        Damage("UTF-32", as_bytes(words.encode("utf-32")), (name,)),
        Damage("surrogates", as_bytes(words.encode() + b"\xed\xa0\x80"), (name,)),
        Damage("a PDF", as_bytes(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + noise(900)), (name,)),
        Damage("gzip with garbage", lambda d: append(first(d, "*.gz"), b"garbage"), (".gz",)),
        Damage("CRLF throughout", as_bytes(words.replace("\n", "\r\n").encode()), ()),
        Damage("emoji and Chinese", as_bytes(("漢字 😀 " * 3000).encode()), ()),
        Damage("hidden files", lambda d: [(d / n).write_bytes(b"\0\1") for n in (".DS_Store", "Thumbs.db")], ()),
    ]


def append(path: Path, content: bytes) -> None:
    path.write_bytes(path.read_bytes() + content)


def table(_folder: Path) -> list[Damage]:
    def rows(change: Callable[[str], str]) -> Callable[[Path], object]:
        return lambda d: (d / "train.csv").write_bytes(change((d / "train.csv").read_text()).encode())

    return [
        Damage("written twice", rows(lambda t: t + t.partition("\n")[2]), ("train.csv",)),
        Damage("joined with its header", rows(lambda t: t + t), ("line 502",)),
        Damage("row of totals", rows(lambda t: t + "Total\n"), ("line 502",)),
        Damage("decimal comma", rows(lambda t: t.replace("4,28,", "4,28,5,")), ("line 6",)),
        Damage("page of HTML", rows(lambda _: "<!DOCTYPE html><html></html>\n"), ("train.csv",)),
        Damage("blanks in the header", rows(lambda t: t.replace("id,age,city", "id, age, city")), ()),
        Damage("semicolons in one row", rows(lambda t: t.replace("4,28,city4", "4;28;city4")), ("line 6",)),
        Damage("mixed line endings", rows(lambda t: t.replace("\n", "\r\n", 9)), ("train.csv",)),
        Damage("open quotation mark", rows(lambda t: t.replace("city4", '"city4', 1)), ("train.csv",)),
        Damage("no header", rows(lambda t: t.partition("\n")[2]), ("train.csv",)),
        Damage("column twice", rows(lambda t: t.replace("id,age,city", "id,age,age")), ("train.csv",)),
        Damage("column without a name", rows(lambda t: t.replace("id,age,city", "id,age,")), ("train.csv",)),
        Damage("comma at each end", rows(lambda t: t.replace("\n", ",\n").replace("city,\n", "city\n")), ("line 2",)),
        Damage(
            "UTF-16", lambda d: (d / "train.csv").write_text((d / "train.csv").read_text(), "utf-16"), ("train.csv",)
        ),
        Damage(
            "rows of train in test",
            lambda d: append(d / "test.csv", b"".join((d / "train.csv").read_bytes().splitlines(True)[200:240])),
            ("test.csv",),
        ),
        Damage("NUL", rows(lambda t: t.replace("city3", "ci\0ty3", 1)), ("train.csv",)),
        Damage("lock file of a spreadsheet", lambda d: (d / "~$train.xlsx").write_bytes(noise(165)), ()),
        Damage("quoted commas and lines", rows(lambda t: t.replace("city4", '"ci,\nty4"')), ()),
        Damage("CRLF throughout", rows(lambda t: t.replace("\n", "\r\n")), ()),
        Damage("no line end at the end", rows(lambda t: t.rstrip("\n")), ()),
    ]


def make_zip(path: Path) -> None:
    """Write images of two classes into one zip."""
    with zipfile.ZipFile(path, "w") as packed:
        for split, count in (("train", 12), ("val", 4)):
            for name in ("ant", "bee"):
                for number in range(count):
                    packed.writestr(f"set/{split}/{name}/{number}.png", png(rows(40, seed=hash((split, name, number)))))


def zipped(_path: Path) -> list[Damage]:
    def entry(name: str, content: bytes = b"x") -> Callable[[Path], object]:
        def harm(path: Path) -> None:
            with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(path, "a") as packed:  # of a name twice
                packed.writestr(name, content)

        return harm

    def backslashes(path: Path) -> None:
        with zipfile.ZipFile(path) as packed:
            entries = {each.filename: packed.read(each) for each in packed.infolist()}
        with zipfile.ZipFile(path, "w") as packed:
            for name, content in entries.items():
                packed.writestr(name.replace("/", "\\"), content)

    def flip(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[len(content) // 3] ^= 0xFF
        path.write_bytes(content)

    return [
        Damage("a name that is a bomb", entry("set/train/ant/" + "a" * 60_000 + ".png"), ("aaaa",)),
        Damage("a name twice", entry("set/train/ant/0.png", png(rows(40, seed=99))), ("0.png",)),
        Damage("backslashes", backslashes, ("\\",)),
        Damage("a changed byte", flip, (".png",)),
        Damage("leads out by a backslash", entry("..\\out.png"), ("out.png",)),
        Damage("a drive", entry("C:/out.png"), ("C:",)),
        Damage("control characters", entry("set/train/ant/\x1b[31m.png", b"no picture"), ("[31m",)),
        Damage("Apple's double", entry("__MACOSX/set/train/ant/._0.png", b"\0\5\x16\7"), ()),
        Damage("hidden files", entry("set/train/ant/.DS_Store", b"\0\1"), ()),
    ]


def make_batches(folder: Path) -> None:
    """Write CIFAR-10's files as numpy 2 and Python 3 write them. This form differs from the published one."""
    import numpy as np

    folder.mkdir()
    for number, name in enumerate([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]):
        pixels = np.frombuffer(noise(40 * 3072, number), np.uint8).reshape(40, 3072)
        (folder / name).write_bytes(pickle.dumps({b"data": pixels, b"labels": [n % 10 for n in range(40)]}))
    (folder / "batches.meta").write_bytes(pickle.dumps({b"label_names": [b"c%d" % n for n in range(10)]}))


def cifar(_folder: Path) -> list[Damage]:
    import numpy as np

    def batch(change: Callable[[dict[bytes, Any]], object]) -> Callable[[Path], object]:
        def harm(folder: Path) -> None:
            content = pickle.loads((folder / "data_batch_2").read_bytes())
            change(content)
            (folder / "data_batch_2").write_bytes(pickle.dumps(content))

        return harm

    here = ("data_batch_2",)
    return [
        Damage("floats", batch(lambda c: c.update({b"data": c[b"data"].astype(np.float32)})), here),
        Damage("another shape", batch(lambda c: c.update({b"data": c[b"data"].reshape(40, 32, 32, 3)})), here),
        Damage("label 10", batch(lambda c: c[b"labels"].__setitem__(3, 10)), here),
        Damage("labels of numpy", batch(lambda c: c.update({b"labels": np.array(c[b"labels"])})), here),
        Damage(
            "a batch twice",
            lambda d: (d / "data_batch_2").write_bytes((d / "data_batch_3").read_bytes()),
            ("equal", "train"),
        ),
        Damage("swapped with the test", lambda d: swap(d / "data_batch_1", d / "batches.meta"), ("data_batch_1",)),
        Damage("readme.html", lambda d: (d / "readme.html").write_text("<html>"), ()),
    ]


def make_parquet(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    for split, count in (("train", 400), ("test", 80)):
        columns = {
            "id": pa.array(range(count), pa.int64()),
            "age": pa.array([n % 90 for n in range(count)], pa.int32()),
        }
        pq.write_table(pa.table(columns), folder / f"{split}.parquet", row_group_size=100)


def parquets(_folder: Path) -> list[Damage]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def zeroed(path: Path) -> None:
        content = path.read_bytes()
        path.write_bytes(content[:4] + bytes(600) + content[604:])

    return [
        Damage("truncated", lambda d: cut(d / "train.parquet"), ("train.parquet",)),
        Damage("zeros in it", lambda d: zeroed(d / "train.parquet"), ("train.parquet",)),
        Damage(
            "a part lost",
            lambda d: (d / "train.parquet").write_bytes(b"PAR1" + (d / "train.parquet").read_bytes()[900:]),
            ("train.parquet",),
        ),
        Damage(
            "another type",
            lambda d: pq.write_table(pa.table({"id": [1], "age": ["old"]}), d / "test.parquet"),
            ("test.parquet",),
        ),
        Damage("a CSV", lambda d: (d / "test.parquet").write_text("id,age\n1,2\n"), ("test.parquet",)),
        Damage(
            "no rows",
            lambda d: pq.write_table(
                pa.table({"id": pa.array([], pa.int64()), "age": pa.array([], pa.int32())}), d / "test.parquet"
            ),
            ("test.parquet",),
        ),
        Damage(
            "gzip inside",
            lambda d: pq.write_table(pq.read_table(d / "test.parquet"), d / "test.parquet", compression="gzip"),
            (),
        ),
    ]
