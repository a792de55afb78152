"""Environments of jobs, really made: with what is installed here, by links."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from emulators.azureml.environments import Environments, JobEnvironment
from emulators.azureml.errors import DataError
from emulators.azureml.recipe import Recipe
from emulators.process import wait_for


def give(folder: Path, name: str, *requirements: str) -> JobEnvironment:
    made = Environments(folder / "made", Path(sys.executable))
    return asyncio.run(made.give(Recipe(requirements), folder / name))


def run(environment: JobEnvironment, *words: str) -> subprocess.CompletedProcess[str]:
    program = environment.scripts / words[0]
    return subprocess.run([program, *words[1:]], capture_output=True, text=True)


def test_a_job_can_break_nothing_but_its_own_environment(tmp_path: Path) -> None:
    """What a job uninstalls stays for the next job and for this program; what it did not ask for is not there.

    The second environment of the same content is made without installing anything.
    """
    first = give(tmp_path, "first", "msgspec")
    assert run(first, "python", "-c", "import msgspec").returncode == 0
    assert "No module named 'aiohttp'" in run(first, "python", "-c", "import aiohttp").stderr
    said = run(first, "pip", "uninstall", "--yes", "msgspec")
    assert "outside environment" in said.stdout + said.stderr
    second = give(tmp_path, "second", "msgspec")
    for environment in (first, second):
        assert run(environment, "python", "-c", "import msgspec").returncode == 0
    assert len(list((tmp_path / "made").glob("*/complete.json"))) == 1
    assert second.scripts != first.scripts
    subprocess.run([sys.executable, "-c", "import msgspec"], check=True)


def test_an_installation_ends_with_the_control_plane(tmp_path: Path) -> None:
    """Closing ends uv where it is; whoever waits for the environment hears that it was not made."""
    uv, started = tmp_path / "bin" / "uv", tmp_path / "started"
    uv.parent.mkdir()
    really = shutil.which("uv", path=str(Path(sys.executable).parent))
    slow = f"touch {started}; exec sleep 60"
    uv.write_text(f'#!/bin/sh\ncase "$*" in *requirements.txt) {slow};; esac\nexec {really} "$@"\n')
    uv.chmod(0o755)
    (uv.parent / "python").symlink_to(sys.executable)

    async def interrupted() -> None:
        environments = Environments(tmp_path / "made", uv.parent / "python")
        waiting = asyncio.create_task(environments.give(Recipe(("no-such-package",)), tmp_path / "job"))
        await asyncio.to_thread(wait_for, started.exists, 30, "uv to be at work")
        environments.close()
        with pytest.raises(DataError, match="can't be made"):
            await waiting

    began = time.monotonic()
    asyncio.run(interrupted())
    assert time.monotonic() - began < 50


def test_an_environment_that_can_not_be_made_says_why(tmp_path: Path) -> None:
    """uv's own words are in the error, and the half that was made is not taken for a whole the next time."""
    for _ in range(2):
        with pytest.raises(DataError, match=r"(?s)can't be made on this machine.*msgspec"):
            give(tmp_path, "job", "msgspec==99.99", "--no-index")
