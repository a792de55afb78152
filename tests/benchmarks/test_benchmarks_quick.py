"""Each benchmark runs to its figures each night, so that none breaks unnoticed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if not path.stem.startswith("_"))
LONGEST = 600  # seconds; one minute on an idle machine


@pytest.mark.parametrize("name", NAMES)
def test_quick_ends_with_figures(name: str) -> None:
    """With --quick --json the benchmark succeeds, and its last line is a JSON object with a figure."""
    argv = [sys.executable, "-m", f"benchmarks.{name}", "--quick", "--json"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST)
    if missing := [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("There is no ")]:
        pytest.skip(missing[0])  # a clone may lack a browser or data
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    last: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert figures(last)


def figures(value: object) -> list[float]:
    """All numbers in a JSON value."""
    if isinstance(value, dict):
        return [figure for each in value.values() for figure in figures(each)]
    if isinstance(value, list):
        return [figure for each in value for figure in figures(each)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []
