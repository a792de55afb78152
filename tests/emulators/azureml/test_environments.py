"""Environments of jobs, really made: with what is installed here, by links."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from emulators.azureml.environments import Environments, JobEnvironment
from emulators.azureml.errors import DataError
from emulators.azureml.recipe import Recipe


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


def test_an_environment_that_can_not_be_made_says_why(tmp_path: Path) -> None:
    """uv's own words are in the error, and the half that was made is not taken for a whole the next time."""
    for _ in range(2):
        with pytest.raises(DataError, match=r"(?s)can't be made on this machine.*msgspec"):
            give(tmp_path, "job", "msgspec==99.99", "--no-index")
