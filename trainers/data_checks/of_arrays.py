"""The checks of MNIST's IDX files and of CIFAR-10's batches: files, counts, labels, and equal images."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Iterable
from typing import IO

from . import archive, cifar, idx, listing
from .data import Data, TooSlow
from .findings import DataError, Severity
from .names import locate
from .source import CHUNK

BROKEN_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)


def check_idx(data: Data) -> None:
    data.card.unit = "images"
    listing.packed(data, lambda path: not path.endswith(".gz"))
    with data.findings.catching("missing_file"):
        paths = locate(data.by_path, idx.FILES, "the drop")
        if _empty(data, paths):
            return
        images = Images(data)
        for split, name in (("train", "train"), ("test", "t10k")):
            _pair(data, images, split, paths[f"{name}-images-idx3-ubyte"], paths[f"{name}-labels-idx1-ubyte"])
        images.compare()


def _empty(data: Data, paths: dict[str, str]) -> bool:
    """Return whether there is nothing to read: files are empty, or only their list is there."""
    ours = set(paths.values())
    listing.empty_files(data, Severity.REFUSE, lambda path: path in ours)
    return data.only_list or any(not data.by_path[path].size for path in ours)


def _pair(data: Data, images: Images, split: str, images_path: str, labels_path: str) -> None:
    found = data.findings
    counted = labels = None
    with found.catching("idx"):
        counted = _images(data, images, split, images_path)
    with found.catching("idx"):
        labels = _labels(data, labels_path)
    if labels is None:
        return
    if counted is not None:
        with found.catching("idx"):
            idx.check_pair(labels_path, len(labels), counted, images_path.rpartition("/")[2])
    with found.catching("label"):
        idx.check_label(labels_path, max(labels), labels.index(max(labels)))
    _classes(data, split, labels, [str(number) for number in range(idx.CLASSES)])


def _images(data: Data, images: Images, split: str, path: str) -> int:
    """Return the number of images, and remember a hash of each."""
    size = idx.SIDE * idx.SIDE
    with _unpacked(data, path) as file:
        try:
            count = idx.count(path, file.read(idx.HEADER + 8), (idx.SIDE, idx.SIDE))
            read = 0
            while piece := file.read(min(CHUNK // size * size, count * size + 1 - read)):
                if data.late():
                    raise TooSlow
                read += len(piece)
                images.add(split, piece, size)
        except BROKEN_GZIP as error:
            raise DataError(f"{path}: expected a complete gzip file, found a damaged one: {error}") from error
    idx.check_length(path, read, (count, idx.SIDE, idx.SIDE))
    return count


def _labels(data: Data, path: str) -> bytes:
    with _unpacked(data, path) as file:
        try:
            count = idx.count(path, file.read(idx.HEADER), ())
            labels = file.read(count + 1)
        except BROKEN_GZIP as error:
            raise DataError(f"{path}: expected a complete gzip file, found a damaged one: {error}") from error
    idx.check_length(path, len(labels), (count,))
    return labels


def _unpacked(data: Data, path: str) -> IO[bytes]:
    stream = archive.stream(data.source, path, data.by_path[path].size)
    return gzip.GzipFile(fileobj=stream) if path.endswith(".gz") else stream  # type: ignore[return-value]


def _classes(data: Data, split: str, labels: Iterable[int], names: list[str]) -> None:
    """Describe the classes of a split, and find those without an image."""
    counts = Counter(labels)
    classes = {name: counts[number] for number, name in enumerate(names)}
    data.card.count(split, classes)
    if lacking := [name for name, count in classes.items() if not count]:
        data.findings.warn("no_class", f"{split} has no image of the classes:", lacking)
    listing.balance(data, split, classes)


class Images:
    """The images of a data set by a hash of their bytes, to find equal ones and blank ones."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self._first: dict[int, tuple[str, int]] = {}
        self._counts: Counter[str] = Counter()
        self._across: list[str] = []
        self._within: list[str] = []
        self._blank: list[str] = []
        self._number = Counter[str]()

    def add(self, split: str, content: bytes, size: int) -> None:
        """Add the images of a split, `size` bytes each; an incomplete one at the end is left out."""
        blank = bytes(size)
        for start in range(0, len(content) - size + 1, size):
            image, number = content[start : start + size], self._counts[split]
            self._counts[split] += 1
            if image == blank:
                self._blank.append(f"{split} {number}")
                continue
            first = self._first.setdefault(hash(image), (split, number))
            if first != (split, number):
                same = self._across if first[0] != split else self._within
                same.append(f"{split} {number} = {first[0]} {first[1]}")

    def compare(self) -> None:
        """Report equal and blank images, which have numbers from 0."""
        data = self._data
        data.card.duplicates = {"within": len(self._within), "across": len(self._across)}
        total = sum(self._counts.values())
        data.card.read = f"All {total:,} images were read."
        if self._across:
            sentence = "The same image is in train and in test, so what is tested was also trained on:"
            data.findings.warn("leakage", sentence, self._across)
        if self._within:
            severity = data.findings.warn if len(self._within) > total / 1000 else data.findings.note
            severity("duplicates", "Images are equal:", self._within)
        if self._blank:
            data.findings.warn("blank", "All bytes of images are zero:", self._blank)


def check_cifar(data: Data) -> None:
    data.card.unit = "images"
    listing.packed(data)
    with data.findings.catching("missing_file"):
        paths = locate(data.by_path, cifar.FILES, "the drop")
        if _empty(data, paths):
            return
        names: list[str] | None = None
        with data.findings.catching("batch"):
            names = cifar.class_names(paths[cifar.META], _content(data, paths[cifar.META]))
        names = names or [str(number) for number in range(cifar.CLASSES)]
        images = Images(data)
        for split, keys in (("train", cifar.TRAIN), ("test", (cifar.TEST,))):
            labels: list[int] = []
            for key in keys:
                with data.findings.catching("batch"):
                    batch = cifar.batch(paths[key], _content(data, paths[key]), len(names))
                    labels += batch.labels
                    images.add(split, batch.content, cifar.VALUES)
            _classes(data, split, labels, names)
        images.compare()


def _content(data: Data, path: str) -> bytes:
    size = data.by_path[path].size
    cifar.check_size(path, size)
    if data.late():
        raise TooSlow
    return data.source.read(path, 0, size)
