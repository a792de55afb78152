"""Mounted outputs: jobs on this machine with outputs at the same place in storage share one folder, as through a
mount."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from emulators.azureml.running.folders import Watched
from emulators.azureml.storage.blobs import Blobs, Place


@dataclass
class _Mount:
    watched: Watched
    users: int = 0
    ready: asyncio.Lock = field(default_factory=asyncio.Lock)
    filled: bool = False


class Mounts:
    """The current mounts. The first user fills a mount from storage, and the last user removes the mount.

    A real mount shows another node's file once that node has closed the file; this mount shows it at once. With the
    fault `mounts` = "own" mounts behave like real ones (views.py).
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mounts: dict[Place, _Mount] = {}

    async def acquire(self, blobs: Blobs, place: Place) -> Watched:
        """Mount the place, or share an existing mount. Each `acquire` needs one `release`."""
        if place not in self._mounts:
            name = hashlib.sha256(f"{place.container}/{place.path}".encode()).hexdigest()[:16]
            self._mounts[place] = _Mount(Watched(self._folder / name, place, mirror=True))
        mount = self._mounts[place]
        mount.users += 1
        try:
            async with mount.ready:
                if not mount.filled:
                    await _fill(blobs, mount.watched)
                    mount.filled = True
        except BaseException:
            self.release(mount.watched)
            raise
        return mount.watched

    def release(self, watched: Watched) -> None:
        """Leave the mount. The last user's release removes the folder with every unpushed change."""
        mount = self._mounts[watched.place]
        mount.users -= 1
        if mount.users == 0:
            del self._mounts[watched.place]
            shutil.rmtree(watched.folder, ignore_errors=True)


async def _fill(blobs: Blobs, watched: Watched) -> None:
    shutil.rmtree(watched.folder, ignore_errors=True)  # left by a killed control plane
    watched.folder.mkdir(parents=True)
    await blobs.download_folder(watched.place, watched.folder)
    watched.remember()
