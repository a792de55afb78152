"""The shell that runs a job's command, which is written for Linux's bash.

On Windows the first bash on PATH is often WSL's (in System32, or an alias in WindowsApps). WSL is another system,
without this system's paths and Python, so its bash is never used. Instead the bash of Git for Windows is used, or
another bash on PATH such as MSYS2's.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from emulators.process import IS_WINDOWS

GIT_FOLDERS = ("ProgramFiles", "ProgramW6432", "ProgramFiles(x86)")
ADVICE = "install Git for Windows (https://gitforwindows.org), or put its folder bin on PATH"


class NoShell(OSError):
    """This machine has no bash for jobs. The message says what to do."""


def argv(command: str) -> list[str]:
    """Return the arguments for running this command in a shell. Raises NoShell on Windows without a suitable bash."""
    if IS_WINDOWS:
        return [windows_bash(os.environ), "-c", command]
    return [shutil.which("bash") or "sh", "-c", command]


def windows_bash(env: Mapping[str, str]) -> str:
    """Return the path of bash on Windows, found with these environment variables. Raises NoShell."""
    for place in _places(env):
        if place.is_file():
            return str(place)
    skipped = " WSL's is not taken: it runs in another system than the cloud." if _wsl_on_path(env) else ""
    raise NoShell(f"A job's command needs bash, and this Windows has none.{skipped} To have one, {ADVICE}.")


def _places(env: Mapping[str, str]) -> Iterator[Path]:
    """Yield the paths where bash may be: beside the Git on PATH, in Git's installation folders, then anywhere on
    PATH."""
    for folder in _path(env):
        if (folder / "git.exe").is_file():
            yield folder.parent / "bin" / "bash.exe"
    for name in GIT_FOLDERS:
        if env.get(name):
            yield Path(env[name], "Git", "bin", "bash.exe")
    if env.get("LOCALAPPDATA"):
        yield Path(env["LOCALAPPDATA"], "Programs", "Git", "bin", "bash.exe")
    for folder in _path(env):
        if not _is_wsl(folder, env):
            yield folder / "bash.exe"


def _wsl_on_path(env: Mapping[str, str]) -> bool:
    return any(_is_wsl(folder, env) and (folder / "bash.exe").is_file() for folder in _path(env))


def _is_wsl(folder: Path, env: Mapping[str, str]) -> bool:
    """Return whether a bash.exe in this folder belongs to WSL: the folder is Windows' own, or has the Store's
    aliases."""
    names = [part.lower() for part in folder.parts]
    windows = [part.lower() for part in Path(env.get("SystemRoot", "C:/Windows")).parts]
    return "windowsapps" in names or names[: len(windows)] == windows


def _path(env: Mapping[str, str]) -> list[Path]:
    return [Path(folder.strip('"')) for folder in env.get("PATH", "").split(";") if folder]
