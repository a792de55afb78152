"""A settable clock for a benchmark and all processes that the benchmark starts. Needs Linux and a C compiler.

clock.c adds a constant to the time that a process reads. The processes of nodes keep the real time, because jobs get a
separate environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")
OFFSET = "OFFSET_SECONDS"


def compiled(folder: Path) -> Path | None:
    """Compile the library into this folder and return its file, or None without a C compiler."""
    if not (compiler := shutil.which("cc")) or sys.platform != "linux":
        return None
    library = folder / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE)], check=True)
    return library


def environment(env: Mapping[str, str], library: Path, begin: datetime, now: datetime) -> dict[str, str]:
    """Return the environment of a process whose clock reads `begin` now."""
    preload = " ".join(filter(None, (str(library), env.get("LD_PRELOAD", ""))))
    return {**env, "LD_PRELOAD": preload, OFFSET: f"{(begin - now).total_seconds():.0f}"}


def with_clock(begin: datetime, module: str, argv: Sequence[str]) -> int:
    """Run this benchmark in a process whose clock begins at `begin`, and return its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        if not (library := compiled(Path(folder))):
            print("There is no C compiler, or this is not Linux: no clock can be set.")
            return 2
        env = environment(os.environ, library, begin, datetime.now(UTC))
        return subprocess.run([sys.executable, "-m", module, *argv], env=env).returncode


def is_set() -> bool:
    """Return whether the clock of this process was set."""
    return OFFSET in os.environ


def moment(text: str) -> datetime:
    """Read a time with a zone, as in 2026-01-31T23:58:00Z. Raises ValueError."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text!r} has no zone; end it with Z for UTC")
    return found
