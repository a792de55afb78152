"""Unusual damage of digits, texts, tables, CIFAR-10 and Parquet for `bench data_checks`, and harmless oddities without
names.
"""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._data_damage import Damage, cut, first, swap
from benchmarks._strange_pictures import POINTER, append, noise

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
