"""Each benchmark has the two options, and its figures are on a page."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if not path.stem.startswith("_"))


@pytest.mark.parametrize("name", NAMES)
def test_it_has_both_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--help names --quick, for each night's check, and --json, for machines."""
    with pytest.raises(SystemExit):
        importlib.import_module(f"benchmarks.{name}").main(["--help"])
    told = capsys.readouterr().out
    assert re.search(r"^ +--quick +\S", told, re.MULTILINE)
    assert re.search(r"^ +--json +\S", told, re.MULTILINE)


def test_each_is_quoted() -> None:
    """A benchmark whose figures are on no page is deleted, and no page quotes a missing benchmark."""
    folders = ROOT / "docs", ROOT / "emulators"
    pages = [page.read_text("utf-8") for folder in folders for page in folder.rglob("*.md")]
    quoted = {name for page in pages for name in re.findall(r"`(?:python3 trainyard\.py )?bench (\w+)", page)}
    assert quoted - {"PART"} == set(NAMES)
