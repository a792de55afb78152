"""Environments of jobs: uv builds one environment for each content, and each job gets its own environment on top of it.

Jobs never write to the built environment. A job's own environment is empty except for a line that adds the packages of
the built environment after its own. So packages that a job installs are in its own environment, and packages that it
uninstalls stay in the built one. Nothing here changes the interpreter's own packages, with which this program runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from filelock import FileLock

from emulators.azureml.environments.installed_packages import SCRIPTS, Installed
from emulators.azureml.environments.model import Recipe
from emulators.azureml.environments.pruning import COMPLETE, prune
from emulators.azureml.kernel.errors import DataError
from emulators.process import IS_WINDOWS

INSTALL_SECONDS = 1800
RESOLVE_SECONDS = 8  # for checking an environment, because a caller waits
AT_ONCE = 8  # environments that are built, or waited for, at a time
SAID_LINES = 12  # of uv's output in an error


UNREADABLE = "The job's environment can't be made on this machine. A requirement can't be read: {}"


class SlowUv(DataError):
    """uv exceeded its time limit."""


@dataclass(frozen=True)
class JobEnvironment:
    """The environment of one job. `notes` describe the differences from the requested environment. `seconds` is the
    installation time."""

    folder: Path
    variables: Mapping[str, str]
    notes: tuple[str, ...]
    seconds: float

    @property
    def scripts(self) -> Path:
        return self.folder / SCRIPTS


@dataclass(frozen=True)
class Making:
    """A caller that waits for an environment. `unwanted` is set when the caller gives up. `log` receives the
    progress."""

    unwanted: threading.Event
    log: Path | None

    def say(self, words: str) -> None:
        if self.log and words:
            with self.log.open("a") as file:
                file.write(f"{words}\n")


class Environments:
    """Builds environments under `folder`. `python` is the interpreter of jobs that request no version."""

    def __init__(self, folder: Path, python: Path) -> None:
        self._folder = folder
        self._python = python
        self._running: set[subprocess.Popen[str]] = set()
        self._closed = False
        self._resolved: set[str] = set()  # recipes that passed a check in this process
        # Separate threads, so that a long installation, and jobs that wait for it, delay nothing else.
        self._threads = ThreadPoolExecutor(AT_ONCE, "environments")

    async def give(self, recipe: Recipe, folder: Path, log: Path | None = None) -> JobEnvironment:
        """Create a job's own environment at `folder`, with notes in `log`.

        Raises DataError, with uv's words, if this fails.

        If the job is canceled, the method stops waiting for another process that builds the environment.
        """
        unwanted = threading.Event()
        making = Making(unwanted, log)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._give, recipe, folder, making)
        except ValueError as error:
            raise DataError(UNREADABLE.format(error)) from error
        finally:
            unwanted.set()

    async def is_made(self, recipe: Recipe) -> bool:
        """Return whether the recipe's environment is installed."""
        return await asyncio.to_thread(lambda: (self._folder / self._name(recipe) / COMPLETE).exists())

    async def check(self, recipe: Recipe) -> None:
        """Raise DataError, with uv's words, for requirements that can't be met. Nothing is installed.

        If the check exceeds the time limit, the recipe passes.
        """
        try:
            await asyncio.to_thread(self._check, recipe)
        except ValueError as error:
            raise DataError(UNREADABLE.format(error)) from error

    def tidy(self) -> None:
        """Start removing environments unused for a long time."""
        self._threads.submit(prune, self._folder, time.time())

    def close(self) -> None:
        """Stop the running installations. The next start repeats them."""
        self._closed = True  # first: new installations see it, and the others are already running
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in list(self._running):
            process.kill()

    def _give(self, recipe: Recipe, folder: Path, making: Making) -> JobEnvironment:
        began = time.monotonic()
        base = self._made(recipe, making)
        (base / COMPLETE).touch()  # record the use
        self._uv("venv", "--quiet", "--python", str(_python_of(base)), str(folder))
        _lay_over(base, folder)
        if making.unwanted.is_set():
            _remove(folder)  # the caller removed its folders, and uv created them again
        return JobEnvironment(folder, recipe.variables, self._notes(recipe), time.monotonic() - began)

    def _check(self, recipe: Recipe) -> None:
        name = self._name(recipe)
        if name in self._resolved or (self._folder / name / COMPLETE).exists():
            return
        version = self._version(recipe)
        if version or self._installed.satisfying(recipe.requirements)[1]:
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self._folder, prefix=".resolving-") as scratch:
                wanted = Path(scratch) / "requirements.txt"
                wanted.write_text("\n".join(recipe.requirements) + "\n")
                of = ("--python-version", version) if version else ("--python", str(self._python))
                try:
                    self._uv("pip", "compile", "--quiet", *of, str(wanted), seconds=RESOLVE_SECONDS)
                except SlowUv:
                    return
        self._resolved.add(name)

    def _version(self, recipe: Recipe) -> str:
        """Return the Python version for the recipe, or '' for the nodes' own. Raises DataError if this machine has
        none of the acceptable versions, because uv downloads none."""
        asked = tuple(filter(None, (recipe.python, *recipe.or_python)))
        if not asked or (not recipe.python and self._installed.minor in asked):
            return ""
        for version in asked:
            if version == self._installed.minor:
                return ""
            if self._has(version):
                return version
        raise DataError(
            f"The job's environment asks for Python {' or '.join(asked)}, which this machine does not have; it has: "
            f"{', '.join(self._versions())}. Install that version, or ask for one of these."
        )

    def _notes(self, recipe: Recipe) -> tuple[str, ...]:
        version = self._version(recipe) or self._installed.minor
        if recipe.python in ("", version):
            return recipe.notes
        return (*recipe.notes, f"In Azure this environment has Python {recipe.python}; here it is {version}.")

    def _versions(self) -> list[str]:
        """Return the Python versions that uv finds here, and the nodes' own."""
        command = [_uv_program(self._python), "python", "list", "--only-installed", "--no-python-downloads"]
        said = subprocess.run(command, capture_output=True, text=True, check=False, env=finding_pythons()).stdout
        found = {".".join(version.split(".")[:2]) for version in re.findall(r"-(3\.[0-9]+)", said)}
        return sorted({*found, self._installed.minor}, key=lambda version: int(version.partition(".")[2]))

    def _has(self, version: str) -> bool:
        """Return whether uv finds this version of Python on this machine."""
        command = [_uv_program(self._python), "python", "find", "--no-python-downloads", version]
        return subprocess.run(command, capture_output=True, check=False, env=finding_pythons()).returncode == 0

    def _name(self, recipe: Recipe) -> str:
        return recipe.digest(f"{self._installed.version} {self._installed.site}")

    @cached_property
    def _installed(self) -> Installed:
        return Installed.of(self._python)

    def _made(self, recipe: Recipe, making: Making) -> Path:
        """Return the folder of the recipe's environment. A new environment is installed. If another process is
        installing it, wait for this process."""
        base = self._folder / self._name(recipe)
        if not (base / COMPLETE).exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            making.say("Preparing the environment; another job may be making the same one, which is waited for")
            with FileLock(base.with_suffix(".lock")).acquire(cancel_check=making.unwanted.is_set):
                if not (base / COMPLETE).exists():
                    began = time.monotonic()
                    self._make(recipe, base, making)
                    making.say(f"The environment is ready after {time.monotonic() - began:.0f} s")
        return base

    def _make(self, recipe: Recipe, base: Path, making: Making) -> None:
        shutil.rmtree(base, ignore_errors=True)  # the rest of an interrupted installation
        version = self._version(recipe)
        making.say(f"Python {version or self._installed.version}, {len(recipe.requirements)} requirements")
        self._uv("venv", "--quiet", "--python", version or str(self._python), str(base))
        missing = [*recipe.requirements, "pip", *recipe.brought]
        if not version:
            packages, missing = self._installed.satisfying(missing)
            self._installed.link(packages.values(), _site(base))
        if missing:
            making.say(f"Installing {', '.join(missing)[:1000]}")
            self._install(recipe, base, making, required=not set(missing).isdisjoint(recipe.requirements))
        (base / COMPLETE).write_text("{}")

    def _install(self, recipe: Recipe, base: Path, making: Making, *, required: bool) -> None:
        """Install the requirements, and what comes along if it fits them. Raises DataError for requirements that
        can't be met, unless the links meet them all (not `required`): few jobs need pip or setuptools."""
        wanted = base / "requirements.txt"
        for brought in ([recipe.brought] if recipe.brought else []) + [()]:
            # Check all requirements, so that linked packages are kept only if they fit the rest.
            wanted.write_text("\n".join([*recipe.requirements, "pip", *brought]) + "\n")
            try:
                making.say(self._uv("pip", "install", "--python", str(_python_of(base)), "-r", str(wanted)))
                return
            except DataError as error:
                if not brought and required:
                    raise
                making.say(f"Without {', '.join((*brought, 'pip'))}: {error}")

    def _uv(self, *arguments: str, seconds: float = INSTALL_SECONDS) -> str:
        """Run uv, and return the output."""
        command = [_uv_program(self._python), *arguments]
        environment = {**finding_pythons(), "UV_LINK_MODE": "hardlink", "UV_NO_PROGRESS": "1", "UV_HTTP_RETRIES": "1"}
        environment.pop("VIRTUAL_ENV", None)
        with subprocess.Popen(
            command,
            cwd=self._folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            self._running.add(process)
            if self._closed:
                process.kill()
            try:
                said, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                raise SlowUv(f"The environment was not made within {seconds:g} s.") from None
            finally:
                self._running.discard(process)
        if process.returncode:
            words = "\n".join(said.strip().splitlines()[:SAID_LINES])
            raise DataError(f"The job's environment can't be made on this machine. {words}")
        return said.strip()


def finding_pythons() -> dict[str, str]:
    """Return this process's variables with pyenv's versions on PATH. Pyenv's shims fail for versions outside of
    `pyenv global`, and uv then stops searching."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders = [str(folder) for folder in sorted((root / "versions").glob("3.*/bin"))]
    return {**os.environ, "PATH": os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])}


def _uv_program(python: Path) -> str:
    """Return the path of uv, beside an interpreter or on PATH."""
    beside = [str(python.parent), str(Path(sys.executable).parent)]
    found = shutil.which("uv", path=os.pathsep.join([*beside, os.environ.get("PATH", os.defpath)]))
    if found is None:
        raise DataError("uv makes the environments of jobs, and is not installed here. Install it: pip install uv")
    return found


def _python_of(folder: Path) -> Path:
    return folder / SCRIPTS / ("python.exe" if IS_WINDOWS else "python")


def _site(folder: Path) -> Path:
    """Return the folder of an environment's packages."""
    return folder / "Lib" / "site-packages" if IS_WINDOWS else next(folder.glob("lib/python3*/site-packages"))


def _remove(folder: Path) -> None:
    """Remove the folder, and the folders of the attempt and the job if they are then empty."""
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        folder.parent.rmdir()
        folder.parent.parent.rmdir()


def _lay_over(base: Path, folder: Path) -> None:
    """Make the packages and scripts of `base` available in the environment in `folder`."""
    added = _site(base)
    (_site(folder) / "_environment.pth").write_text(f"import site; site.addsitedir({str(added)!r})\n")
    python = _python_of(folder)
    for script in (base / SCRIPTS).iterdir():
        target = folder / SCRIPTS / script.name
        if target.exists() or target.is_symlink() or not script.is_file() or script.suffix == ".exe":
            continue
        content = script.read_bytes()
        if body := _script_body(content):
            target.write_bytes(f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n".encode() + body)
            target.chmod(0o755)
        elif script.stat().st_mode & 0o111:
            target.symlink_to(script)


def _script_body(content: bytes) -> bytes:
    """Return the part of a Python script after the lines with its interpreter, or nothing for any other file."""
    first, _, rest = content.partition(b"\n")
    if first.startswith(b"#!") and b"python" in first:
        return rest
    if first == b"#!/bin/sh" and rest.startswith(b"'''exec'"):
        return rest.partition(b"\n")[2].partition(b"\n")[2]
    return b""
