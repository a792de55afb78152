"""Small data sets, ways to damage them, and the findings of a check."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from data_checks.check import Result, Task, check
from data_checks.findings import Severity
from data_checks.source import Folder
from PIL import Image


def checked(folder: Path, kind: str, whole: bool = True, **options: Any) -> Result:
    return check(Folder(folder, 1 << 30 if whole else 0), Task({"kind": kind, **options}))


def codes(result: Result) -> dict[str, Severity]:
    return {finding.code: finding.severity for finding in result.findings}


def words(result: Result) -> str:
    return "\n".join(map(str, result.findings))


def picture(path: Path, number: int = 0, size: tuple[int, int] = (40, 30), mode: str = "RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(hash(str(path)) % 2**32 + number).integers(0, 255, (size[1], size[0], 3), np.uint8)
    Image.fromarray(noise).convert(mode).save(path)
    return path


def cut(path: Path, share: float = 0.5) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


def move(path: Path, target: Path) -> Path:
    return path.rename(target)


def renamed(folder: Path, names: dict[str, str]) -> None:
    for old, new in names.items():
        (folder / old).rename(folder / new)


def kept(folder: Path, count: int) -> None:
    for path in sorted(folder.iterdir())[count:]:
        path.unlink()


Damage = Callable[[Path], object]


def mark(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
