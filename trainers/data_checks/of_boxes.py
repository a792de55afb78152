"""The check of detection data: annotations, images, boxes and categories, and the content of the pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from . import detection, listing, sample
from .boxes import Boxed, Found, Reader
from .data import Data, broken_of
from .files import Paths
from .findings import NAMED, Severity, plain
from .pictures import EXTENSIONS, Picture
from .source import PACKED

OUTSIDE = 1.0  # pixels that a box may leave its image by, for rounding
UNUSED = 0.25  # with a larger share of categories without a box, the list is that of a larger data set
SHOWN = 20


def check(data: Data) -> None:
    data.card.unit = "boxes"
    listing.packed(data)
    if data.partial:
        data.findings.note("partial", "Annotations are not compared with a partial list of files.")
        return
    small = SmallFiles(data)
    reader = Reader(
        Paths(data.files),
        data.content,
        small.complain,
        lambda path: plain(path) or "the drop",
        data.findings.doubt,
        small.chosen,
    )
    with data.findings.catching("layout"):
        if found := detection.read(reader):
            _found(data, found, reader)
            data.card.read = " ".join(filter(None, (data.card.read, small.sentence())))
    if data.left_out and not data.only_list:
        most = f"{data.settings.document >> 20} MiB"
        data.findings.note(
            "unread", f"Annotations of more than {most} are not read before the training:", data.left_out
        )


class SmallFiles:
    """Annotations in small files, of which a sample is read: one file per image, as in Pascal VOC."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self._read = self._files = 0
        self._bad: set[str] = set()

    def chosen(self, names: list[str]) -> list[str]:
        some = self._data.chosen(names)
        self._read += len(some)
        self._files += len(names)
        return some

    def complain(self, code: str, place: str, message: str) -> None:
        """Record a complaint, and the file that can't be read."""
        if code in ("xml", "box"):
            self._bad.add(place)
        self._data.findings.complain(code, place, message)

    def sentence(self) -> str:
        """Return a sentence about what the sample may have missed, '' without small files."""
        if not self._read:
            return ""
        return f"Annotations: {sample.sentence(len(self._bad), self._read, self._files)}"


def _found(data: Data, found: Found, reader: Reader) -> None:
    if empty := [path for path in found.files if not data.file(path).size]:
        data.findings.refuse("empty_file", "Files are empty:", empty)
    if not data.left_out:
        detection.check_objects(found, reader)
        _categories(data, found)
        if found.val is None:
            data.findings.warn("no_val", "There is no part for validation, so nothing is tested.")
    for split, records in _parts(found):
        data.card.count(split, _per_category(found, records))
        _boxes(data, split, records)
    split_of = {record.path: split for split, records in _parts(found) for record in records} | dict(found.named)
    listing.duplicates(data, split_of, alone=True)
    both = {each.path for each in found.train} & {each.path for each in found.val or ()}
    if both:
        data.findings.warn("leakage", "Images are in train and in val, so what is tested was also trained on:", both)
    if not data.left_out:
        _unnamed(data, split_of)
    _pictures(data, split_of, {record.path: record for _, records in _parts(found) for record in records})


def _parts(found: Found) -> Iterator[tuple[str, list[Boxed]]]:
    yield "train", found.train
    if found.val is not None:
        yield "val", found.val


def _per_category(found: Found, records: Iterable[Boxed]) -> dict[str, int]:
    counts = Counter(thing.label for record in records for thing in record.objects)
    return {each.name: counts[label] for label, each in enumerate(found.categories, start=1) if counts[label]}


def _categories(data: Data, found: Found) -> None:
    """Report categories without a box in train. If most have none, the list belongs to a larger data set."""
    names = [each.name for each in found.categories]
    if same := sorted(name for name, count in Counter(name.strip().lower() for name in names).items() if count > 1):
        data.findings.warn("same_category", "Categories have the same name:", same)
    wanted = data.options.get("classes")
    if wanted and set(wanted) != set(names):
        message = f"expected the categories {', '.join(wanted[:SHOWN])}, found {', '.join(names[:SHOWN]) or 'none'}"
        data.findings.refuse("class", message)
    if found.layout != "Pascal VOC" and "" in (name.strip() for name in names):
        data.findings.warn("no_name", "A category has no name.")
    train = _per_category(found, found.train)
    lacking = [name for name in names if name not in train]
    if not lacking:
        return
    few = len(lacking) <= UNUSED * len(names)
    severity = Severity.WARN if few else Severity.NOTE
    data.findings.add(severity, "no_box", f"{len(lacking)} of {len(names)} categories have no box in train:", lacking)


def _boxes(data: Data, split: str, records: Iterable[Boxed]) -> None:
    outside, empty, again, bare = [], [], [], 0
    records = list(records)
    every = [thing.box for record in records for thing in record.objects]
    if every and all(max(box) <= 1 for box in every):
        message = "All boxes lie within the first pixel: they look like shares of the image, and must be in pixels."
        data.findings.refuse("shares", f"{split}: {message}")
    for record in records:
        bare += not record.objects
        width, height = record.size
        seen = Counter((thing.box, thing.label) for thing in record.objects)
        again += [f"{record.path}: {_box(box)}" for (box, _), count in seen.items() if count > 1]
        for thing in record.objects:
            x1, y1, x2, y2 = thing.box
            if x2 <= x1 or y2 <= y1:
                empty.append(f"{record.path}: {_box(thing.box)}")
            elif width and _leaves(thing.box, width, height):
                outside.append(f"{record.path} ({width} x {height}): {_box(thing.box)}")
            elif not width and min(x1, y1) < -OUTSIDE:
                outside.append(f"{record.path}: {_box(thing.box)}")
    for code, sentence, names in (
        ("outside", "Boxes leave their image (x1, y1, x2, y2):", outside),
        ("no_area", "Boxes have no area, and are not trained on:", empty),
        ("same_box", "Boxes are there twice:", again),
    ):
        if names:
            data.findings.warn(code, f"{split}: {sentence}", names)
    if bare:
        data.findings.note("background", f"{split}: {bare:,} images have no box, and are background.")


def _leaves(box: tuple[float, float, float, float], width: int, height: int) -> bool:
    return min(box[0], box[1]) < -OUTSIDE or box[2] > width + OUTSIDE or box[3] > height + OUTSIDE


def _box(box: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in box)


def _unnamed(data: Data, split_of: dict[str, str]) -> None:
    """Report pictures without annotations, and files that are neither pictures nor annotations."""
    pictures = data.files.every(file.path for file in data.files if file.path.lower().endswith(EXTENSIONS))
    unnamed = (path for path in pictures if path not in split_of)
    first = list(islice(unnamed, NAMED))
    if count := len(first) + sum(1 for _ in unnamed):
        severity = Severity.NOTE if count > len(split_of) else Severity.WARN
        message = "No annotation file names these images, which are not used:"
        data.findings.add(severity, "unnamed", message, first, count)
    texts = (".json", ".xml", ".txt", ".csv", ".md", *EXTENSIONS, *PACKED)
    if others := [file.path for file in data.files if not file.path.lower().endswith(texts) and "." in file.name]:
        data.findings.warn("type", "The trainer does not read files of these types:", data.files.every(others))


def _pictures(data: Data, split_of: dict[str, str], records: dict[str, Boxed]) -> None:
    """Read a sample of the pictures. The trainer skips no picture, so a broken one ends the run."""
    there = sorted(path for path in split_of if data.files.find(path))
    read = data.pictures(there, alone=True)
    data.describe(read)
    if broken := broken_of(read):
        data.findings.refuse("broken", "Images are broken, and this trainer leaves none out:", broken)
    sizes = [
        f"{path} is {each.width} x {each.height}, its annotation says {records[path].size[0]} x {records[path].size[1]}"
        for path, each in sorted(read.items())
        if not each.broken
        and each.width
        and path in records
        and records[path].size[0]
        and records[path].size != (each.width, each.height)
    ]
    if sizes:
        data.findings.refuse("size", "Images have another size than their annotations say:", sizes)
    _unsized(data, read, records)


def _unsized(data: Data, read: dict[str, Picture], records: dict[str, Boxed]) -> None:
    """Report boxes that leave their image, if only the picture itself tells the image's size."""
    outside = [
        f"{path} ({each.width} x {each.height}): {_box(thing.box)}"
        for path, each in sorted(read.items())
        if each.width and path in records and not records[path].size[0]
        for thing in records[path].objects
        if _leaves(thing.box, each.width, each.height)
    ]
    if outside:
        data.findings.warn("outside", "Boxes leave their image (x1, y1, x2, y2):", outside)
