"""Which bash runs jobs on Windows, with simulated PATH folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulators.azureml.running.shell import NoShell, windows_bash


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A Windows with WSL. WSL's bash is first on PATH, once as a program and once as the Store's alias."""
    folders = [tmp_path / "Windows" / "System32", tmp_path / "Users" / "ada" / "Microsoft" / "WindowsApps"]
    for folder in folders:
        program(folder / "bash.exe")
    return {
        "SystemRoot": str(tmp_path / "WINDOWS"),
        "ProgramFiles": str(tmp_path / "Program Files"),
        "PATH": ";".join(map(str, folders)) + ";",
    }


def program(file: Path) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"MZ")
    return str(file)


def test_the_bash_of_wsl_is_refused_in_words(env: dict[str, str]) -> None:
    """If only WSL's bash exists, the job does not run. The error has the reason and the program to install."""
    with pytest.raises(NoShell, match=r"WSL's is not taken.*install Git for Windows"):
        windows_bash(env)
    with pytest.raises(NoShell, match=r"this Windows has none. To have one"):
        windows_bash({"PATH": ""})


@pytest.mark.parametrize("on_path", [True, False])
def test_the_bash_of_git_is_found(env: dict[str, str], tmp_path: Path, on_path: bool) -> None:
    """Git's bash is found by its path, whether PATH contains Git's `git` or nothing of Git."""
    git = tmp_path / ("tools" if on_path else "Program Files") / "Git"
    program(git / "cmd" / "git.exe")
    if on_path:
        env["PATH"] += str(git / "cmd")
    bash = program(git / "bin" / "bash.exe")
    assert windows_bash(env) == bash


def test_another_bash_on_path_will_do(env: dict[str, str], tmp_path: Path) -> None:
    """Without Git, MSYS2's bash is used, even if WSL's bash is earlier on PATH."""
    env["PATH"] += f'"{tmp_path / "msys64" / "usr" / "bin"}"'
    bash = program(tmp_path / "msys64" / "usr" / "bin" / "bash.exe")
    assert windows_bash(env) == bash
