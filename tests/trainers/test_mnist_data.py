"""The four IDX files: what is read from them, and the messages that refuse others."""

from __future__ import annotations

import gzip
import shutil
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from files import DataError, opened
from labelled import Images
from mnist import idx

IMAGES, LABELS = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"


@pytest.fixture
def folder(digits_folder: Path, tmp_path: Path) -> Path:
    """A copy of the digits that a test may damage."""
    return Path(shutil.copytree(digits_folder, tmp_path / "drop"))


def edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()))))


def read(data: Path) -> tuple[Images, Images]:
    with opened(data) as folder:
        return idx.read(folder)


def same(one: tuple[Images, Images], other: tuple[Images, Images]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(torch.equal(a.pixels, b.pixels) and torch.equal(a.labels, b.labels) for a, b in pairs)


def test_images_and_labels_are_read(digits_folder: Path) -> None:
    """Images are uint8 (N, 1, 28, 28) over the whole range, labels are int64, and both parts exist."""
    train, test = read(digits_folder)
    assert (train.pixels.shape, test.pixels.shape) == ((1437, 1, 28, 28), (360, 1, 28, 28))
    assert (train.pixels.dtype, train.labels.dtype) == (torch.uint8, torch.int64)
    assert (int(train.pixels.min()), int(train.pixels.max())) == (0, 255)
    assert set(test.labels.tolist()) == set(range(10))


def test_files_may_be_unpacked_renamed_and_deep(folder: Path) -> None:
    """The data is the same without .gz, with a dot in the name, in a sub-folder, and beside other files."""
    before = read(folder)
    deep = folder / "MNIST" / "raw"
    deep.mkdir(parents=True)
    for path in folder.glob("*.gz"):
        (deep / path.name.removesuffix(".gz").replace("-idx", ".idx")).write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    (folder / "job.yaml").write_text("inputs: {epochs: 2}\n")
    (folder / "_SUCCESS").touch()
    assert same(before, read(folder))


@pytest.mark.parametrize("kind", ["zip", "tar", "gztar"])
@pytest.mark.parametrize("given", ["file", "folder"])
def test_an_archive_is_as_good_as_a_folder(folder: Path, tmp_path: Path, kind: str, given: str) -> None:
    """A .zip, .tar or .tar.gz gives the same data, given by its path or as the only file of the folder apart from
    markers."""
    drop = tmp_path / "packed"
    drop.mkdir()
    archive = Path(shutil.make_archive(str(drop / "digits"), kind, root_dir=tmp_path, base_dir="drop"))
    (drop / "_SUCCESS").touch()
    assert same(read(folder), read(archive if given == "file" else drop))


def test_an_unpacked_archive_is_removed(folder: Path, tmp_path: Path) -> None:
    """The unpacked files of an archive are removed after use."""
    archive = Path(shutil.make_archive(str(tmp_path / "digits"), "zip", root_dir=folder))
    with opened(archive) as unpacked:
        assert (unpacked / IMAGES).exists()
    assert not unpacked.exists()


def header(*numbers: int) -> Callable[[bytes], bytes]:
    """Replace the first numbers of a file by these big-endian numbers."""
    return lambda content: struct.pack(f">{len(numbers)}I", *numbers) + content[4 * len(numbers) :]


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        (IMAGES, lambda c: c[:-5], "expected 1,126,608 bytes (1,437 x 28 x 28) after the header, found 1,126,603"),
        (IMAGES, lambda c: c + b"x", "after the header, found more"),
        (IMAGES, lambda c: c[:3], "expected a header of 16 bytes, found 3"),
        (LABELS, lambda c: b"", "expected a header of 8 bytes, found 0"),
        (IMAGES, header(0x00000801), "expected magic number 0x00000803, found 0x00000801"),
        (LABELS, header(0x1F8B0800), "expected magic number 0x00000801, found 0x1f8b0800"),
        (IMAGES, header(0x803, 1437, 8, 8), "expected images of 28 x 28 pixels, found 8 x 8"),
        (IMAGES, header(0x803, 0), "expected 1 to 1,000,000 items, found 0"),
        (IMAGES, header(0x803, 2**32 - 1), "expected 1 to 1,000,000 items, found 4,294,967,295"),
        (
            LABELS,
            lambda c: header(0x801, 1436)(c[:-1]),
            f"expected 1,437 labels, one per image of {IMAGES}, found 1,436",
        ),
        (LABELS, lambda c: c[:10] + b"\x0b" + c[11:], "expected labels 0 to 9, found 11 at 2"),
    ],
)
def test_a_broken_file_is_named(folder: Path, file: str, change: Callable[[bytes], bytes], message: str) -> None:
    """The error names the file, the expected content and the found content."""
    edit(folder / file, change)
    with pytest.raises(DataError) as error:
        read(folder)
    assert str(error.value) == f"{folder / file}: {message}" or str(error.value).endswith(message)
    assert str(error.value).startswith(f"{folder / file}: expected")


@pytest.mark.parametrize(
    "change", [lambda c: c[: len(c) // 2], lambda c: b"no gzip at all", lambda c: c[:99] + b"!" + c[100:]]
)
def test_a_broken_gzip_is_named(folder: Path, change: Callable[[bytes], bytes]) -> None:
    """A .gz that is truncated, altered, or not gzip at all is refused by name."""
    path = folder / IMAGES
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte\.gz: expected a complete gzip file"):
        read(folder)


def test_a_missing_file_is_named(folder: Path) -> None:
    """The error lists the files of a data set and the missing file."""
    (folder / LABELS).unlink()
    with pytest.raises(DataError, match=r"t10k-labels-idx1-ubyte, found no train-labels-idx1-ubyte$"):
        read(folder)


def test_two_data_sets_are_one_too_many(folder: Path) -> None:
    """Two complete sets in one folder are refused, not guessed between."""
    shutil.copytree(folder, folder.parent / "twice" / "a")
    shutil.copytree(folder, folder.parent / "twice" / "b")
    with pytest.raises(DataError, match=r"expected one data set, found 2: .*a, .*b"):
        read(folder.parent / "twice")


# --- archives that nobody should unpack ------------------------------------------------------------------------------


def tar_with(path: Path, *entries: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as tar:
        for entry in entries:
            tar.addfile(entry)
    return path


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


@pytest.mark.parametrize(
    "name", ["../evil", "a/../../evil", "/etc/evil", "C:/evil", "..\\evil", "\\\\host\\share\\evil"]
)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_names_that_lead_out_are_refused(tmp_path: Path, kind: str, name: str) -> None:
    """No member is written outside the folder, whichever system the name is meant for."""
    archive = tmp_path / "in" / f"evil.{kind}"
    archive.parent.mkdir()
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as zipped:
            zipped.writestr(name, "x")
    else:
        tar_with(archive, tarfile.TarInfo(name))
    with pytest.raises(DataError, match=r"expected names inside the archive, found .*evil', which points outside"):
        read(archive)
    assert [path.name for path in tmp_path.rglob("*evil*")] == [archive.name]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (link("a", "/etc/passwd"), "a link to '/etc/passwd'"),
        (link("a", "b", tarfile.LNKTYPE), "a link to 'b'"),
        (link("a", "", tarfile.CHRTYPE), "a device"),
    ],
)
def test_links_and_devices_are_refused(tmp_path: Path, entry: tarfile.TarInfo, words: str) -> None:
    """An archive may hold only files and folders; any other entry is named and refused."""
    with pytest.raises(DataError, match=f"expected files and folders only, found 'a', which is {words}"):
        read(tar_with(tmp_path / "links.tar", entry))


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    """A symbolic link that a zip stores in its mode bits counts as a link."""
    info = zipfile.ZipInfo("a")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "links.zip", "w") as zipped:
        zipped.writestr(info, "/etc/passwd")
    with pytest.raises(DataError, match="found 'a', which is a link"):
        read(tmp_path / "links.zip")


def test_an_archive_that_unfolds_too_far_is_stopped(tmp_path: Path) -> None:
    """Unpacking stops at the limit, by the bytes actually written and not by the size that the archive states."""
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("zeros", bytes(50_000_000))
    with (
        pytest.raises(DataError, match="expected at most 1,000,000 bytes of files, found more"),
        opened(tmp_path / "bomb.zip", max_bytes=1_000_000),
    ):
        pass


@pytest.mark.parametrize("name", ["digits.zip", "digits.tar", "digits.tar.gz"])
@pytest.mark.parametrize("content", [b"", b"not an archive", b"\x1f\x8b\x08\x00 cut"])
def test_a_broken_archive_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    """A file that is not an archive is refused by name, whatever its extension."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=f"{name}: expected a readable archive"):
        read(tmp_path / name)


def test_another_file_is_no_data_set(tmp_path: Path) -> None:
    """A single file of another kind is refused with the supported kinds."""
    (tmp_path / "digits.rar").touch()
    with pytest.raises(DataError, match=r"expected a folder or an archive \(\.zip, \.tar, \.tar\.gz, \.tgz\)"):
        read(tmp_path / "digits.rar")
