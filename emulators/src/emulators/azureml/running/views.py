"""One node's view of a mount: a local folder in which other nodes' changes appear late or never.

Files that this node writes reach storage, and so the other nodes, when they are closed. A file from another node
appears with its name. Its content and size are read again only if the job sets DATASET_MOUNT_ATTRIBUTE_CACHE_TTL. By
default, a mount never reads a file again
(https://learn.microsoft.com/azure/machine-learning/how-to-read-write-data-v2).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from emulators.azureml.running.folders import Watched
from emulators.azureml.storage.blobs import Blobs, Place

LOOKS_AGAIN = "DATASET_MOUNT_ATTRIBUTE_CACHE_TTL"
PUSHED = ""  # in place of the etag of a file that this node has just written


@dataclass
class View(Watched):
    """One node's folder. `etags` are the blobs' etags when this node read them."""

    looks_again: bool = False
    etags: dict[str, str] = field(default_factory=dict)

    async def fill(self, blobs: Blobs) -> None:
        """Start with the current content of storage."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        await self._pull(blobs)

    async def _push(self, blobs: Blobs) -> None:
        changed = {name: path for name, path, stamp in self._files() if self.seen.get(name) != stamp}
        open_ones = await asyncio.to_thread(_being_written, changed.values()) if changed else set()
        for name, path in changed.items():
            if path in open_ones or not path.exists():
                continue
            stamp = _stamp(path)
            await blobs.upload(self._blob(name), path)
            self.seen[name], self.etags[name] = stamp, PUSHED
        for name in [name for name in self.seen if not (self.folder / name).exists()]:
            await blobs.delete(self._blob(name))
            del self.seen[name]
            self.etags.pop(name, None)
        await self._pull(blobs)

    async def _pull(self, blobs: Blobs) -> None:
        now = await blobs.etags(self.place)
        for name, etag in now.items():
            known = self.etags.get(name)
            if known == PUSHED:
                self.etags[name] = etag
            elif known is None or (known != etag and self.looks_again and self._is_as_seen(name)):
                await self._fetch(blobs, name)
                self.etags[name] = etag
        for name in self.etags.keys() - now.keys() if self.looks_again else ():
            if self._is_as_seen(name):
                (self.folder / name).unlink(missing_ok=True)
                self.seen.pop(name, None)
                del self.etags[name]

    async def _fetch(self, blobs: Blobs, name: str) -> None:
        """Download a file completely or not at all. A file that changed on this node is kept."""
        target, beside = self.folder / name, self.folder.with_name(f"{self.folder.name}.new")
        if target.exists() and not self._is_as_seen(name):
            return
        await blobs.download_file(self._blob(name), beside)
        target.parent.mkdir(parents=True, exist_ok=True)
        beside.replace(target)
        self.seen[name] = _stamp(target)

    def _is_as_seen(self, name: str) -> bool:
        with contextlib.suppress(OSError):
            return self.seen.get(name) == _stamp(self.folder / name)
        return False


def views(folder: Path, place: Place, nodes: int, variables: Mapping[str, str]) -> list[View]:
    """Return a view for each node of a job with these variables."""
    again = variables.get(LOOKS_AGAIN, "") not in ("", "-1")
    return [View(folder / f"node-{node}", place, mirror=True, looks_again=again) for node in range(nodes)]


def _stamp(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size


def _being_written(paths: Iterable[Path]) -> set[Path]:
    """Return the files that a process is writing. Works on Linux only; elsewhere the set is empty."""
    wanted = {str(path): path for path in paths}
    found = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            target = os.readlink(link)  # noqa: PTH115 (a text, and there are thousands)
            if target in wanted and _writes(link):
                found.add(wanted[target])
    return found


def _writes(link: Path) -> bool:
    text = (link.parent.parent / "fdinfo" / link.name).read_text()
    flags = next(line.split()[1] for line in text.splitlines() if line.startswith("flags:"))
    return bool(int(flags, 8) & (os.O_WRONLY | os.O_RDWR))
