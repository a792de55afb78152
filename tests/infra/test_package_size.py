"""The dependencies of the deployed app, compiled: every instance that starts from zero downloads all of them."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

from benchmarks.package import MOST_COMPILED
from tests.infra.declared import ROOT


def deployed() -> list[str]:
    """The packages of requirements.txt for this Python. A package for another platform or version is not installed."""
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    named = [
        re.match(r"([\w.-]+)==([^\s;]+)(?: ; (.*))?$", line) for line in lines if line and not line.startswith(" ")
    ]
    assert all(named)
    pinned = {match[1]: match[2] for match in named if match and not _is_for_others(match[3] or "")}
    for name, version in pinned.items():
        assert distribution(name).version == version, f"{name} {distribution(name).version} is installed"
    return list(pinned)


def _is_for_others(marker: str) -> bool:
    newer = re.fullmatch(r"python_full_version (<|>=) '3\.(\d+)'", marker)
    if newer is None:
        return False  # a condition on the interpreter, true for CPython
    return (sys.version_info[1] < int(newer[2])) != (newer[1] == "<")


def test_the_dependencies_have_at_most_120_mb(tmp_path: Path) -> None:
    """The limit counts the installed files, with each module compiled anew, as the platform's build compiles them."""
    files = [Path(str(file.locate())) for name in deployed() for file in distribution(name).files or ()]
    kept = [file for file in files if file.suffix != ".pyc" and "/bin/" not in str(file) and file.is_file()]
    modules = "".join(f"{file}\n" for file in kept if file.suffix == ".py")
    compiled = [sys.executable, "-X", f"pycache_prefix={tmp_path}", "-m", "compileall", "-q", "-j", "2", "-i", "-"]
    subprocess.run(compiled, input=modules, text=True, check=True)
    made = list(tmp_path.rglob("*.pyc"))
    assert len(made) > 1000
    size = sum(file.stat().st_size for file in (*kept, *made))
    assert 50_000_000 < size <= MOST_COMPILED, f"{size / 1e6:.1f} MB"
