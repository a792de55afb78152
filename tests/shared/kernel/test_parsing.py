from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
RACE = Path(__file__).with_name("msgspec_race.py")


@pytest.mark.parametrize("first", ["convert", "schema"])
@pytest.mark.parametrize("kind", ["dataclass", "struct"])
def test_two_threads_meet_one_class_for_the_first_time(kind: str, first: str) -> None:
    """The second thread waits until msgspec knows the whole class; without the lock, the process crashes."""
    for then in ("convert", "decode"):
        program = [sys.executable, str(RACE), "--class", kind, "--first", first, "--then", then]
        done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, "text='a'" in done.stdout) == (0, True), done.stderr


def test_nobody_goes_around_the_lock() -> None:
    """Only shared/kernel/parsing.py calls the functions that make msgspec build its information about a class."""
    builds = re.compile(r"msgspec\.(convert|json\.(decode|schema|schema_components|Decoder))\b")
    files = [path for folder in ("shared", "functions", "cli", ".ci") for path in (ROOT / folder).rglob("*.py")]
    assert [path.name for path in files if builds.search(path.read_text("utf-8"))] == ["parsing.py"]
