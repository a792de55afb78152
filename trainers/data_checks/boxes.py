"""Images with boxes in the three layouts of detection data, and how a layout is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from .findings import Complain

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Category:
    """A class of objects, with its number in the data set. COCO's numbers run from 1 to 90 with gaps."""

    id: int
    name: str


@dataclass(frozen=True)
class Object:
    """A box in pixels. (x1, y1) is its upper left corner; `label` counts categories from 1; the area is in square
    pixels."""

    box: Box
    label: int
    crowd: bool = False
    area: float | None = None


@dataclass(frozen=True)
class Boxed:
    """One image: its path in the data set, its number, width and height (0 if unknown), and its objects."""

    path: str
    id: int
    size: tuple[int, int]
    objects: list[Object] = field(default_factory=list)


@dataclass(frozen=True)
class Found:
    """A data set with boxes. `val` is None if there is no such part.

    `files` are the files that list the images. `named` maps each listed image to its split, including images whose own
    annotations were not read.
    """

    layout: str
    categories: list[Category]
    train: list[Boxed]
    val: list[Boxed] | None
    files: tuple[str, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reader:
    """How to read annotations.

    `paths` are all files of the data set, and `read` returns the content of a file, or None if the file is too large to
    be read here. `some` chooses a sample of many small files. `complain` and `doubt` take the code, the place and a
    message; `doubt` is for problems that do not stop the trainer. `label` gives a file's name in messages.
    """

    paths: AbstractSet[str]
    read: Callable[[str], bytes | None]
    complain: Complain
    label: Callable[[str], str]
    doubt: Complain = lambda _code, _place, _message: None
    some: Callable[[list[str]], list[str]] = lambda names: names

    def text(self, path: str, encoding: str = "utf-8") -> str | None:
        """Return a file's text, or complain about another encoding and return None."""
        content = self.read(path)
        if content is None:
            return None
        try:
            return content.decode(encoding)
        except UnicodeDecodeError as error:
            message = f"expected text in UTF-8, found the byte 0x{error.object[error.start]:02x} at {error.start:,}"
            self.complain("encoding", self.label(path), message)
            return None

    def missing(self, source: str, paths: Iterable[str]) -> set[str]:
        """Return the paths that do not exist, after one complaint about all of them."""
        absent = [path for path in paths if path not in self.paths]
        if absent:
            more = f" and {len(absent) - 3:,} more" if len(absent) > 3 else ""
            named = ", ".join(map(self.label, absent[:3]))
            message = f"expected its images beside it, found no {named}{more}"
            self.complain("missing_images", self.label(source), message)
        return set(absent)

    def below(self, folder: str, name: str, place: str) -> str | None:
        """Return the path of `name` in `folder`, or complain and return None if the name leads out of the data set."""
        if not name or PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            message = f"expected the name of an image inside the data set, found {name!r}"
            self.complain("name", place, message)
            return None
        return str(PurePosixPath(folder, name))

    def check_box(self, place: str, box: Box) -> bool:
        """Return whether the box has an area; complain otherwise."""
        good = all(map(math.isfinite, box)) and box[0] < box[2] and box[1] < box[3]
        if not good:
            found = ", ".join(f"{n:g}" for n in box)
            self.complain("box", place, f"expected xmin < xmax and ymin < ymax, found {found}")
        return good
