"""The checks of data: they name damage, and undamaged data passes."""

from __future__ import annotations

import gzip
import pickle
import shutil
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_checks import card, pictures, sample
from data_checks.check import Task, check
from data_checks.data import Settings, Unfinished
from data_checks.findings import Severity
from data_checks.kinds import KINDS, declared_by, problem
from data_checks.source import Folder
from PIL import Image

from tests.trainers.damaged import Damage, checked, codes, cut, kept, move, picture, words
from tests.trainers.launch import ROOT, TRAINERS

DATA = ROOT.parent / "shared" / "data"
PUBLISHED = {
    "image_folder": DATA / "hymenoptera_data",
    "detection": DATA / "coco-tiny",
    "idx": DATA / "mnist",
    "cifar": DATA / "cifar-10-small-python.tar.gz",
}


@pytest.mark.parametrize("kind", PUBLISHED)
@pytest.mark.parametrize("whole", [True, False])
def test_published_data_passes(kind: str, whole: bool) -> None:
    """No published data set is refused, whether it is read whole or by ranges."""
    if not PUBLISHED[kind].exists():
        pytest.skip(f"needs {PUBLISHED[kind].name} in ../shared/data, which is no part of this repository")
    result = checked(PUBLISHED[kind], kind, whole)
    assert result.verdict is not Severity.REFUSE, words(result)
    assert {finding.code for finding in result.of(Severity.WARN)} <= {"type"}  # ants have a .gif that says "not found"
    assert sum(result.card.totals.values()) > 300


def test_noise_inside_a_jpeg_is_damage(tmp_path: Path) -> None:
    """A block of 4 KiB with bytes that no JPEG has in its pixels is damage; bytes after the end are not."""
    content = picture(tmp_path / "a.jpg", size=(200, 200)).read_bytes()
    middle = len(content) // 2
    block = np.random.default_rng(1).bytes(4096)
    damaged = content[:middle] + block + content[middle + 4096 :]
    assert "its pixels are damaged" in pictures.inspect(damaged, b"", len(content)).broken
    for whole in (content, content + block):
        assert not pictures.inspect(whole, b"", len(whole)).broken


def test_pictures_are_decoded_where_pillow_is(ants: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A TIFF without its last rows has a complete header; the card counts the pictures that were not decoded."""
    damaged = picture(ants / "train" / "ant" / "scan.tif", size=(90, 90))
    cut(damaged, 0.7)
    told = [check(Folder(ants), Task({"kind": "image_folder"}, Settings(decode=on))) for on in (False, True)]
    assert ["scan.tif" in words(each) for each in told] == [False, True]
    assert [each.card.read for each in told] == [
        "All 29 were read. The pixels of 29 of them were not decoded.",
        "All 29 were read.",
    ]
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert (
        "29 of them were not decoded"
        in check(Folder(ants), Task({"kind": "image_folder"}, Settings(decode=True))).card.read
    )


@pytest.fixture
def ants(tmp_path: Path) -> Path:
    """Folders train/ and val/ with two classes of 12 and 2 images."""
    for split, count in (("train", 12), ("val", 2)):
        for name in ("ant", "bee"):
            for number in range(count):
                picture(tmp_path / "drop" / split / name / f"{number:02}.jpg", number)
    return tmp_path / "drop"


FOLDERS: dict[str, tuple[Damage, str, str]] = {
    "cut": (lambda d: cut(d / "train/ant/00.jpg"), "broken", "train/ant/00.jpg: it is cut off"),
    "empty": (lambda d: (d / "val/bee/00.jpg").write_bytes(b""), "broken", "val/bee/00.jpg: it is empty"),
    "zeros": (lambda d: (d / "val/bee/00.jpg").write_bytes(bytes(900)), "broken", "it is not a picture but zero bytes"),
    "page": (lambda d: (d / "val/bee/00.jpg").write_text("<html>"), "broken", "a page of HTML"),
    "extension": (lambda d: move(picture(d / "train/ant/x.png"), d / "train/ant/x.jpg"), "extension", "x.jpg (PNG RGB"),
    "cmyk": (lambda d: picture(d / "train/ant/00.jpg", mode="CMYK"), "cmyk", "train/ant/00.jpg (JPEG CMYK"),
    "type": (lambda d: (d / "train/ant/notes.txt").write_text("x"), "type", "train/ant/notes.txt"),
    "zip": (lambda d: shutil.make_archive(str(d / "train/ant/more"), "zip", d / "val"), "archive_inside", "more.zip"),
    "leak": (lambda d: shutil.copy(d / "train/ant/00.jpg", d / "val/ant/00.jpg"), "leakage", "train/ant/00.jpg = val/"),
    "twice": (lambda d: shutil.copy(d / "train/ant/00.jpg", d / "train/ant/9.jpg"), "duplicates", "ant/9.jpg"),
    "label": (lambda d: shutil.copy(d / "train/ant/00.jpg", d / "train/bee/9.jpg"), "two_classes", "bee/9.jpg"),
    "case": (lambda d: picture(d / "train/Ant/00.JPG"), "case", "train/Ant/00.JPG and train/ant/00.jpg"),
    "emptied": (lambda d: shutil.rmtree(d / "train/ant"), "unknown_class", "val/ant"),
    "val class": (lambda d: shutil.rmtree(d / "val/ant"), "no_val_class", "ant"),
    "no val": (lambda d: shutil.rmtree(d / "val"), "no_val", "holds out"),
    "no train": (lambda d: shutil.rmtree(d / "train"), "splits", "val"),
    "validation": (lambda d: move(d / "val", d / "validation"), "unread_split", "validation"),
    "training": (
        lambda d: [move(d / a, d / b) for a, b in (("train", "training"), ("val", "test"))],
        "splits",
        "train",
    ),
    "one": (lambda d: kept(d / "train/ant", 1), "balance", "ant (1)"),
    "loose": (lambda d: picture(d / "train/loose.jpg"), "loose", "train/loose.jpg"),
    "tiny": (lambda d: picture(d / "train/ant/tiny.png", size=(2, 30)), "tiny", "train/ant/tiny.png (PNG RGB, 2 x 30)"),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_damage_of_image_folders_is_named(ants: Path, name: str) -> None:
    """The undamaged folder has no findings; each damage is found under its code, with the name of the file."""
    assert not checked(ants, "image_folder").findings
    damage, code, word = FOLDERS[name]
    damage(ants)
    result = checked(ants, "image_folder")
    assert code in codes(result), words(result)
    assert word in words(result)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"splits": ["train", "val"], "classes": ["ant", "bee"], "images": 12}, ""),
        ({"splits": ["train"]}, "Folders beside the declared splits are not checked: val."),
        (
            {"splits": ["train", "val", "test"]},
            "expected the splits train, val, test, found only train, val. Missing: test.",
        ),
        ({"classes": ["ant"]}, "expected only the classes ant, found also: bee."),
        ({"classes": ["ant", "bee", "cat"]}, "Declared classes are missing: cat."),
        ({"images": 13}, "expected at least 13 images of each class, found fewer of: ant (12), bee (12)."),
    ],
)
def test_splits_and_classes_may_be_declared(ants: Path, declared: dict[str, Any], said: str) -> None:
    assert problem({"kind": "image_folder", **declared}) == ""
    assert words(checked(ants, "image_folder", **declared)) == said


def test_splits_of_other_names_are_read_if_declared(ants: Path) -> None:
    """Three splits with custom names are counted, compared for leakage, and their pictures are read."""
    for old, new in (("train", "fit"), ("val", "tune")):
        move(ants / old, ants / new)
    shutil.copytree(ants / "tune", ants / "hold")
    cut(ants / "hold/bee/00.jpg")
    result = checked(ants, "image_folder", splits=["fit", "tune", "hold"])
    assert result.card.totals == {"fit": 24, "tune": 4, "hold": 4}
    assert set(codes(result)) == {"leakage", "broken"}
    assert "hold/ant/00.jpg = tune/ant/00.jpg" in words(result)


def test_few_broken_images_pass_as_the_trainer_says(ants: Path) -> None:
    """One broken image of 28 is below the trainer's 5 %, so the drop gets a warning; two are above, so it is
    refused."""
    cut(ants / "train/ant/00.jpg")
    assert codes(checked(ants, "image_folder"))["broken"] is Severity.WARN
    cut(ants / "train/ant/01.jpg")
    assert codes(checked(ants, "image_folder"))["broken"] is Severity.REFUSE


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "WEBP", "PPM"])
def test_what_pictures_say_is_what_pillow_reads(tmp_path: Path, kind: str) -> None:
    """Size and mode agree with Pillow, from the whole file and from header and end; half of the file is broken both
    times."""
    for number, size in enumerate([(1, 1), (37, 5), (300, 200)]):
        path = tmp_path / f"{number}.{kind.lower()}"
        picture(path, number, size)
        content = path.read_bytes()
        for head, tail in ((content, b""), (content[:64], content[-64:])):
            found = pictures.inspect(head, tail, len(content))
            if kind == "JPEG" and len(head) < len(content):
                continue  # 64 bytes hold no frame header
            assert (found.width, found.height, found.broken) == (*size, ""), found
            assert pictures.fits(path.name, found)
        half = content[: len(content) // 2]
        assert pictures.inspect(half, b"", len(half)).broken, (kind, size)


@pytest.mark.parametrize("mode", ["L", "CMYK", "RGB"])
@pytest.mark.parametrize("progressive", [True, False])
def test_modes_of_jpegs(tmp_path: Path, mode: str, progressive: bool) -> None:
    """The mode is that of the frame header, even with metadata before the header and bytes after the end."""
    path = tmp_path / "a.jpg"
    Image.new(mode, (50, 60)).save(path, progressive=progressive, exif=b"Exif\0\0" + bytes(5000))
    content = path.read_bytes() + b"after the end"
    assert pictures.inspect(content, b"", len(content)) == pictures.Picture("JPEG", mode, 50, 60)


def test_a_png_is_checked_by_its_sums(tmp_path: Path) -> None:
    """A changed byte in the pixels of a whole PNG is found by its checksum."""
    content = bytearray(picture(tmp_path / "a.png").read_bytes())
    content[len(content) // 2] ^= 1
    assert "check sum of its part 'IDAT'" in pictures.inspect(bytes(content), b"", len(content)).broken


def test_a_sample_says_what_it_may_have_missed() -> None:
    """The limit is that of Clopper and Pearson (0 of 300: 1 - 0.05^(1/300) = 0.994 %), and falls with the sample
    size."""
    assert sample.at_most(0, 300) == pytest.approx(1 - 0.05 ** (1 / 300), rel=1e-6)
    assert sample.at_most(5, 100) == pytest.approx(0.10225, rel=1e-3)  # R: binom.test(5, 100, alternative = "less")
    assert sample.sentence(0, 300, 92_000).startswith("300 of 92,000 were read: fewer than 1.0 % are damaged, with 95")
    names = [str(number) for number in range(1000)]
    assert sample.choose(names, 10, "a") == sample.choose(names[::-1], 10, "a") != sample.choose(names, 10, "b")


def test_a_long_check_goes_on(ants: Path) -> None:
    """A check that runs out of time returns what it read; the next check reads the rest, and finds the same."""
    cut(ants / "train/ant/00.jpg")
    for number in range(100):
        picture(ants / "train" / "ant" / f"more{number}.jpg", number)
    with pytest.raises(Unfinished) as error:
        check(Folder(ants), Task({"kind": "image_folder"}, late=lambda: True))
    assert 0 < len(error.value.known) < 128
    known = {path: each for path, each in error.value.known.items() if path != "train/ant/00.jpg"}
    later = check(Folder(ants), Task({"kind": "image_folder"}, known=known))
    assert later == checked(ants, "image_folder")


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """MNIST's four files with 30 and 20 images of noise."""
    folder = tmp_path / "digits"
    folder.mkdir()
    for part, count in (("train", 30), ("t10k", 20)):
        noise = np.random.default_rng(count).integers(1, 255, count * 784, np.uint8).tobytes()
        images = struct.pack(">4I", 0x803, count, 28, 28) + noise
        labels = struct.pack(">2I", 0x801, count) + bytes(number % 10 for number in range(count))
        for name, content in ((f"{part}-images-idx3-ubyte", images), (f"{part}-labels-idx1-ubyte", labels)):
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
    return folder


def edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()))))


TRAIN_IMAGES, TRAIN_LABELS = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"
TEST_LABELS = "t10k-labels-idx1-ubyte.gz"
DIGITS: dict[str, tuple[Damage, str, str]] = {
    "swapped": (lambda d: shutil.copy(d / TEST_LABELS, d / TRAIN_LABELS), "idx", "expected 30 labels"),
    "for images": (lambda d: shutil.copy(d / TRAIN_IMAGES, d / TRAIN_LABELS), "idx", "magic number 0x00000801"),
    "cut gzip": (lambda d: cut(d / TRAIN_IMAGES), "idx", "expected a complete gzip file"),
    "short": (lambda d: edit(d / TRAIN_IMAGES, lambda c: c[:-3]), "idx", "after the header, found 23,517"),
    "missing": (lambda d: (d / TRAIN_LABELS).unlink(), "missing_file", "found no train-labels-idx1-ubyte"),
    "label": (lambda d: edit(d / TRAIN_LABELS, lambda c: c[:-1] + b"\x0b"), "label", "found 11 at 29"),
    "class": (lambda d: edit(d / TRAIN_LABELS, lambda c: c[:8] + c[8:].replace(b"\x03", b"\x04")), "no_class", ": 3."),
    "leak": (
        lambda d: edit(d / TRAIN_IMAGES, lambda c: c[:-784] + gzip.decompress((d / T10K).read_bytes())[16:800]),
        "leakage",
        "test 0 = train 29",
    ),
    "blank": (lambda d: edit(d / TRAIN_IMAGES, lambda c: c[:-784] + bytes(784)), "blank", "train 29"),
}
T10K = "t10k-images-idx3-ubyte.gz"


@pytest.mark.parametrize("name", DIGITS)
def test_damage_of_idx_files_is_named(digits: Path, name: str) -> None:
    damage, code, word = DIGITS[name]
    before = checked(digits, "idx")
    assert before.verdict is Severity.WARN  # three images of a class are few
    assert set(codes(before)) == {"few"}
    damage(digits)
    result = checked(digits, "idx", whole=False)
    assert code in codes(result), words(result)
    assert word in words(result)


def test_cifar_is_checked_in_its_archive(tmp_path: Path) -> None:
    """A batch with too few labels, and a batch that calls a function, are named, in a folder and in an archive."""
    folder = tmp_path / "cifar"
    folder.mkdir()
    noise = np.random.default_rng(1).integers(0, 255, (6, 20, 3072), np.uint8)
    for name, content in zip([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"], noise, strict=True):
        batch = {b"data": content, b"labels": [number % 10 for number in range(20)]}
        (folder / name).write_bytes(pickle.dumps(batch, 2))
    (folder / "batches.meta").write_bytes(pickle.dumps({b"label_names": [b"c%d" % n for n in range(10)]}, 2))
    assert checked(folder, "cifar").verdict is not Severity.REFUSE
    (folder / "data_batch_2").write_bytes(pickle.dumps({b"data": noise[0], b"labels": [1]}, 2))
    (folder / "data_batch_3").write_bytes(pickle.dumps(print, 2))
    with tarfile.open(tmp_path / "set.tar.gz", "w:gz") as tar:
        tar.add(folder, "cifar-10-batches-py")
    for result in (checked(folder, "cifar"), checked(tmp_path / "set.tar.gz", "cifar", whole=False)):
        assert "data_batch_2: expected labels, a list of 20" in words(result)
        assert "data_batch_3: expected a pickled batch of CIFAR-10" in words(result)


def test_text_is_utf8_or_refused(tmp_path: Path) -> None:
    """A byte order mark is a warning, because the trainer skips it; another encoding, zero bytes and an incomplete
    gzip file are refused."""
    (tmp_path / "good.txt").write_text("Straße " * 9000, "utf-8")
    (tmp_path / "packed.txt.gz").write_bytes(gzip.compress(b"words " * 9000))
    assert not checked(tmp_path, "text").findings
    (tmp_path / "marked.txt").write_bytes(b"\xef\xbb\xbfwords")
    (tmp_path / "empty.txt").touch()
    assert codes(checked(tmp_path, "text")) == {"bom": Severity.WARN, "empty_file": Severity.WARN}
    (tmp_path / "latin.txt").write_bytes("Straße".encode("latin-1"))
    (tmp_path / "wide.txt").write_bytes("Straße".encode("utf-16"))
    (tmp_path / "zero.txt").write_bytes(b"words\0words")
    cut(tmp_path / "packed.txt.gz")
    shutil.make_archive(str(tmp_path / "more"), "zip", tmp_path, "good.txt")
    result = checked(tmp_path, "text")
    assert codes(result)["encoding"] is Severity.REFUSE
    for name in ("latin.txt", "wide.txt", "zero.txt", "packed.txt.gz", "more.zip"):
        assert name in words(result)


def test_little_text_is_refused(tmp_path: Path) -> None:
    """A text of only one piece is held out completely, so nothing is left to train on."""
    (tmp_path / "a.txt").write_text("words " * 100)
    assert "little_text" in codes(checked(tmp_path, "text"))


def test_an_archive_is_looked_into(ants: Path, tmp_path: Path) -> None:
    """A zip and a tar are checked like a folder; a nested archive, a link and a name that leads out are named."""
    cut(ants / "train/ant/00.jpg")
    shutil.copy(ants / "train/ant/01.jpg", ants / "val/ant/00.jpg")
    for kind in ("zip", "gztar", "tar"):
        packed = Path(shutil.make_archive(str(tmp_path / "ants"), kind, tmp_path, "drop"))
        result = checked(packed, "image_folder", whole=False)
        assert codes(result) == {"broken": Severity.WARN, "leakage": Severity.WARN}, (kind, words(result))
        assert result.card.totals == {"train": 24, "val": 4}
    with tarfile.open(tmp_path / "evil.tar", "w") as tar:
        tar.add(ants, "ants")
        tar.add(tmp_path / "ants.zip", "ants/ants.zip")
        link = tarfile.TarInfo("ants/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
        tar.addfile(tarfile.TarInfo("../out"))
    result = checked(tmp_path / "evil.tar", "image_folder")
    assert {"archive_inside", "entries"} <= codes(result).keys()
    assert "ants/link" in words(result)
    assert "../out" in words(result)
    cut(tmp_path / "ants.zip")
    assert codes(checked(tmp_path / "ants.zip", "image_folder")) == {"archive": Severity.REFUSE}


def test_each_trainer_declares_its_data() -> None:
    """data.json of each trainer names a kind; a wrong declaration is refused with the choices."""
    declared = {path.parent.name: declared_by(path.parent) for path in TRAINERS.glob("*/job.yaml")}
    assert {name: problem(each) for name, each in declared.items()} == dict.fromkeys(declared, "")
    assert {each["kind"] for each in declared.values()} <= KINDS.keys()
    assert "one of files, idx" in problem({"kind": "pictures"})
    assert "not an option of csv; options: columns" in problem({"kind": "csv", "colums": []})


def test_a_card_tells_what_changed(ants: Path) -> None:
    """The difference between two cards names classes, splits and duplicates."""
    before = checked(ants, "image_folder").card
    shutil.copy(ants / "train/ant/00.jpg", ants / "val/bee/09.jpg")
    (ants / "train/bee/00.jpg").unlink()
    after = checked(ants, "image_folder").card
    said = card.changes(before, after)
    assert "train bee: 12 -> 11 (-1)" in said
    assert "val bee: 2 -> 3 (+1)" in said
    assert "duplicates across: 0 -> 1 (+1)" in said
    assert not card.changes(after, after)


def test_many_files_are_named_by_the_first_ten(ants: Path) -> None:
    """A finding names ten files and counts the rest; names are printed without control characters."""
    for number in range(30):
        (ants / "train" / "ant" / f"{number}\x1b[31m.txt").write_text("x")
    (finding,) = checked(ants, "image_folder").of(Severity.WARN)[:1]
    assert (len(finding.names), finding.count) == (10, 30)
    assert "\x1b" not in str(finding)
    assert str(finding).endswith("and 20 more.")


def test_a_crafted_png_is_no_work() -> None:
    """A chunk that claims two gigabytes is cut off, and a picture of 100,000 x 100,000 pixels is too large."""
    head = b"IHDR" + struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))
    assert "cut off" in pictures.inspect(content + b"\x7f\xff\xff\xffIDAT", b"", len(content) + 8).broken
    end = b"\0\0\0\0IEND\xaeB`\x82"
    assert "more than Pillow decodes" in pictures.inspect(content, end, 10_000).broken


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    """Of a one-kilobyte zip that claims gigabytes of pictures, only the edges are read."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for name in ("train/a/1.png", "train/a/2.png", "train/b/1.png", "train/b/2.png"):
            packed.writestr(name, bytes(50_000_000))
    result = check(Folder(tmp_path / "a.zip"), Task({"kind": "image_folder"}, Settings(sample=4)))
    assert "it is not a picture but zero bytes" in words(result)
