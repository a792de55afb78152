"""The data card: the content of a data set in a few numbers, small enough for a record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

MOST_CLASSES = 50  # that a card names per split


@dataclass
class Card:
    """The numbers of a data set. `splits` has the number of files, images or boxes of each class. `read` is a
    sentence about how much was read."""

    kind: str = ""
    unit: str = "files"  # what `splits` counts
    files: int = 0
    bytes: int = 0
    splits: dict[str, dict[str, int]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)  # of each split, all classes together
    sizes: list[int] = field(default_factory=list)  # bytes of the smallest, the median and the largest file
    widths: list[int] = field(default_factory=list)  # pixels: the same three, of the pictures that were read
    heights: list[int] = field(default_factory=list)
    modes: dict[str, int] = field(default_factory=dict)  # "JPEG RGB": 300
    duplicates: dict[str, int] = field(default_factory=dict)  # within and across splits
    read: str = ""

    def count(self, split: str, classes: Mapping[str, int]) -> None:
        """Set the counts of a split, with the classes in the order of their names."""
        named = sorted(classes.items(), key=lambda each: -each[1])[:MOST_CLASSES]
        self.splits[split or "all"] = dict(sorted(named))
        self.totals[split or "all"] = sum(classes.values())


def three(values: Iterable[int]) -> list[int]:
    """Return the smallest value, the median and the largest, or [] for no values."""
    every = sorted(values)
    return [every[0], every[len(every) // 2], every[-1]] if every else []


def modes_of(pictures: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return how many pictures have each format and mode, the most frequent first."""
    return dict(Counter(f"{kind} {mode}".strip() for kind, mode in pictures).most_common(12))


def changes(before: Card, after: Card) -> list[str]:
    """Return the differences between two cards, one sentence each."""
    said = [_moved("files", before.files, after.files), _moved("bytes", before.bytes, after.bytes)]
    for split in sorted(before.splits.keys() | after.splits.keys()):
        old, new = before.splits.get(split, {}), after.splits.get(split, {})
        for name in sorted(old.keys() | new.keys()):
            said.append(_moved(f"{split} {name}", old.get(name, 0), new.get(name, 0)))
    for kind in sorted(before.modes.keys() | after.modes.keys()):
        said.append(_moved(kind, before.modes.get(kind, 0), after.modes.get(kind, 0)))
    for name in sorted(before.duplicates.keys() | after.duplicates.keys()):
        said.append(_moved(f"duplicates {name}", before.duplicates.get(name, 0), after.duplicates.get(name, 0)))
    for name in ("widths", "heights"):
        said += _spread(name, getattr(before, name), getattr(after, name))
    return [sentence for sentence in said if sentence]


def _moved(name: str, old: int, new: int) -> str:
    return "" if old == new else f"{name}: {old:,} -> {new:,} ({new - old:+,})"


def _spread(name: str, old: Sequence[int], new: Sequence[int]) -> list[str]:
    if list(old) == list(new):
        return []
    return [f"{name}: {' / '.join(map(str, old)) or 'unknown'} -> {' / '.join(map(str, new)) or 'unknown'}"]
