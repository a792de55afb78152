"""A job's folders on disk, and how its code, inputs and outputs are copied."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from emulators.azureml.bodies.job_body import Input, JobSpec, Output
from emulators.azureml.kernel.errors import DataError, Refused, nothing_at
from emulators.azureml.kernel.sources import Source, Web
from emulators.azureml.running import read_only
from emulators.azureml.storage.blobs import Blobs, Place
from emulators.azureml.storage.web_folder import WebFolder
from emulators.azureml.storage.web_inputs import copy_folder, download

log = logging.getLogger(__name__)


@dataclass
class Watched:
    """A local folder that is copied to a place in storage whenever it changes.

    `seen` has the state of the copy: modification time and size by relative name. With `mirror`, deleting a file here
    also deletes its copy, as on a mount. This applies to files that were uploaded from here or were in storage at
    first. `unnamed` are files that can't be uploaded because their names are not UTF-8.
    """

    folder: Path
    place: Place
    mirror: bool
    seen: dict[str, tuple[int, int]] = field(default_factory=dict)
    unnamed: set[str] = field(default_factory=set)
    _pushing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def remember(self) -> None:
        """Record the folder's current files as already in storage."""
        self.seen = {name: stamp for name, _, stamp in self._files()}

    async def push(self, blobs: Blobs) -> None:
        """Upload the files that changed since the last push. A file that changes during the push is uploaded again
        by the next push. Raises DataError for the first refused file, after all others are uploaded."""
        async with self._pushing:
            await self._push(blobs)

    async def _push(self, blobs: Blobs) -> None:
        present, refusal = self._files(), None
        for name, path, stamp in present:
            if self.seen.get(name) != stamp and path.exists():
                try:
                    await blobs.upload(self._blob(name), path)
                    self.seen[name] = stamp
                except Refused as error:
                    refusal = refusal or error
        for name in self.seen.keys() - {name for name, _, _ in present} if self.mirror else ():
            await blobs.delete(self._blob(name))
            del self.seen[name]
        if refusal:
            raise refusal

    def _blob(self, name: str) -> Place:
        prefix = self.place.path.rstrip("/")
        return Place(self.place.container, f"{prefix}/{name}" if prefix else name)

    def _files(self) -> list[tuple[str, Path, tuple[int, int]]]:
        found = []
        for path in sorted(self.folder.rglob("*")):
            try:
                if path.is_file():
                    stat, name = path.stat(), path.relative_to(self.folder).as_posix()
                    if is_text(name):
                        found.append((name, path, (stat.st_mtime_ns, stat.st_size)))
                    else:
                        self.unnamed.add(name)
            except FileNotFoundError:  # renamed or deleted after the listing
                continue
        return found


class Finder(Protocol):
    """Resolves the locations of inputs and outputs."""

    def place(self, wanted: Source) -> Place | Web:
        """Return the place of the blobs, or a URL to download from. Raises DataError if there is neither."""

    def address(self, wanted: Source) -> str:
        """Return the URI for a job that reads its input by itself."""


Mount = Callable[[str, Place], Awaitable[Sequence[Watched]]]  # mounts an output's place: for all nodes, or for each


@dataclass(frozen=True)
class Folders:
    """The folders of one attempt at a job on this machine. Each attempt has its own folders, because it runs on
    new, empty nodes."""

    job: Path
    attempt: int

    @property
    def inputs(self) -> Path:
        return self.run / "inputs"

    @property
    def run(self) -> Path:
        return self.job / f"attempt-{self.attempt}"

    @property
    def outputs(self) -> Path:
        return self.run / "outputs"

    @property
    def environment(self) -> Path:
        return self.run / "environment"

    @property
    def logs(self) -> Path:
        return self.run / "logs"

    def code(self, node: int) -> Path:
        """Return a node's working folder, with its own copy of the code."""
        return self.run / f"node-{node}"


class Mover:
    """Downloads a job's data to its nodes, and uploads its results."""

    def __init__(self, blobs: Blobs, places: Finder, folders: Folders, mount: Mount, web: WebFolder) -> None:
        self._web = web
        self._blobs = blobs
        self._mount = mount
        self._places = places
        self._folders = folders

    async def bring_code(self, code: Place | None, nodes: int) -> None:
        """Give every node a copy of the code snapshot, or an empty folder. Raises DataError for an empty snapshot."""
        first = self._folders.code(0)
        first.mkdir(parents=True)
        if code and not await self._blobs.download_folder(code, first):
            raise DataError(f"the code snapshot {code} is empty")
        for node in range(1, nodes):
            shutil.copytree(first, self._folders.code(node))

    async def bring_inputs(self, spec: JobSpec) -> dict[str, str]:
        """Download the inputs. Returns the values of the `inputs.` placeholders."""
        values = {}
        for given in spec.inputs:
            values[f"inputs.{given.name}"] = await self._value(given)
        return values

    async def _value(self, given: Input) -> str:
        if given.source is None:
            return given.literal
        return self._places.address(given.source) if given.direct else await self._bring(given, given.source)

    async def _bring(self, given: Input, source: Source) -> str:
        place, folder = self._places.place(source), self._folders.inputs / given.name
        is_file = given.kind == "uri_file" or await self._is_one_file(given, place)
        target = folder / file_name(place) if is_file else folder
        folder.mkdir(parents=True)
        await self._fetch(given, place, target, is_file)
        if not given.copied:
            read_only.close(folder)
        return target.as_posix()

    async def _is_one_file(self, given: Input, place: Place | Web) -> bool:
        """Return whether a model is a single file, because its type does not distinguish files and folders."""
        single = given.kind.endswith("_model") and isinstance(place, Place) and not place.path.endswith("/")
        return single and isinstance(place, Place) and await self._blobs.exists(place)

    async def _fetch(self, given: Input, place: Place | Web, target: Path, is_file: bool) -> None:
        missing = nothing_at(given.name, given.source, is_file)
        if isinstance(place, Web):
            await (download if is_file else copy_folder)(place.uri, target, f"Input {given.name!r}", self._web)
        elif is_file:
            if not await self._blobs.exists(place):
                raise DataError(missing)
            await self._blobs.download_file(place, target)
        elif not await self._blobs.download_folder(place, target):
            raise DataError(missing)

    async def prepare_outputs(self, spec: JobSpec) -> tuple[dict[str, str], list[Watched]]:
        """Create the output folders, which all nodes share. A mounted folder shows the files that storage already
        has, so a second attempt finds the checkpoints of the first. Returns the values of the placeholders and
        the folders to watch."""
        values: dict[str, str] = {}
        watched: list[Watched] = []
        for output in spec.outputs:
            place = self._places.place(output.location)
            assert isinstance(place, Place), "outputs are in datastores"
            if output.direct:
                values[f"outputs.{output.name}"] = self._places.address(output.location)
                continue
            if output.mounted and output.kind != "uri_file":
                mounted = await self._mount(output.name, place)
                target = mounted[0].folder
                watched += mounted
            else:
                folder = self._folders.outputs / output.name
                folder.mkdir(parents=True)
                target, place = _file_output(output, folder, place)
                watched.append(Watched(folder, place, mirror=output.mounted))
            values[f"outputs.{output.name}"] = target.as_posix()
        return values, watched


def is_text(name: str) -> bool:
    """Return whether a file's name is UTF-8, which a blob's name must be. Python represents other bytes as
    surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def file_name(place: Place | Web) -> str:
    """Return the name that a file gets on a node. Raises DataError if the URL's last part can't be a file name."""
    path = urlsplit(place.uri).path if isinstance(place, Web) else place.path
    last = path.rstrip("/").rpartition("/")[2]
    name = unquote(last) if isinstance(place, Web) else last  # a blob's name is not encoded
    if name in (".", "..") or {"/", "\0"} & set(name):
        raise DataError(f"{last[:80]!r}, the end of an input's address, can't be a file's name")
    return name or "file"


def _file_output(output: Output, folder: Path, place: Place) -> tuple[Path, Place]:
    if output.kind != "uri_file":
        return folder, place
    parent, _, name = place.path.rstrip("/").rpartition("/")
    return folder / name, Place(place.container, parent)
