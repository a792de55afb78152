"""Which damage the checks of data name, whether they refuse undamaged data, and what 100,000 files cost.

$ python3 trainyard.py bench data_checks
$ python3 trainyard.py bench data_checks --quick

Each damage is done to a fresh copy of a data set: of published sets where they are in ../shared/data, and of sets that
are made here. The copy is checked as `drop` checks a folder, and again as the app checks a drop, by ranges and samples.
A damage counts as named if both checks name it. An undamaged set that is refused counts as false, and so does a set
with a harmless oddity, such as .DS_Store or names in upper case.

For the 100,000 files, a process of its own reads the list of a drop of so many pictures, packed as the closing listing
leaves it, and checks the drop as the app does, message after message. The storage is made up: a read takes 20 ms, about
that of a small read in Azure, and returns a picture that is made of its name. Among the files are equal ones in train
and val, which the check must find. --files takes another number of files. --json ends with one object.
"""

from __future__ import annotations

import hashlib
import json
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from benchmarks import _data_damage as damage
from benchmarks import _strange_boxes as strange_boxes
from benchmarks import _strange_pictures as strange_pictures
from benchmarks import _strange_tables as strange_tables
from benchmarks._data_damage import Damage
from benchmarks._options import options

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
LATENCY = 0.02  # seconds of a read
FILES = 100_000
QUICK_FILES = 20_000


class Set(NamedTuple):
    """A data set: how it is declared, where it is or how it is made, and its damages."""

    label: str
    declared: dict[str, Any]
    source: Path | Callable[[Path], None]
    damages: Callable[[Path], Sequence[Damage]]


SETS = (
    Set("ants and bees", {"kind": "image_folder"}, DATA / "hymenoptera_data", damage.image_folder),
    Set("coco-tiny", {"kind": "detection"}, DATA / "coco-tiny", damage.coco),
    Set("MNIST", {"kind": "idx"}, DATA / "mnist", damage.idx),
    Set("CIFAR-10", {"kind": "cifar"}, DATA / "cifar-10-small-python.tar.gz", damage.cifar),
    Set("leaves (made)", {"kind": "image_folder"}, damage.make_images, damage.image_folder),
    Set("VOC (made)", {"kind": "detection"}, damage.make_voc, damage.voc),
    Set("texts (made)", {"kind": "text"}, damage.make_text, damage.text),
    Set("tables (made)", {"kind": "csv", "columns": ["id", "age"]}, damage.make_table, damage.table),
    Set("strange leaves", {"kind": "image_folder"}, damage.make_images, strange_pictures.images),
    Set("strange coco-tiny", {"kind": "detection"}, DATA / "coco-tiny", strange_boxes.coco),
    Set("strange VOC", {"kind": "detection"}, damage.make_voc, strange_boxes.voc),
    Set("strange boxes", {"kind": "detection"}, strange_boxes.make_boxes, strange_boxes.boxes),
    Set("strange MNIST", {"kind": "idx"}, DATA / "mnist", strange_tables.idx),
    Set("strange CIFAR-10", {"kind": "cifar"}, strange_tables.make_batches, strange_tables.cifar),
    Set("strange texts", {"kind": "text"}, damage.make_text, strange_tables.text),
    Set("strange tables", {"kind": "csv", "columns": ["id", "age"]}, damage.make_table, strange_tables.table),
    Set(
        "strange Parquet",
        {"kind": "parquet", "columns": ["id", "age"]},
        strange_tables.make_parquet,
        strange_tables.parquets,
    ),
    Set("strange.zip", {"kind": "image_folder"}, strange_pictures.make_zip, strange_pictures.zipped),
)
QUICK = {"MNIST", "CIFAR-10", "strange MNIST"}  # their damages take a second each, so --quick tries every third


def main(argv: list[str]) -> int:
    parser = options(__doc__, "a third of MNIST's and CIFAR's damages, and 20,000 files")
    parser.add_argument("--files", type=int, default=0, help="of the large drop, such as 1000000")
    parser.add_argument("--measure", type=int, default=0, help="only check a drop of so many files, and print the cost")
    args = parser.parse_args(argv)
    if args.measure:
        print(json.dumps(measured(args.measure)))
        return 0
    injected, missed, false = [], [], []
    for each in SETS:
        done, unnamed, refused = tried(each, args.quick)
        injected += done
        missed += unnamed
        false += refused
    cost = in_process(args.files or (QUICK_FILES if args.quick else FILES))
    for line in (*missed, *false):
        print(line)
    told = {"injected": len(injected), "named": len(injected) - len(missed), "false": len(false), **cost}
    print(f"{cost['files']:,} files: {cost['seconds']} s and {cost['peak_mib']} MiB for the process at most")
    print(json.dumps(told) if args.json else f"{told['named']} of {told['injected']} named, {told['false']} false")
    return int(bool(missed or false))


def tried(each: Set, quick: bool) -> tuple[list[str], list[str], list[str]]:
    """Return the damages that were tried, those that were not named, and the set if it is refused undamaged."""
    if isinstance(each.source, Path) and not each.source.exists():
        print(
            f"{each.label:16} skipped: {each.source.name} is not in ../shared/data, which is no part of this repository"
        )
        return [], [], []
    with tempfile.TemporaryDirectory() as home:
        single = isinstance(each.source, Path) and each.source.is_file()
        whole = Path(home, each.source.name if single else each.label if each.label.endswith(".zip") else "whole")  # type: ignore[union-attr]
        if isinstance(each.source, Path):
            copied(each.source, whole)
        else:
            each.source(whole)
        false = [f"{each.label}: refused undamaged: {text}" for text in sentences(whole, each, only="refuse")]
        warned = len(sentences(whole, each, only="warn"))
        chosen = list(each.damages(whole))[:: 3 if quick and each.label in QUICK else 1]
        missed = []
        for harm in chosen:
            target = Path(home, "damaged", whole.name)
            shutil.rmtree(target.parent, ignore_errors=True)
            target.parent.mkdir()
            copied(whole, target)
            harm.harm(target)
            for way in (True, False):
                if not harm.names:
                    false += [f"{each.label}: {harm.label}: {text}" for text in sentences(target, each, way, "refuse")]
                elif not any(name in text for text in sentences(target, each, way) for name in harm.names):
                    missed.append(f"{each.label}: {harm.label} is not named {'whole' if way else 'by ranges'}")
                    break
    injected = [f"{each.label}: {harm.label}" for harm in chosen if harm.names]
    odd = f", {len(chosen) - len(injected)} harmless tried" if len(chosen) > len(injected) else ""
    named = len(injected) - len(missed)
    print(f"{each.label:17} {named} of {len(injected)} named; {warned} warnings undamaged{odd}")
    return injected, missed, false


def copied(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copyfile(source, target)


def sentences(folder: Path, each: Set, whole: bool = True, only: str = "") -> list[str]:
    """Return the findings of a check, as sentences."""
    from trainers.data_checks.check import Task, check
    from trainers.data_checks.source import Folder

    result = check(Folder(folder, 1 << 40 if whole else 0), Task(each.declared))
    return [str(finding) for finding in result.findings if only in ("", finding.severity)]


def in_process(files: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.data_checks", "--measure", str(files)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(ran.stdout))


@dataclass
class MadeUp:
    """Storage whose blobs are pictures made of their names. It keeps what was written last."""

    reads: int = 0
    written: bytes = b""

    def read_from(self, _container: str, name: str, offset: int, limit: int) -> bytes:
        time.sleep(LATENCY)
        self.reads += 1
        return picture(name)[offset : offset + limit]

    def read(self, _container: str, _name: str, _limit: int) -> bytes:
        return self.written

    def write(self, _container: str, _name: str, data: bytes, _type: str) -> None:
        self.written = data

    def remove(self, *_: object) -> None:
        return


def picture(name: str) -> bytes:
    """Return a PNG of 32 x 32 pixels."""
    noise = bytearray(hashlib.shake_128(name.encode()).digest(32 * 97))
    noise[::97] = bytes(32)  # the filter of each row
    parts = [(b"IHDR", struct.pack(">2I5B", 32, 32, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(noise, 1)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in parts
    )


def measured(files: int) -> dict[str, Any]:
    """Check a drop of so many pictures as the app does; return seconds and the process's largest memory.

    Each picture in val whose number 700 divides is also in train.
    """
    from shared.data_checks.at_sealing import before_sealing
    from shared.jobs.data_rule import DataRule
    from shared.kernel.drop_key import DropKey
    from shared.kernel.storage import Blob
    from shared.runs.data import PackedListing
    from shared.runs.features import Closing, Opinion

    listing, size = PackedListing(), len(picture("x"))
    for split, first in (("train", 1), ("val", 0)):
        for number in range(files):
            if (number % 7 == 0) is (first == 0):
                name = f"images/many/{split}/class{number % 50:03}/image_{number:07}.png"
                same = (
                    name
                    if first or number % 700
                    else f"images/many/train/class{(number + 1) % 50:03}/image_{number + 1:07}.png"
                )
                listing.add(Blob(name, f"0x8DC{number:012X}", size, hashlib.md5(same.encode()).hexdigest()))
    route = SimpleNamespace(data=DataRule(declared={"kind": "image_folder"}), trainer="")
    blobs, messages, opinion = MadeUp(), 0, Opinion(later="not begun")
    ports = SimpleNamespace(blobs=blobs, clock=lambda: datetime.now(UTC), trainers=Path())
    closing = Closing(DropKey("images", "many"), route, "images/many-1", listing.rows(), False)  # type: ignore[arg-type]
    began, cpu = time.perf_counter(), time.process_time()
    while opinion.later:
        opinion = before_sealing(ports, replace(closing, checking=closing.folder if messages else ""))
        messages += 1
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    assert not opinion.refused, opinion.refused
    duplicates = json.loads(blobs.written)["card"]["duplicates"]
    assert duplicates == {"within": 0, "across": -(-files // 700)}, duplicates
    peak = peak_kib() / 1024
    told = {
        "files": files,
        "messages": messages,
        "reads": blobs.reads,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
    }
    return {**told, "seconds_100k": round(seconds * FILES / files, 1), "peak_mib": round(peak)}


def peak_kib() -> int:
    """Return the largest memory of this process. getrusage would count that of the process which started this one."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
