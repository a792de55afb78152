"""Microsoft's source packages, which contain their tests. pip downloads the pinned versions, and they are unpacked
here."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from filelock import FileLock

from emulator_tests.places import CACHE as EVERYTHING

HERE = Path(__file__).resolve().parent
PINS = HERE / "requirements.txt"
CACHE = EVERYTHING / "microsoft"
ENVIRONMENT = dict(os.environ)  # before a test adds an emulator's certificate
SECONDS = 120.0


class NotThere(Exception):
    """Raised with the reason when the packages can't be downloaded."""


def tests_of(package: str) -> Path:
    """Return the folder of the package's tests. Raises NotThere."""
    version = pinned()[package]
    CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(CACHE / "lock"):
        folder = CACHE / f"{package.replace('-', '_')}-{version}"
        if not folder.exists():
            _fetch()
    return folder / "tests"


def pinned() -> dict[str, str]:
    """Return the pinned version of each package."""
    lines = [line.split() for line in PINS.read_text().splitlines() if not line.startswith("#")]
    return dict(line[0].split("==") for line in lines)


def _fetch() -> None:
    options = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--require-hashes", "--quiet"]
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        argv = [sys.executable, "-m", "pip", "download", *options, "--dest", folder, "-r", str(PINS)]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, env=ENVIRONMENT)
        except subprocess.TimeoutExpired:
            raise NotThere(f"pip had not fetched them within {SECONDS:g} s") from None
        if done.returncode:
            raise NotThere(done.stderr.strip()[-300:])
        for file in sorted(Path(folder).glob("*.tar.gz")):
            with tarfile.open(file) as archive:
                archive.extractall(folder, filter="data")
            name = file.name.removesuffix(".tar.gz")
            Path(folder, name).rename(CACHE / name)
