"""Whether a file with an address for secrets can be trusted: nobody but the user may have written the file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..errors import CliError

LEVELS = 3  # cloud.json is in REPOSITORY/.trainyard/cloud
WINDOWS = os.name == "nt"  # Windows has access lists, and closes a user's folders to others


class Untrusted(CliError):
    """Another user could have written the file. The message says where, why and what to do."""


def check(file: Path) -> None:
    """Raise Untrusted if another user could have written or replaced this file. The file and its parent folders up to
    the repository are checked.

    Folders that belong to root are trusted, and so are folders like /tmp, where everybody may write but only owners may
    change their files (the sticky bit).
    """
    if WINDOWS or not file.exists():
        return
    file = file.absolute()
    for path in [file, *file.parents[:LEVELS]]:
        if why := _fault(path):
            raise Untrusted(
                f"{file} is not trusted: {path} {why}, and whoever writes the file decides where your data and keys "
                "go. "
                f"If you trust this, close it with `chmod go-w {path}`; else remove {file}."
            )


def _fault(path: Path) -> str:
    status = path.stat()
    if status.st_uid not in (0, os.geteuid()):
        return f"belongs to another user ({_name(status.st_uid)})"
    open_folder = stat.S_ISDIR(status.st_mode) and not status.st_mode & stat.S_ISVTX
    if not (open_folder or stat.S_ISREG(status.st_mode)):
        return ""
    if status.st_mode & stat.S_IWOTH:
        return "can be written by everyone"
    if status.st_mode & stat.S_IWGRP and not _is_own_group(status.st_gid):
        return "can be written by its group"
    return ""


def _name(uid: int) -> str:
    import pwd  # not on Windows

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _is_own_group(gid: int) -> bool:
    """Return whether the group has only this user. Many systems create such a group for each user, with a umask of
    002."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return group.gr_gid == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
