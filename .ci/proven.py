"""Whether the emulators are unchanged since all of their tests passed, so that the app's gate need not run them.

The emulators are a product of their own, with half of the gate's time. They count as proven if the folder, the pinned
requirements and Python are those of a gate that passed here, which leaves a mark in .trainyard, or if the folder and
the requirements are those of the target branch of a change: CI runs their tests on each commit of that branch.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

FOLDER, REQUIREMENTS = "emulators", "requirements-dev.txt"
TARGET = "origin/main"


def since(root: Path, mark: Path) -> str:
    """Return since when they are proven, in words; "" if they are not."""
    if mark.exists() and mark.read_text() == state(root):
        return "they passed here"
    base = _git(root, "merge-base", "HEAD", TARGET).stdout.strip()
    if base and not _differs(root, base):
        return f"{base[:8]} of {TARGET}"
    return ""


def state(root: Path) -> str:
    """Return a digest of everything that their tests depend on; "" outside a git checkout."""
    listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", FOLDER, REQUIREMENTS).stdout
    digest = hashlib.sha256(sys.version.encode())
    for name in sorted(filter(None, listed.split("\0"))):
        file = root / name
        digest.update(f"{name}\0".encode() + (file.read_bytes() if file.is_file() else b"gone") + b"\0")
    return digest.hexdigest() if listed else ""


def keep(root: Path, mark: Path) -> None:
    """Write the mark, after all of their tests passed."""
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_text(state(root))


def _differs(root: Path, base: str) -> bool:
    places = ("--", FOLDER, REQUIREMENTS)
    changed = _git(root, "diff", "--quiet", base, *places).returncode != 0
    return changed or bool(_git(root, "ls-files", "--others", "--exclude-standard", *places).stdout)


def _git(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    except OSError:  # a machine without git, where nothing is proven
        return subprocess.CompletedProcess(words, 1, "", "")
