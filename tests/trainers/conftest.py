"""The shared fixtures of the trainers' tests."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from local import digits
from tests.trainers.launch import TRAINERS

sys.path.insert(0, str(TRAINERS))  # as on a node, where trainers/ is the working directory


@pytest.fixture(scope="module")
def digits_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digits")
    digits.write(folder)
    return folder


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Prepare a test to call the trainer in this process: no rank in the environment, and SIGTERM's handler is restored
    afterwards.

    Uses one thread, because several threads that share too few cores with other processes take ten times as long.
    """
    import torch

    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # keeps the trainer from choosing a number
    torch.set_num_threads(1)
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@dataclass(frozen=True)
class Disk:
    """A separate disk of 1 MiB, mounted at `path`."""

    path: Path

    def fill(self) -> None:
        """Fill the disk."""
        try:
            with (self.path / "filler").open("wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass
        except OSError:
            pass

    def empty(self) -> None:
        """Free the disk's space."""
        (self.path / "filler").unlink()

    def remount(self, how: str) -> None:
        """Remount the disk as `ro` or `rw`."""
        subprocess.run(["mount", "-o", f"remount,{how}", str(self.path)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Disk]:
    path = tmp_path / "disk"
    path.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", path], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs to mount a disk: {error}")
    yield Disk(path)
    subprocess.run(["umount", "--lazy", path], check=True)
