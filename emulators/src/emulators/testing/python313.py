"""Finds Python 3.13, which Microsoft's azure-functions-runtime needs. It imports only the standard library, because
the gate uses it, too."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path


def find() -> str | None:
    """Return the path of a working Python 3.13, from PATH or from pyenv, or None."""
    return next(filter(_is_313, _candidates()), None)


def _candidates() -> Iterator[str]:
    if found := shutil.which("python3.13"):
        yield found
    if shutil.which("pyenv"):
        names = _output(["pyenv", "versions", "--bare"]).split()
        for name in sorted((name for name in names if name.startswith("3.13.")), reverse=True):
            yield str(Path(_output(["pyenv", "prefix", name])) / "bin" / "python3.13")


def _is_313(python: str) -> bool:
    """Return whether this command runs Python 3.13. A pyenv shim is on PATH even if its version is not selected."""
    return _output([python, "--version"]).startswith("Python 3.13.")


def _output(argv: list[str]) -> str:
    try:
        return subprocess.run(argv, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""
