"""Environments are kept for later jobs, and removed when unused, because the folder grows with each new content."""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock, Timeout

log = logging.getLogger(__name__)

DAY = 86_400.0
UNUSED_SECONDS = 30 * DAY
MOST = 40
SURELY_IDLE_SECONDS = 2 * DAY  # longer than a laptop's job runs in an old environment
COMPLETE = "complete.json"  # its time is the time of the last use


def to_remove(used: Mapping[str, float], now: float) -> list[str]:
    """Return the names of the environments to remove, by the time of their last use: those unused for 30 days, and
    those unused for 2 days that are not among the 40 most recently used."""
    latest = sorted(used, key=lambda name: used[name], reverse=True)
    old = [name for name in latest[:MOST] if now - used[name] > UNUSED_SECONDS]
    return old + [name for name in latest[MOST:] if now - used[name] > SURELY_IDLE_SECONDS]


def prune(folder: Path, now: float) -> list[str]:
    """Remove the environments that `to_remove` returns, and return the removed names. An environment that is being
    installed is skipped."""
    removed = []
    for name in to_remove(_used(folder), now):
        with contextlib.suppress(Timeout, OSError), FileLock(folder / f"{name}.lock", timeout=0):
            (folder / name / COMPLETE).unlink(missing_ok=True)  # first, so that a partial one is not used
            shutil.rmtree(folder / name)
            removed.append(name)
    if removed:
        log.info("removed %d environments that no job has used lately", len(removed))
    return removed


def _used(folder: Path) -> dict[str, float]:
    """Return the time of each environment's last use. For an interrupted installation this is when it began."""
    found = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir():
            with contextlib.suppress(FileNotFoundError):
                complete = path / COMPLETE
                found[path.name] = (complete if complete.exists() else path).stat().st_mtime
    return found
