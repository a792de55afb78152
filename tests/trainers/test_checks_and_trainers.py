"""Data that passes a check can't fail in its trainer: each damage of `bench data_checks`, read whole by both.

A trainer reads here everything that it reads before and during a training: every file, with every picture decoded.
"""

from __future__ import annotations

import gzip
import shutil
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bert import text as bert_text
from cifar_elastic import batches
from data_checks.findings import Severity
from detection import data as detection_data
from detection import layouts
from files import DataError, opened
from mnist import idx as mnist_idx
from transfer import folder as transfer_folder

from benchmarks import _data_damage as damage
from benchmarks import _strange_boxes as strange_boxes
from benchmarks import _strange_pictures as strange_pictures
from benchmarks import _strange_tables as strange_tables
from benchmarks._data_damage import Damage
from tests.trainers.damaged import checked, words
from tests.trainers.launch import ROOT

COCO = ROOT.parent / "shared" / "data" / "coco-tiny"


def read_pictures(folder: Path) -> object:
    found = transfer_folder.find(folder)
    good = transfer_folder.without(found, transfer_folder._broken(found.train + found.val, 64, 2), 0.05)
    return good if good.val else transfer_folder.split(good, 0.2, 0)


def read_boxes(folder: Path) -> object:
    data = layouts.read(folder)
    for part in filter(None, (data.train, data.val)):
        for index in range(len(part)):
            detection_data.load(part, index)
    return data


def read_text(folder: Path) -> object:
    count = sum(1 for _ in bert_text.pieces(bert_text.text_files(folder)))
    if count < 2:
        raise DataError("nothing is left to train on")
    return count


def make_digits(folder: Path) -> None:
    folder.mkdir()
    for part, count in (("train", 6000), ("t10k", 100)):
        noise = np.random.default_rng(count).integers(1, 255, count * 784, np.uint8).tobytes()
        labels = bytes(number % 10 for number in range(count))
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(
            gzip.compress(struct.pack(">4I", 0x803, count, 28, 28) + noise, 1)
        )
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(struct.pack(">2I", 0x801, count) + labels))


def make_archive(path: Path) -> None:
    strange_tables.make_batches(path.parent / "batches")
    with tarfile.open(path, "w:gz") as tar:
        tar.add(path.parent / "batches", "cifar-10-batches-py")


def copy_coco(folder: Path) -> None:
    if not COCO.exists():
        pytest.skip("needs coco-tiny in ../shared/data, which is no part of this repository")
    shutil.copytree(COCO, folder)


Case = tuple[str, Callable[[Path], None], Callable[[Path], object], Callable[[Path], list[Damage]], str]
CASES: dict[str, Case] = {
    "transfer": ("image_folder", damage.make_images, read_pictures, damage.image_folder, "whole"),
    "transfer, strange": ("image_folder", damage.make_images, read_pictures, strange_pictures.images, "whole"),
    "transfer, zip": ("image_folder", strange_pictures.make_zip, read_pictures, strange_pictures.zipped, "set.zip"),
    "detection, COCO": ("detection", copy_coco, read_boxes, damage.coco, "whole"),
    "detection, strange COCO": ("detection", copy_coco, read_boxes, strange_boxes.coco, "whole"),
    "detection, VOC": ("detection", damage.make_voc, read_boxes, damage.voc, "whole"),
    "detection, strange VOC": ("detection", damage.make_voc, read_boxes, strange_boxes.voc, "whole"),
    "detection, CSV": ("detection", strange_boxes.make_boxes, read_boxes, strange_boxes.boxes, "whole"),
    "mnist": ("idx", make_digits, mnist_idx.read, damage.idx, "whole"),
    "mnist, strange": ("idx", make_digits, mnist_idx.read, strange_tables.idx, "whole"),
    "cifar_elastic": ("cifar", make_archive, batches.read, damage.cifar, "set.tar.gz"),
    "cifar_elastic, strange": ("cifar", strange_tables.make_batches, batches.read, strange_tables.cifar, "whole"),
    "bert": ("text", damage.make_text, read_text, damage.text, "whole"),
    "bert, strange": ("text", damage.make_text, read_text, strange_tables.text, "whole"),
}


def copied(source: Path, target: Path) -> Path:
    shutil.rmtree(target.parent, ignore_errors=True)
    target.parent.mkdir()
    if source.is_dir():
        return Path(shutil.copytree(source, target, symlinks=True))
    return Path(shutil.copyfile(source, target))


def failure(data: Path, read: Callable[[Path], Any]) -> str:
    """Return why the trainer can't read the data, or ''."""
    try:
        with opened(data) as folder:
            read(folder)
    except (DataError, OSError) as error:  # the system's own: a name too long, a link to nothing
        return str(error)[:300]
    return ""


@pytest.mark.parametrize("name", CASES)
def test_what_passes_a_check_does_not_fail_in_the_trainer(tmp_path: Path, name: str) -> None:
    """For each damage, the check refuses the data, or the trainer can read all of it."""
    kind, make, read, damages, file = CASES[name]
    whole = tmp_path / file
    make(whole)
    assert not failure(whole, read)
    assert checked(whole, kind).verdict is not Severity.REFUSE
    failed = 0
    for harm in damages(whole):
        data = copied(whole, tmp_path / "damaged" / file)
        harm.harm(data)
        result, why = checked(data, kind), failure(data, read)
        failed += bool(why)
        assert not why or result.verdict is Severity.REFUSE, f"{harm.label}: {why}\n{words(result)}"
    assert failed, "no damage reached the trainer"
