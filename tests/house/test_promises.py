"""A setting, a metric or a promise of the docs has two ends: somebody writes it, and somebody reads it."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from shared.kernel.settings import SETTINGS, Rules, Settings

ROOT = Path(__file__).resolve().parents[2]
SETTINGS_FILE = ROOT / "shared" / "kernel" / "settings.py"
OURS = re.compile(r"\b(?:TRAINYARD|AML)_[A-Z][A-Z0-9_]+\b")
METRIC = re.compile(r"metric `([a-z][a-z0-9_/]*)`")
YOURS = re.compile(r"your (own )?(training|code|job)|no trainer", re.IGNORECASE)  # the reader writes this metric
CODE = ("shared", "functions", "cli", "local", "trainers", "infra")


def texts(*folders: str, kinds: tuple[str, ...] = (".py", ".bicep", ".json", ".yaml", ".sh")) -> dict[Path, str]:
    """The text of every source file in these folders."""
    files = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in kinds)
    return {path: path.read_text("utf-8") for path in files if "node_modules" not in path.parts}


def docs() -> dict[Path, str]:
    return {path: path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")}


@pytest.mark.parametrize("name", [name for name in SETTINGS if OURS.fullmatch(name)])
def test_a_declared_setting_is_read_and_described(name: str) -> None:
    """A setting that is only declared, or only described, has no effect."""
    declared, _, rest = SETTINGS_FILE.read_text("utf-8").partition("\n}\n")
    assert name in declared
    others = (text for path, text in texts(*CODE).items() if path != SETTINGS_FILE and path.suffix == ".py")
    assert f'"{name}"' in rest or any(f'"{name}"' in text for text in others), f"nothing reads {name}"
    assert f"`{name}`" in (ROOT / "docs" / "settings.md").read_text("utf-8"), f"docs/settings.md lacks {name}"


def test_every_value_of_the_settings_is_used() -> None:
    """A field of the settings that no other module reads is a setting without an effect."""
    code = "\n".join(text for path, text in texts("shared", "functions", "local").items() if path != SETTINGS_FILE)
    names = [each.name for kind in (Settings, Rules) for each in fields(kind)]
    assert [name for name in names if not re.search(rf"\.{name}\b", code)] == []


def test_the_docs_name_no_setting_that_nothing_reads() -> None:
    """A variable in a page of the docs is in the code: of the app, the command line, the trainers or infra/."""
    code = "\n".join(texts(*CODE, ".ci", "emulators/src", "benchmarks", "tests").values())
    named = {(path.name, name) for path, text in docs().items() for name in OURS.findall(text)}
    assert sorted((page, name) for page, name in named if name not in code) == []


def test_a_metric_that_the_docs_promise_is_written() -> None:
    """What the docs say of a metric holds without the reader's doing: a trainer or an adapter writes the metric.

    Otherwise the same paragraph says that the reader's own training has to.
    """
    code = "\n".join(texts("trainers", "shared/adapters").values())
    broken = []
    for path, text in docs().items():
        for paragraph in re.split(r"\n\s*\n", text):
            names = {name for name in METRIC.findall(paragraph) if not re.search(rf"[\"']{name}[\"']|\b{name}=", code)}
            if names and not YOURS.search(paragraph):
                broken.append(f"{path.name}: {', '.join(sorted(names))}")
    assert broken == []
