"""A long list is judged like a short one: a temporary table and a list in memory give the same findings."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks import _data_damage as damage
from trainers.data_checks import files as listed
from trainers.data_checks.check import Result, Task, check
from trainers.data_checks.files import Listed, Tabled
from trainers.data_checks.source import File, Folder


@dataclass(frozen=True)
class Names:
    """A source of which only the file list is read."""

    files: Sequence[File]
    whole: bool = False

    def read(self, path: str, _offset: int, _size: int) -> bytes:
        raise AssertionError(path)


def made(seed: int, count: int = 700) -> list[File]:
    """Return a list that causes every kind of finding: equal and empty files, twins, other types, missing classes."""
    dice = random.Random(seed)
    names = set[str]()
    while len(names) < count:
        folder = dice.choice(
            ("train/ant", "train/bee", "train/Bee", "val/ant", "val/bee", "val/wasp", "test", "", "a/b")
        )
        name = f"{dice.choice(('', 'train-', 'x.', 'Val '))}{dice.randrange(200)}"
        ending = dice.choice((".jpg", ".JPG", ".png", ".heic", ".txt", ".csv", ".csv.gz", ".tar.gz", ".part", "", ".7"))
        names.add(f"{folder}/{name}{ending}".lstrip("/"))
    sizes = [0] + [1, 2, 3] * 6
    sums = [""] * 6 + [f"{number:032x}" for number in range(60)]
    return [File(name, dice.choice(sizes), dice.choice(sums)) for name in sorted(names)]


def both(source: Any, monkeypatch: pytest.MonkeyPatch, **task: Any) -> list[Result]:
    """Check with everything in memory, and with tables that group even two pictures."""
    results = [check(source, Task(**task))]
    monkeypatch.setattr(listed, "IN_MEMORY", 0)
    monkeypatch.setattr(listed, "SMALL", 20)
    return [*results, check(source, Task(**task))]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["files", "image_folder", "text", "csv"])
def test_a_list_leads_to_the_same_findings(kind: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings with their counts and first names, and the card, are the same."""
    memory, table = both(Names(made(seed)), monkeypatch, declared={"kind": kind}, only_list=True)
    assert memory.card == table.card
    assert len(memory.findings) > 3 or kind == "text"
    assert [(each.code, each.sentence, each.count) for each in memory.findings] == [
        (each.code, each.sentence, each.count) for each in table.findings
    ]


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("image_folder", damage.make_images),
        ("detection", damage.make_voc),
        ("text", damage.make_text),
        ("csv", damage.make_table),
    ],
)
def test_files_that_are_read_lead_to_the_same(
    kind: str, make: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "data")
    memory, table = both(Folder(tmp_path / "data"), monkeypatch, declared={"kind": kind})
    assert memory == table


def test_a_table_answers_like_a_list() -> None:
    """A table and a list give the same answer to each question about names, file by file."""
    every = made(9)
    memory, table = Listed(every), Tabled(every)
    assert (memory.count, memory.bytes, memory.sizes()) == (table.count, table.bytes, table.sizes())
    assert sorted(memory.paths()) == sorted(table.paths()) == sorted(table.every(file.path for file in table))
    assert sum(table.number(file.path) for file in table) == table.count
    assert sorted(map(sorted, memory.twins())) == sorted(map(sorted, table.twins()))
    assert all(table.find(file.path) == file for file in every)
    assert table.find("nowhere") is None
    assert len(list(table)) < len(every)
