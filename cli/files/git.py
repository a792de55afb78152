"""The git commit of a folder, in the properties with which Azure ML shows a commit.

The folder may come from a stranger, and git runs programs that a repository's own configuration names: a file system
monitor, hooks, attribute filters, and helpers that fetch missing objects. Every call therefore turns all of these off.
A bare repository inside a folder, which an archive or a clone could contain, is ignored.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

SECONDS = 10.0
# Given by the environment, which ranks above the repository's configuration.
SAFE_CONFIG = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.untrackedCache": "false",
    "diff.external": "",
    "safe.bareRepository": "explicit",
}
SAFE_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",  # missing objects are never fetched
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",  # nothing is written, so no hook follows
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
UNTRUSTED_SCOPES = ("local", "worktree")
STATUS = ("status", "--porcelain", "--ignore-submodules=dirty", "--", ".")  # a submodule has its own configuration


def properties(folder: Path) -> dict[str, str]:
    """Return the commit, the branch, the repository, and whether files of the folder differ from the commit; empty
    outside a git repository."""
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return {}
    values = {
        "azureml.git.commit": commit,
        "azureml.git.dirty": str(bool(_git(folder, *STATUS, config=_no_filters(folder)))),
        "azureml.git.branch": _git(folder, "symbolic-ref", "--short", "--quiet", "HEAD"),
        "azureml.git.repository_uri": without_secrets(_git(folder, "ls-remote", "--get-url")),
    }
    return {name: _as_text(value) for name, value in values.items() if value}


def without_secrets(address: str) -> str:
    """Return a repository's URL without a user and password."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or "@" not in parts.netloc:
        return address
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _no_filters(folder: Path) -> dict[str, str]:
    """Return settings that turn off the filters of the repository's own configuration. Filters of the user's
    configuration stay on."""
    fields = _git(folder, "config", "--list", "--show-scope", "--name-only", "-z").split("\0")
    own = [name for scope, name in zip(fields[::2], fields[1::2], strict=False) if scope in UNTRUSTED_SCOPES]
    filters = {name.rpartition(".")[0] for name in own if name.startswith("filter.")}
    off = {"clean": "", "smudge": "", "process": "", "required": "false"}
    return {f"{section}.{key}": value for section in filters for key, value in off.items()}


def _git(folder: Path, *arguments: str, config: Mapping[str, str] | None = None) -> str:
    where = folder if folder.is_dir() else folder.parent
    argv = ["git", "--no-pager", "-C", str(where), *arguments]
    environment = {**os.environ, **SAFE_ENVIRONMENT, **_as_environment({**SAFE_CONFIG, **(config or {})})}
    try:
        done = subprocess.run(
            argv, capture_output=True, encoding="utf-8", errors="surrogateescape", timeout=SECONDS, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _as_text(value: str) -> str:
    """Replace bytes that are not UTF-8. Git accepts any bytes in the name of a branch or filter, JSON does not."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _as_environment(config: Mapping[str, str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for number, (key, value) in enumerate(config.items()):
        pairs |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {"GIT_CONFIG_COUNT": str(len(config)), **pairs}
