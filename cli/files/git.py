"""The commit that a folder is at, as the properties by which Azure ML shows it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

SECONDS = 10.0


def properties(folder: Path) -> dict[str, str]:
    """Commit, branch, repository, and whether files of the folder differ from the commit; empty outside of git."""
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return {}
    values = {
        "azureml.git.commit": commit,
        "azureml.git.dirty": str(bool(_git(folder, "status", "--porcelain", "--", "."))),
        "azureml.git.branch": _git(folder, "symbolic-ref", "--short", "--quiet", "HEAD"),
        "azureml.git.repository_uri": without_secrets(_git(folder, "ls-remote", "--get-url")),
    }
    return {name: value for name, value in values.items() if value}


def without_secrets(address: str) -> str:
    """A repository's address without the user and password in it."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or "@" not in parts.netloc:
        return address
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _git(folder: Path, *arguments: str) -> str:
    where = folder if folder.is_dir() else folder.parent
    try:
        done = subprocess.run(["git", "-C", str(where), *arguments], capture_output=True, text=True, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
