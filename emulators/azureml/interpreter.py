"""A folder whose `python` is the nodes' interpreter, to go first on a job's PATH."""

from __future__ import annotations

from pathlib import Path

from emulators.process import IS_WINDOWS


def on_path(python: Path, folder: Path) -> Path:
    """Return a `python` that runs `python`: itself if it has that name, else a script in `folder` that starts it.

    No symbolic link, as an interpreter finds its virtual environment by the path that it was started under.
    """
    if python.stem == "python":
        return python
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / ("python.cmd" if IS_WINDOWS else "python")
    script.write_text(f'@"{python}" %*\n' if IS_WINDOWS else f'#!/bin/sh\nexec "{python}" "$@"\n')
    script.chmod(0o755)
    return script
