"""The check of image folders: splits, classes, counts, duplicates, and the content of the pictures."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from . import image_folder, listing
from .data import Data, broken_of
from .findings import Complain, plain
from .image_folder import Layout, Paths
from .names import SPLITS, joined
from .source import PACKED

SHOWN = 20


def check(data: Data) -> None:
    splits = tuple(data.options.get("splits") or image_folder.SPLITS)
    layout = image_folder.arrange(_stand_ins(data), _complain(data), lambda path: plain(path) or "the drop", splits)
    if "splits" in data.options:
        _declared_splits(data, layout, splits)
    else:
        _splits(data, layout)
    _unread(data, layout, splits)
    data.card.unit = "images"
    counts = {
        split: {name: data.number(paths) for name, paths in part.items()} for split, part in _parts(layout, splits)
    }
    for split, classes in counts.items():
        data.card.count(split, classes)
    _declared_classes(data, layout, counts[splits[0]])
    if len(layout.classes) >= 2:
        _counts(data, layout, splits[0], counts[splits[0]])
    split_of = {path: split for split, part in _parts(layout, splits) for paths in part.values() for path in paths}
    class_of = {path: name for _, part in _parts(layout, splits) for name, paths in part.items() for path in paths}
    listing.duplicates(data, split_of, class_of)
    _pictures(data, layout, splits[0], class_of)


def _stand_ins(data: Data) -> list[str]:
    return [file.path for file in data.files]


def _complain(data: Data) -> Complain:
    """Return a function that records complaints. For a partial list, complaints about missing files are dropped."""

    def complain(code: str, place: str, message: str) -> None:
        if not data.partial:
            data.findings.complain(code, place, message)

    return complain


def _parts(layout: Layout, splits: Sequence[str]) -> list[tuple[str, Paths]]:
    beside = [*zip(splits[1:2], [layout.val], strict=False), *layout.others.items()]
    return [(splits[0], layout.train), *((name, part) for name, part in beside if part)]


def _declared_splits(data: Data, layout: Layout, splits: Sequence[str]) -> None:
    """Refuse data without one of the declared splits, or with images in other folders beside the splits."""
    there = image_folder.folders(_stand_ins(data), layout.root)
    if data.partial:
        return
    if lacking := [name for name in splits if name not in there]:
        found = f"found only {', '.join(there[:SHOWN]) or 'none'}"
        data.findings.refuse("splits", f"expected the splits {', '.join(splits)}, {found}. Missing:", lacking)
    elif others := [name for name in there if name not in splits]:
        data.findings.warn("unread_split", "Folders beside the declared splits are not checked:", others)


def _declared_classes(data: Data, layout: Layout, counts: Mapping[str, int]) -> None:
    """Refuse data whose classes differ from the declared ones, or that has fewer images than declared."""
    if data.partial:
        return
    if wanted := data.options.get("classes"):
        if lacking := [name for name in wanted if name not in layout.classes]:
            data.findings.refuse("class", "Declared classes are missing:", lacking)
        if more := [name for name in layout.classes if name not in wanted]:
            data.findings.refuse("class", f"expected only the classes {', '.join(wanted[:SHOWN])}, found also:", more)
    least = data.options.get("images", 0)
    if few := [f"{name} ({count:,})" for name, count in counts.items() if count < least]:
        data.findings.refuse("images", f"expected at least {least:,} images of each class, found fewer of:", few)


def _splits(data: Data, layout: Layout) -> None:
    """Report missing splits, splits whose names the trainer does not read, and splits that would count as classes."""
    findings = data.findings
    if not layout.split and layout.classes and all(name.lower() in SPLITS for name in layout.classes):
        findings.refuse(
            "splits", "These folders would be taken for classes. Name the splits train and val:", layout.classes
        )
    elif not layout.split and layout.root.rpartition("/")[2].lower() in SPLITS:
        findings.warn("splits", "There is no train, so the trainer takes this folder for all data:", [layout.root])
    if not layout.split or data.partial:
        return
    others = [name for name in image_folder.folders(_stand_ins(data), layout.root) if name not in ("train", "val")]
    if others:
        findings.warn("unread_split", "Beside train, the trainer reads only val, and not:", others)
    if not layout.val:
        findings.warn("no_val", "There is no val, so the trainer holds out a share of train itself.")
    elif lacking := [name for name in layout.classes if not layout.val.get(name)]:
        findings.warn("no_val_class", "val has no images of:", lacking)


def _unread(data: Data, layout: Layout, splits: Sequence[str]) -> None:
    """Report files that the trainer skips: other types, and images outside the class folders."""
    listing.packed(data)
    types = [path for path in layout.unread if not path.lower().endswith(PACKED)]
    if types:
        message = f"The trainer skips files whose names end in none of {_ENDINGS}:"
        data.findings.warn("type", message, data.files.every(types))
    prefix = f"{layout.root}/" if layout.root else ""
    used = {path for _, part in _parts(layout, splits) for paths in part.values() for path in paths} | set(
        layout.unread
    )
    if loose := [
        file.path
        for file in data.files
        if file.path not in used
        and file.path.startswith(prefix)
        and file.path.lower().endswith(image_folder.ENDINGS)
        and file.path.count("/") <= prefix.count("/") + layout.split
    ]:
        data.findings.warn("loose", "Images are in no folder of a class:", data.files.every(loose))


_ENDINGS = ", ".join(image_folder.ENDINGS)


def _counts(data: Data, layout: Layout, split: str, counts: dict[str, int]) -> None:
    if data.partial:
        return
    listing.balance(data, split, counts)
    if (layout.val or "splits" in data.options) and layout.split:
        return
    if single := [name for name, count in counts.items() if count == 1]:
        data.findings.refuse("least", "A class needs at least 2 images, to train and to validate, and has 1:", single)


def _pictures(data: Data, layout: Layout, split: str, class_of: dict[str, str]) -> None:
    """Read a sample of the pictures, and judge the broken ones as the trainer does."""
    read = data.pictures(sorted(class_of))
    data.describe(read)
    broken = broken_of(read)
    if not broken:
        return
    if image_folder.too_many_broken(len(broken), len(read), data.settings.broken):
        share = f"more than the {data.settings.broken:.0%} that the trainer leaves out"
        data.findings.refuse("broken", f"{len(broken):,} of {len(read):,} images are broken, {share}:", broken)
    else:
        data.findings.warn("broken", "Images are broken, and the trainer leaves them out:", broken)
    bad = {path for path, each in read.items() if each.broken}
    if lost := sorted(name for name, files in layout.train.items() if files and _all_in(data, files, bad)):
        places = [joined(layout.root, f"{split}/{name}" if layout.split else name) for name in lost]
        data.findings.refuse("broken_class", "All images of a class are broken:", places)


def _all_in(data: Data, stand_ins: Sequence[str], paths: Container[str]) -> bool:
    return all(path in paths for path in data.files.every(stand_ins))
