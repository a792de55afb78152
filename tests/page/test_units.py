"""The pure parts of the page in Node's own test runner, and its sources under ESLint and the TypeScript compiler."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from functions import page
from local import page_bundle

UNITS = Path(__file__).parent / "units"


def test_the_pure_parts_pass_their_tests() -> None:
    """Each file of tests/page/units runs without a browser; a failing test shows Node's report."""
    if not (node := shutil.which("node")):
        pytest.skip("THE PAGE'S PARTS ARE NOT TESTED: there is no Node here")
    files = sorted(map(str, UNITS.glob("*.test.js")))
    assert len(files) > 1
    done = subprocess.run([node, "--test", *files], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


PROJECTS = ("jsconfig.json", "jsconfig.views.json")


@pytest.mark.parametrize(("tool", "options"), [("eslint", ["."]), *(("tsc", ["--project", name]) for name in PROJECTS)])
def test_the_sources_pass(tool: str, options: list[str]) -> None:
    """ESLint finds nothing. The JSDoc types hold, strictly in the files of jsconfig.json; views read only fields of
    the API's answers."""
    program = page_bundle.TOOLS / "node_modules" / ".bin" / tool
    if not program.exists():
        pytest.skip(f"THE PAGE IS NOT CHECKED BY {tool}: `python -m local.page_bundle` installs it")
    done = subprocess.run([str(program), *options], cwd=page.FOLDER, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
