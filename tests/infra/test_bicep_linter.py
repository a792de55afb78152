"""Microsoft's own Bicep compiler and linter on infra/, where they are installed (neither PyPI nor npm has them)."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.infra.declared import INFRA

ABSENT = "MICROSOFT'S BICEP LINTER: install bicep on PATH (`az bicep install`, then ~/.azure/bin)"
MESSAGE = re.compile(r" : (?:Warning|Error) ")


def messages(bicep: str, file: Path) -> list[str]:
    """The warnings and errors of the compiler and of the linter."""
    found = []
    for argv in ([bicep, "build", str(file), "--stdout"], [bicep, "lint", str(file)]):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
        lines = [line for line in (done.stderr + done.stdout).splitlines() if MESSAGE.search(line)]
        found += lines or ([done.stderr] if done.returncode else [])
    return found


@pytest.mark.parametrize("name", ["main.bicep", "subscription.bicep"])
def test_microsofts_linter_finds_nothing(name: str) -> None:
    """Neither the compiler nor any rule of infra/bicepconfig.json reports a problem."""
    if not (bicep := shutil.which("bicep")):
        pytest.skip(ABSENT)
    assert messages(bicep, INFRA / name) == []


def test_a_complaint_is_found(tmp_path: Path) -> None:
    """A warning of either command counts, and so does a command that fails without one."""
    program = tmp_path / "bicep"
    program.write_text('#!/bin/sh\n[ "$1" = lint ] && echo "a.bicep(3,7) : Warning no-unused: x" >&2\nexit 0\n')
    program.chmod(0o755)
    assert messages(str(program), INFRA / "main.bicep") == ["a.bicep(3,7) : Warning no-unused: x"]
    program.write_text('#!/bin/sh\necho "no such file" >&2\nexit 1\n')
    assert messages(str(program), INFRA / "main.bicep") == ["no such file\n"] * 2
