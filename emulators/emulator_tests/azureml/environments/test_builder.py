"""Environments of jobs are really built, with links to the packages installed here."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from emulators.azureml.environments.builder import Environments, JobEnvironment, finding_pythons
from emulators.azureml.environments.model import Recipe
from emulators.azureml.environments.pruning import COMPLETE, DAY, prune, to_remove
from emulators.azureml.kernel.errors import DataError
from emulators.process import wait_for


def give(folder: Path, name: str, *requirements: str) -> JobEnvironment:
    made = Environments(folder / "made", Path(sys.executable))
    return asyncio.run(made.give(Recipe(requirements), folder / name))


def run(environment: JobEnvironment, *words: str) -> subprocess.CompletedProcess[str]:
    program = environment.scripts / words[0]
    return subprocess.run([program, *words[1:]], capture_output=True, text=True)


def test_a_job_can_break_nothing_but_its_own_environment(tmp_path: Path) -> None:
    """A job that uninstalls packages affects neither the next job nor this program. A job has only the packages
    that it requested.

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
    """Closing ends uv at once, and a job that waits for the environment learns that it is missing."""
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
        with pytest.raises(DataError, match="can't be made"):  # an installation that was about to start
            environments._uv("pip", "install", "-r", "requirements.txt")

    began = time.monotonic()
    asyncio.run(interrupted())
    assert time.monotonic() - began < 50


def test_who_is_canceled_waits_for_nobody(tmp_path: Path) -> None:
    """A job that is canceled while another process installs its environment holds no thread, so it does not delay a
    stop."""
    give(tmp_path, "first")
    (complete,) = tmp_path.glob(f"made/*/{COMPLETE}")
    complete.unlink()
    environments = Environments(tmp_path / "made", Path(sys.executable))

    async def canceled() -> bool:
        waiting = [asyncio.create_task(environments.give(Recipe(()), tmp_path / f"{n}")) for n in range(3)]
        await asyncio.wait(waiting, timeout=0.2)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        ended = asyncio.create_task(asyncio.to_thread(environments._threads.shutdown))
        return bool((await asyncio.wait([ended], timeout=30))[0])

    async def while_it_is_made() -> bool:
        with FileLock(complete.parent.with_suffix(".lock")):
            return await canceled()

    assert asyncio.run(while_it_is_made())
    assert not complete.exists()


def test_what_was_under_way_for_a_canceled_job_goes(tmp_path: Path) -> None:
    """The unfinished environment of a canceled job is removed, and so are the empty folders around it."""
    environments = Environments(tmp_path / "made", Path(sys.executable))

    async def canceled() -> None:
        task = asyncio.create_task(
            environments.give(Recipe(()), tmp_path / "work" / "job" / "attempt-1" / "environment")
        )
        while not environments._threads._threads:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.to_thread(environments._threads.shutdown)

    (tmp_path / "work").mkdir()
    asyncio.run(canceled())
    assert list((tmp_path / "work").iterdir()) == []


def test_an_environment_that_can_not_be_made_says_why(tmp_path: Path) -> None:
    """The error has uv's own message, and the next attempt does not use the half-made environment."""
    for _ in range(2):
        with pytest.raises(DataError, match=r"(?s)can't be made on this machine.*msgspec"):
            give(tmp_path, "job", "msgspec==99.99", "--no-index")


@pytest.mark.parametrize("brought", [("msgspec==99.99", "--no-index"), ("msgspec<0.1", "--no-index")])
def test_what_comes_along_fails_no_environment(tmp_path: Path, brought: tuple[str, ...]) -> None:
    """An environment lacks what comes along if no index has it, or if it does not fit the requirements; the log says
    so."""
    made, log = Environments(tmp_path / "made", Path(sys.executable)), tmp_path / "log.txt"
    recipe = Recipe(("msgspec>=0.1",), brought=brought)
    environment = asyncio.run(made.give(recipe, tmp_path / "job", log))
    assert run(environment, "python", "-c", "import msgspec").returncode == 0
    assert f"Without {brought[0]}" in log.read_text()


def test_a_check_makes_nothing_and_says_what_no_index_has(tmp_path: Path) -> None:
    """A check reports impossible requirements in uv's words. Requirements that the installed packages meet pass."""
    made = Environments(tmp_path, Path(sys.executable))
    asyncio.run(made.check(Recipe(("msgspec",))))
    with pytest.raises(DataError, match=r"(?s)can't be made on this machine.*msgspec==99\.99"):
        asyncio.run(made.check(Recipe(("msgspec==99.99", "--no-index"))))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("requirement", ["msgspec ==", "msgspec ; colour == 'red'", "ms gspec", "\ud800"])
def test_what_can_not_be_read_is_said(tmp_path: Path, requirement: str) -> None:
    """An unreadable requirement or marker is an error with a message, both in the check and in the installation."""
    made = Environments(tmp_path / "made", Path(sys.executable))
    with pytest.raises(DataError, match="can't be made on this machine"):
        asyncio.run(made.check(Recipe((requirement,))))
    with pytest.raises(DataError, match="can't be made on this machine"):
        asyncio.run(made.give(Recipe((requirement,)), tmp_path / "job"))


def test_a_version_of_python_that_is_not_here_is_refused(tmp_path: Path) -> None:
    """An unavailable Python is refused before any installation, with the available versions. A recipe that accepts
    another version gets it, with a note."""
    made, here = Environments(tmp_path / "made", Path(sys.executable)), f"3.{sys.version_info.minor}"
    with pytest.raises(DataError, match=rf"asks for Python 3\.5, which this machine does not have; it has: .*{here}"):
        asyncio.run(made.check(Recipe(python="3.5")))
    environment = asyncio.run(made.give(Recipe(python="3.5", or_python=(here,)), tmp_path / "job"))
    assert environment.notes == (f"In Azure this environment has Python 3.5; here it is {here}.",)
    assert run(environment, "python", "-V").stdout.startswith(f"Python {here}.")


def test_a_range_of_pythons_is_met_by_the_nodes_own_or_another(tmp_path: Path) -> None:
    """The nodes' own Python is taken if it is in the range. Otherwise an installed version in the range is taken, or
    the job is refused."""
    here = f"3.{sys.version_info.minor}"
    made = Environments(tmp_path / "made", Path(sys.executable))
    own = asyncio.run(made.give(Recipe(or_python=("3.5", here)), tmp_path / "job"))
    assert (run(own, "python", "-V").stdout.startswith(f"Python {here}."), own.notes) == (True, ())
    with pytest.raises(DataError, match=r"asks for Python 3\.4 or 3\.5, which this machine does not have"):
        asyncio.run(made.check(Recipe(or_python=("3.4", "3.5"))))
    assert Recipe(or_python=("3.5",)).digest("x") != Recipe().digest("x")


def test_how_an_environment_is_made_is_told(tmp_path: Path) -> None:
    """A separate log has the installed packages and the duration. Using an existing environment adds nothing to the
    log."""
    made, log = Environments(tmp_path / "made", Path(sys.executable)), tmp_path / "log.txt"
    recipe = Recipe(("msgspec",))
    assert not asyncio.run(made.is_made(recipe))
    asyncio.run(made.give(recipe, tmp_path / "one", log))
    assert re.search(r"(?s)Preparing the environment.*1 requirements.*ready after \d+ s", log.read_text())
    log.write_text("")
    assert asyncio.run(made.is_made(recipe))
    asyncio.run(made.give(recipe, tmp_path / "two", log))
    assert log.read_text() == ""


AGES = st.dictionaries(st.text("abc", min_size=1, max_size=6), st.floats(0, 60 * DAY), max_size=60)


@given(AGES)
@settings(max_examples=60)
def test_what_is_used_stays(ages: dict[str, float]) -> None:
    """Environments used within 2 days are kept, and environments unused for 30 days are removed. In between, the 40
    most recently used are kept."""
    now = 100 * DAY
    gone = set(to_remove({name: now - age for name, age in ages.items()}, now))
    assert {name for name, age in ages.items() if age > 30 * DAY} <= gone
    assert not [name for name in gone if ages[name] < 2 * DAY]
    kept = [age for name, age in ages.items() if name not in gone]
    assert len([age for age in kept if age > 2 * DAY]) <= 40
    assert all(ages[name] > 30 * DAY for name in gone) or len(ages) > 40


def test_pruning_leaves_one_that_is_being_made(tmp_path: Path) -> None:
    """Pruning removes an old environment with its files. A locked environment and one in use are kept."""
    for name in ("old", "busy", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / COMPLETE).write_text("{}")
    now = time.time()
    for name in ("old", "busy"):
        os.utime(tmp_path / name / COMPLETE, (now - 31 * DAY, now - 31 * DAY))
    with FileLock(tmp_path / "busy.lock"):
        assert prune(tmp_path, now) == ["old"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["busy", "new"]


def test_versions_of_pyenv_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pyenv's versions are found, including those outside of `pyenv global`, whose shims fail."""
    (tmp_path / "versions" / "3.10.13" / "bin").mkdir(parents=True)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", "/bin")
    assert finding_pythons()["PATH"] == f"{tmp_path}/versions/3.10.13/bin:/bin"
