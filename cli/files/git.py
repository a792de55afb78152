"""The commit that a folder is at, as the properties by which Azure ML shows it.

The folder may be a stranger's, and git runs what a repository's own configuration names: a file system monitor, hooks,
filters of attributes, helpers that fetch what is missing. So every call is made with all of these turned off. A
repository that lies bare inside of a folder, where an archive or a clone could have put it, is not looked at.
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
    "GIT_ALLOW_PROTOCOL": "none",  # what is missing is fetched from nowhere
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",  # nothing is written, so no hook follows
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
UNTRUSTED_SCOPES = ("local", "worktree")
STATUS = ("status", "--porcelain", "--ignore-submodules=dirty", "--", ".")  # a submodule has a configuration of its own


def properties(folder: Path) -> dict[str, str]:
    """Commit, branch, repository, and whether files of the folder differ from the commit; empty outside of git."""
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
    """A repository's address without the user and password in it."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or "@" not in parts.netloc:
        return address
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _no_filters(folder: Path) -> dict[str, str]:
    """The repository's own filters, as settings that turn them off. Those of the user's own configuration stay."""
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
    """Replace what is not UTF-8: git takes any bytes as the name of a branch or filter, and JSON does not."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _as_environment(config: Mapping[str, str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for number, (key, value) in enumerate(config.items()):
        pairs |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {"GIT_CONFIG_COUNT": str(len(config)), **pairs}
