"""A folder of images with one sub-folder per class: the content, the unusable files, and the split for validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import dist
import files
import torch
import torch.distributed as c10d
from data_checks.findings import fail
from data_checks.image_folder import UNREAD, Paths, arrange, too_many_broken
from files import DataError
from transfer.images import Broken, Sample, decode

CHECKED_AT_ONCE = 1000  # images per process between two checks whether to stop
NAMED_IN_LOG = 20  # skipped files


@dataclass(frozen=True)
class Folder:
    """The content of a data set's folder. `val` is empty without a val folder. `skipped` maps files to the reason."""

    root: Path
    classes: list[str]
    train: list[Sample]
    val: list[Sample]
    skipped: dict[Path, str]


def find(folder: Path) -> Folder:
    """List the images of `folder`/train/<class>/ and `folder`/val/<class>/, or of `folder`/<class>/.

    See data_checks.image_folder.arrange. Raises DataError for its first complaint.
    """
    names = [path.relative_to(folder).as_posix() for path in files.below(folder)]
    names += [f"{path.relative_to(folder).as_posix()}/" for path in folder.rglob("*") if path.is_dir()]
    layout = arrange(names, fail, lambda name: str(folder / name))
    train, val = (_samples(folder, layout.classes, part) for part in (layout.train, layout.val))
    return Folder(folder / layout.root, layout.classes, train, val, {folder / name: UNREAD for name in layout.unread})


def _samples(folder: Path, classes: list[str], part: Paths) -> list[Sample]:
    """Return the images of each class, sorted: every process must have an equal list."""
    samples = [Sample(folder / path, classes.index(name)) for name, paths in part.items() for path in paths]
    return sorted(samples, key=lambda sample: (sample.label, sample.path))


def check(found: Folder, side: int, threads: int, place: dist.Place, stop: dist.StopRequest) -> dict[Path, str]:
    """Decode the images, each in one of the processes, and return the broken images with their reasons in every
    process.

    `side` is the parameter of `decode`.
    """
    everything = found.train + found.val
    broken: dict[str, str] = {}
    for start in range(0, len(everything), CHECKED_AT_ONCE * place.world_size):
        stop.check(0)
        mine = everything[start : start + CHECKED_AT_ONCE * place.world_size][place.rank :: place.world_size]
        reasons = _broken(mine, side, threads)
        # By relative path, because each process unpacks an archive into its own folder.
        broken |= {str(path.relative_to(found.root)): why for path, why in reasons.items()}
    parts: list[dict[str, str]] = [{}] * place.world_size
    c10d.all_gather_object(parts, broken)
    return {found.root / name: why for part in parts for name, why in sorted(part.items())}


def _broken(samples: Sequence[Sample], side: int, threads: int) -> dict[Path, str]:
    """Return the reasons of the broken images among `samples`. Uses threads, because Pillow decodes outside the
    interpreter's lock."""

    def reason(sample: Sample) -> str | None:
        try:
            decode(sample.path, side)
        except Broken as error:
            return str(error)
        return None

    with ThreadPoolExecutor(threads) as pool:
        return {s.path: why for s, why in zip(samples, pool.map(reason, samples), strict=True) if why}


def without(found: Folder, broken: dict[Path, str], max_broken: float) -> Folder:
    """Return `found` without its `broken` images, which are added to the skipped files.

    Raises DataError if more than the share `max_broken` is broken, or if all images of a class are broken.
    """
    count = len(found.train) + len(found.val)
    if too_many_broken(len(broken), count, max_broken):
        path, why = next(iter(broken.items()))
        raise DataError(
            f"{found.root}: expected at most {max_broken:.0%} of {count:,} images to be broken (--max-broken), "
            f"found {len(broken):,}, as {path.relative_to(found.root)}: {why}"
        )
    train, val = ([sample for sample in part if sample.path not in broken] for part in (found.train, found.val))
    if lost := set(range(len(found.classes))) - {sample.label for sample in train}:
        raise DataError(
            f"{found.root}: expected images of {found.classes[min(lost)]} to train on, found broken ones only"
        )
    return replace(found, train=train, val=val, skipped=found.skipped | broken)


def split(found: Folder, share: float, seed: int) -> Folder:
    """Move `share` of each class, at least one image, from train to val. Raises DataError for a class with only one
    image."""
    dice = torch.Generator().manual_seed(seed)
    train: list[Sample] = []
    val: list[Sample] = []
    for label, name in enumerate(found.classes):
        ours = [sample for sample in found.train if sample.label == label]
        if len(ours) < 2:
            raise DataError(f"{found.root}: expected at least 2 images of {name}, to train and to validate, found 1")
        count = min(max(1, round(share * len(ours))), len(ours) - 1)
        drawn = set(torch.randperm(len(ours), generator=dice)[:count].tolist())
        val += [sample for i, sample in enumerate(ours) if i in drawn]
        train += [sample for i, sample in enumerate(ours) if i not in drawn]
    return replace(found, train=train, val=val)


def report_skipped(data: Folder, folder: Path | None, say: Callable[[str], None]) -> None:
    """Report each unused file with its reason: the first files in the log, every file in skipped.txt."""
    lines = [f"{path.relative_to(data.root)}: {why}" for path, why in sorted(data.skipped.items())]
    for line in lines[:NAMED_IN_LOG]:
        say(f"skipped {line}")
    if len(lines) > NAMED_IN_LOG:
        say(f"skipped {len(lines) - NAMED_IN_LOG:,} more; skipped.txt in --output-dir names all")
    if folder:
        with files.replacing(folder / "skipped.txt") as path:
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
