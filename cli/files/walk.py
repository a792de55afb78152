"""The files of a folder for sending. A link is sent only if the target is a sent file of the folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import CliError

NAMED = 5


def files_below(folder: Path, leave_out: Callable[[str], bool] = lambda _: False) -> list[tuple[str, Path]]:
    """Return (name relative to the folder, path) for each file, sorted by name. `leave_out` takes such a name; a
    folder's name ends with /.

    Raises CliError for links that lead out of the folder, to a folder, to a file that is left out, or to nothing. Such
    links are neither followed nor silently skipped.
    """
    root, refused = folder.resolve(), []
    files: list[tuple[str, Path]] = []
    for name, path in _walk(folder, "", leave_out):
        if path.is_symlink() and (reason := _fault(path, root, leave_out)):
            refused.append(f"{name} {reason}")
        elif path.is_file():
            files.append((name, path))
    if refused:
        more = f", and {len(refused) - NAMED:,} more" if len(refused) > NAMED else ""
        raise CliError(
            f"{folder} has links that Trainyard does not follow: {'; '.join(refused[:NAMED])}{more}. "
            "Copy the linked files into the folder, or remove the links."
        )
    return sorted(files)


def _walk(folder: Path, below: str, leave_out: Callable[[str], bool]) -> Iterator[tuple[str, Path]]:
    """Yield every entry that is not left out, at any depth. Folders themselves are not yielded; links to folders
    are."""
    with os.scandir(folder) as entries:
        for entry in list(entries):
            name, path = f"{below}{entry.name}", Path(entry.path)
            is_folder = entry.is_dir(follow_symlinks=False)
            if leave_out(f"{name}/" if is_folder else name) or (entry.is_symlink() and leave_out(f"{name}/")):
                continue
            if is_folder:
                yield from _walk(path, f"{name}/", leave_out)
            else:
                yield name, path


def _fault(link: Path, root: Path, leave_out: Callable[[str], bool]) -> str:
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: a circular link, before Python 3.13
        return f"points to {link.readlink()}, which does not exist"
    if not target.is_relative_to(root):
        return f"points outside the folder, to {target}"
    if target.is_dir():
        return "points to a folder"
    below = target.relative_to(root).as_posix()
    folders = [f"{folder.as_posix()}/" for folder in list(Path(below).parents)[:-1]]
    return f"points to {below}, which is ignored" if any(map(leave_out, [below, *folders])) else ""
