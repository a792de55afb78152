"""A folder of images with one sub-folder per class: the class and the split of each image file. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from .findings import Complain
from .names import joined
from .source import MARKERS, is_hidden

# The extensions of torchvision's ImageFolder.
ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
UNREAD = f"its name does not end in {', '.join(ENDINGS)}"

Paths = dict[str, list[str]]  # the paths of each class


@dataclass(frozen=True)
class Layout:
    """The layout of an image folder. `root` is the folder of the splits, or of the classes. `unread` are files that the
    trainer skips.

    `others` has the splits after the first two, which no trainer here reads.
    """

    root: str
    split: bool
    classes: list[str]
    train: Paths
    val: Paths
    unread: list[str] = field(default_factory=list)
    others: dict[str, Paths] = field(default_factory=dict)


SPLITS = ("train", "val")


def arrange(
    paths: Iterable[str], complain: Complain, label: Callable[[str], str], splits: Sequence[str] = SPLITS
) -> Layout:
    """Return the images of train/<class>/ and val/<class>/, or of <class>/, at any depth.

    `splits` are the names of the splits; the first split is for training.

    The classes are the sub-folders of train, in the order of their names. If the top folder has only one sub-folder,
    this sub-folder counts as the data set, because archives often have such a folder. A path that ends with a slash is
    a folder, perhaps an empty one. Complains about fewer than two classes, a class without images, and an unknown class
    in val. `label` gives a folder's name in complaints.
    """
    every = sorted(paths)
    root = ""
    while len(inner := folders(every, root)) == 1 and inner[0] != splits[0]:
        root = joined(root, inner[0])
    split = splits[0] in folders(every, root)
    place = joined(root, splits[0]) if split else root
    classes = folders(every, place)
    if len(classes) < 2:
        message = f"expected a folder for each of at least 2 classes, found {classes or 'none'}"
        complain("classes", label(place), message)
    unread: list[str] = []
    train = _images(every, place, unread)
    beside = {name: _images(every, joined(root, name), unread) for name in splits[1:]} if split else {}
    for name in classes:
        if not train.get(name):
            complain("empty_class", label(joined(place, name)), f"expected images ({', '.join(ENDINGS)}), found none")
    for part, name in ((part, name) for part, inside in beside.items() for name in sorted(inside)):
        if name not in classes:
            message = f"expected only the classes of {splits[0]} ({', '.join(classes)}), found another one"
            complain("unknown_class", label(joined(root, f"{part}/{name}")), message)
    val = beside.pop(splits[1], {}) if len(splits) > 1 else {}
    return Layout(root, split, classes, train, val, unread, beside)


def folders(paths: Iterable[str], folder: str) -> list[str]:
    """Return the names of the sub-folders of a folder, sorted, without hidden ones."""
    prefix = f"{folder}/" if folder else ""
    inside = (path[len(prefix) :].split("/", 1) for path in paths if path.startswith(prefix))
    return sorted({parts[0] for parts in inside if len(parts) == 2 and not is_hidden(parts[0])})


def _images(paths: Iterable[str], folder: str, unread: list[str]) -> Paths:
    prefix = f"{folder}/" if folder else ""
    found: Paths = defaultdict(list)
    for path in paths:
        if not path.startswith(prefix):
            continue
        name, slash, rest = path[len(prefix) :].partition("/")
        if not slash or is_hidden(name):
            continue
        of_class, file = found[name], rest.rpartition("/")[2]
        if file.lower().endswith(ENDINGS) and not is_hidden(file):
            of_class.append(path)
        elif file and file not in MARKERS and not is_hidden(file):
            unread.append(path)
    return dict(found)


def too_many_broken(broken: int, images: int, max_broken: float) -> bool:
    """Return whether more than the share `max_broken` of the images is broken."""
    return broken > max_broken * images
