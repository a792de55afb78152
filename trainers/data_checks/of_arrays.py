"""The checks of MNIST's IDX files and of CIFAR-10's batches: files, counts, labels, and equal images."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import IO, Any

from . import archive, cifar, idx, listing
from .data import Data, TooSlow
from .findings import NAMED, DataError, Severity
from .hashes import Hashes, one_in, unpacked
from .names import locate
from .source import CHUNK, File

Json = dict[str, Any]

COMPARED = (
    384 << 20
)  # bytes of images that are all compared, half a million of MNIST's; of more, one in two, three, ...
BROKEN_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)


def check_idx(data: Data) -> None:
    data.card.unit = "images"
    listing.packed(data, lambda path: not path.endswith(".gz"))
    with data.findings.catching("missing_file"):
        paths = locate([file.path for file in data.files], idx.FILES, "the drop")
        if _empty(data, paths):
            return
        every = one_in(map(data.file, paths.values()), COMPARED)
        images = {path for name, path in paths.items() if "images" in name}
        known = data.read(
            sorted(paths.values()), lambda file: _facts(data, file, every if file.path in images else 0), at_once=1
        )
        compared = Images(data, every)
        for split, name in (("train", "train"), ("test", "t10k")):
            of_images, of_labels = paths[f"{name}-images-idx3-ubyte"], paths[f"{name}-labels-idx1-ubyte"]
            _pair(data, split, (of_images, known[of_images]), (of_labels, known[of_labels]))
            compared.add(split, known[of_images])
        compared.compare()


def _empty(data: Data, paths: dict[str, str]) -> bool:
    """Return whether there is nothing to read: files are empty, or only the file list is available."""
    ours = set(paths.values())
    listing.empty_files(data, Severity.REFUSE, lambda path: path in ours)
    return data.only_list or any(not data.file(path).size for path in ours)


def _facts(data: Data, file: File, every: int) -> Json:
    """Return the content of an IDX file (images, of which one in `every` is compared, or labels), or why the file
    can't be read."""
    try:
        return _images(data, file, every) if every else _labels(data, file)
    except DataError as error:
        return {"error": str(error)}


def _pair(data: Data, split: str, images: tuple[str, Json], labels: tuple[str, Json]) -> None:
    """Compare the images and the labels of a split, each with its path."""
    found, (path, said) = data.findings, labels
    for each in (images[1], said):
        if "error" in each:
            found.refuse("idx", each["error"])
    if "error" in said:
        return
    if "error" not in images[1]:
        with found.catching("idx"):
            idx.check_pair(path, said["count"], images[1]["count"], images[0].rpartition("/")[2])
    with found.catching("label"):
        idx.check_label(path, *said["highest"])
    _classes(data, split, said["counts"], [str(number) for number in range(idx.CLASSES)])


def _images(data: Data, file: File, every: int) -> Json:
    """Return the number of images, and their hashes."""
    size, path = idx.SIDE * idx.SIDE, file.path
    seen, read = Seen(size, every), 0
    with _unpacked(data, file) as stream:
        try:
            count = idx.count(path, stream.read(idx.HEADER + 8), (idx.SIDE, idx.SIDE))
            while piece := stream.read(min(CHUNK // size * size, count * size + 1 - read)):
                if data.over():
                    raise TooSlow
                read += len(piece)
                seen.add(piece)
        except BROKEN_GZIP as error:
            raise DataError(f"{path}: expected a complete gzip file, found a damaged one: {error}") from error
    idx.check_length(path, read, (count, idx.SIDE, idx.SIDE))
    return {"count": count, **seen.facts()}


def _labels(data: Data, file: File) -> Json:
    """Return the number of labels, the count of each label, and the highest label with its position."""
    path = file.path
    with _unpacked(data, file) as stream:
        try:
            count = idx.count(path, stream.read(idx.HEADER), ())
            labels = stream.read(count + 1)
        except BROKEN_GZIP as error:
            raise DataError(f"{path}: expected a complete gzip file, found a damaged one: {error}") from error
    idx.check_length(path, len(labels), (count,))
    counted = Counter(labels)
    highest = max(labels), labels.index(max(labels))
    return {"count": count, "counts": [counted[number] for number in range(idx.CLASSES)], "highest": highest}


def _unpacked(data: Data, file: File) -> IO[bytes]:
    stream = archive.stream(data.source, file.path, file.size)
    return gzip.GzipFile(fileobj=stream) if file.path.endswith(".gz") else stream  # type: ignore[return-value]


def _classes(data: Data, split: str, counts: Sequence[int], names: list[str]) -> None:
    """Describe the classes of a split, and report classes without an image."""
    classes = dict(zip(names, counts, strict=False))
    data.card.count(split, classes)
    if lacking := [name for name, count in classes.items() if not count]:
        data.findings.warn("no_class", f"{split} has no image of the classes:", lacking)
    listing.balance(data, split, classes)


class Seen:
    """The images of one file: hashes of one in `every`, and which images are blank."""

    def __init__(self, size: int, every: int) -> None:
        self._size, self._hashes, self._count = size, Hashes(every), 0
        self._blank, self._blanks = list[int](), 0

    def add(self, content: bytes) -> None:
        """Add images of `size` bytes each; an incomplete last image is left out."""
        blank = bytes(self._size)
        for start in range(0, len(content) - self._size + 1, self._size):
            image = content[start : start + self._size]
            if image == blank:
                self._blanks += 1
                self._blank += [self._count] if len(self._blank) < NAMED else []
            else:
                self._hashes.add(image, self._count)
            self._count += 1

    def facts(self) -> Json:
        blank = {"blank": self._blank, "blanks": self._blanks}
        return {"images": self._count, "hashes": self._hashes.packed(), **blank}


class Images:
    """The images of a data set by their hashes, to find equal and blank images. Images have numbers from 0."""

    def __init__(self, data: Data, every: int) -> None:
        self._data, self._every = data, every
        self._first: dict[int, int] = {}  # for each hash, the number of its first image, and at the end its split
        self._splits: list[str] = []
        self._counts: Counter[str] = Counter()
        self._named: dict[str, list[str]] = {"across": [], "within": [], "blank": []}
        self._found: Counter[str] = Counter()

    def add(self, split: str, file: Json) -> None:
        """Add the images of a file of the split. The files of one split must be added consecutively."""
        if "error" in file:
            return
        if split not in self._splits:
            self._splits.append(split)
        before, own = self._counts[split], self._splits.index(split)
        self._note("blank", file["blanks"], [f"{split} {before + number}" for number in file["blank"]])
        for digest, number in unpacked(file["hashes"]):
            code = (before + number) * 2 + own
            first = self._first.setdefault(digest, code)
            if first != code:
                other = f"{self._splits[first % 2]} {first // 2}"
                kind = "within" if first % 2 == own else "across"
                self._note(kind, 1, [f"{split} {before + number} = {other}"])
        self._counts[split] += file["images"]

    def _note(self, kind: str, count: int, names: list[str]) -> None:
        self._found[kind] += count
        self._named[kind] += names[: NAMED - len(self._named[kind])]

    def compare(self) -> None:
        """Report equal and blank images."""
        data, found = self._data, self._found
        data.card.duplicates = {"within": found["within"], "across": found["across"]}
        total = sum(self._counts.values())
        some = f"; one in {self._every:,} was compared with the others" if self._every > 1 else ""
        data.card.read = f"All {total:,} images were read{some}."
        self._report(
            Severity.WARN, "across", "The same image is in train and in test, so what is tested was also trained on:"
        )
        many = found["within"] * self._every > total / 1000
        self._report(Severity.WARN if many else Severity.NOTE, "within", "Images are equal:")
        self._report(Severity.WARN, "blank", "All bytes of images are zero:")

    def _report(self, severity: Severity, kind: str, sentence: str) -> None:
        if self._found[kind]:
            code = {"across": "leakage", "within": "duplicates"}.get(kind, kind)
            self._data.findings.add(severity, code, sentence, self._named[kind], self._found[kind])


def check_cifar(data: Data) -> None:
    data.card.unit = "images"
    listing.packed(data)
    with data.findings.catching("missing_file"):
        paths = locate([file.path for file in data.files], cifar.FILES, "the drop")
        if _empty(data, paths):
            return
        meta = paths.pop(cifar.META)
        names: list[str] | None = None
        with data.findings.catching("batch"):
            names = cifar.class_names(meta, _content(data, data.file(meta)))
        names = names or [str(number) for number in range(cifar.CLASSES)]
        every = one_in(map(data.file, paths.values()), COMPARED)
        known = data.read(list(paths.values()), lambda file: _batch(data, file, len(names), every), at_once=1)
        images = Images(data, every)
        for split, keys in (("train", cifar.TRAIN), ("test", (cifar.TEST,))):
            batches = [known[paths[key]] for key in keys]
            for each in batches:
                images.add(split, each)
                if "error" in each:
                    data.findings.refuse("batch", each["error"])
            counts = [each["counts"] for each in batches if "error" not in each]
            _classes(data, split, list(map(sum, zip(*counts, strict=True))) or [0] * len(names), names)
        images.compare()


def _batch(data: Data, file: File, classes: int, every: int) -> Json:
    """Return the images and labels of a batch, or why it can't be read."""
    try:
        batch = cifar.batch(file.path, _content(data, file), classes)
    except DataError as error:
        return {"error": str(error)}
    seen, labels = Seen(cifar.VALUES, every), Counter(batch.labels)
    seen.add(batch.content)
    return {"counts": [labels[number] for number in range(classes)], **seen.facts()}


def _content(data: Data, file: File) -> bytes:
    cifar.check_size(file.path, file.size)
    if data.over():
        raise TooSlow
    return data.source.read(file.path, 0, file.size)
