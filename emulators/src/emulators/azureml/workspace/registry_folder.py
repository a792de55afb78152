"""The folder of registries, from which the control plane's registries are updated."""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path

from emulators.azureml.kernel.models import Asset
from emulators.azureml.kernel.sources import AssetRef
from emulators.azureml.storage.blobs import Blobs, Place
from emulators.azureml.workspace.registries import Registries
from emulators.azureml.workspace.registry_files import CONTAINER, Reading, stamps

log = logging.getLogger(__name__)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{1,32}")  # of a registry, as in Azure


class RegistryFolder:
    """Reads `folder`, which may be missing, after each change in the folder."""

    def __init__(self, folder: Path, blobs: Blobs, registries: Registries) -> None:
        self._folder = folder
        self._blobs = blobs
        self._registries = registries
        self._seen: dict[str, tuple[int, int]] = {}
        self._turn = asyncio.Lock()

    async def refresh(self) -> None:
        """Apply changes, and upload new files. Without changes it costs one directory listing."""
        async with self._turn:
            seen = await asyncio.to_thread(stamps, self._folder)
            if seen == self._seen:
                return
            read = await asyncio.to_thread(self._read)
            for reading in read:
                await self._send(reading)
                for file, why in reading.problems.items():
                    log.warning("registry %s: %s can't be read: %s", reading.name, file, why)
            self._registries.replace(
                {reading.name: reading.written for reading in read},
                {reading.name: reading.problems for reading in read},
            )
            self._seen = seen

    def find(self, wanted: AssetRef) -> Asset:
        """Return the version of a reference, as of the last refresh. Raises NotFound."""
        return self._registries.find(wanted)

    def _read(self) -> list[Reading]:
        found = [below for below in sorted(self._folder.iterdir()) if below.is_dir()] if self._folder.is_dir() else []
        readings = []
        for folder in found:
            if not NAME.fullmatch(folder.name):
                log.warning("%s is not the name of a registry: use letters, digits, '-' and '_'", folder.name)
                continue
            readings.append(Reading(folder.name, self._address))
            readings[-1].read(folder)
        return readings

    def _address(self, path: str) -> str:
        return f"https://{self._blobs.account}.blob.core.windows.net/{CONTAINER}/{path}"

    async def _send(self, reading: Reading) -> None:
        if reading.sent:
            await self._blobs.create_container(CONTAINER)
        for path, file in reading.sent.items():
            place = Place(CONTAINER, path)
            if not await self._blobs.exists(place):  # the path has the content's digest
                await self._blobs.upload(place, file)
