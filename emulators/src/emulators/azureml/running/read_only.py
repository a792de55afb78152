"""Folders that a job may read but not write to, like a mounted input in Azure ML.

Files and folders lose their write permission. The superuser can write nevertheless, so its jobs are started without
this right if util-linux's setpriv is available and allowed to remove it.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

from emulators.process import IS_WINDOWS

_READ = 0o555


def close(folder: Path) -> None:
    """Make the folder and its content read-only. Does nothing on Windows, which lacks the permission."""
    if IS_WINDOWS:
        return
    for path, _, names in os.walk(folder, topdown=False):
        for name in names:
            file = Path(path, name)
            file.chmod(file.stat().st_mode & _READ)
        Path(path).chmod(0o555)


@functools.cache
def obeying() -> tuple[str, ...]:
    """Return the prefix that makes a command respect file permissions, also for root. The prefix is empty if none
    is needed or setpriv is not available."""
    if IS_WINDOWS or os.geteuid() != 0 or not (program := shutil.which("setpriv")):
        return ()
    words = (program, "--bounding-set=-dac_override")
    return words if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0 else ()
