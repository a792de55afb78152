"""A run's artifacts: the files of the manifest, and signed download addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared.kernel.errors import BadInput, NotFound
from shared.kernel.memory import Topic
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.ports import StoragePorts
from shared.kernel.storage import Blobs
from shared.runs.model import Run
from shared.runs.ports import RunPorts
from shared.runs.results.archive import MANIFEST, read_manifest
from shared.runs.results.outputs import archive_folder

ADDRESS_LIFE = 900  # seconds for which a signed address is valid


PICTURES, MOST_PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".gif"), 24


def artifacts(ports: RunPorts, name: str, pictures: bool = False) -> dict[str, Any]:
    """The files of a run's archive; none until the archive is complete.

    With `pictures`, the result includes the addresses of the first pictures, so that a page needs no further requests.
    """
    run = ports.runs.get(name).value
    _check_kept(run)
    if run.archive.at is None:
        return {"complete": False, "files": [], "outputs": [], "pictures": {}}
    folder = archive_folder(run)
    manifest = _manifest(ports, folder)
    shown = [file for file in manifest.files if pictures and file.lower().endswith(PICTURES)][:MOST_PICTURES]
    return {
        "complete": True,
        "files": list(manifest.files.values()),
        "outputs": manifest.outputs,
        "pictures": {f: ports.blobs.read_url(OUTPUT_CONTAINER, f"{folder}/{f}", ADDRESS_LIFE) for f in shown},
    }


def address(ports: RunPorts, name: str, path: str) -> str:
    """A signed address of one file of one run. Raises NotFound if the run's manifest does not name the file."""
    run = ports.runs.get(name).value
    _check_kept(run)
    if run.archive.at is None:
        raise NotFound(f"Run {name} is {run.progress.state} and not archived yet; there is nothing to fetch.")
    folder = archive_folder(run)
    if path != MANIFEST and path not in _manifest(ports, folder).files:
        raise NotFound(f"Run {name} has no file {path[:200]!r}. List its artifacts to see the files.")
    return ports.blobs.read_url(OUTPUT_CONTAINER, f"{folder}/{path}", ADDRESS_LIFE)


def _check_kept(run: Run) -> None:
    if run.removed.at is not None:
        by = f" by {run.removed.by}" if run.removed.by else ""
        raise NotFound(f"The files of run {run.name} were removed at {run.removed.at:%Y-%m-%d %H:%M} UTC{by}.")


@dataclass(frozen=True)
class _Manifest:
    files: dict[str, dict[str, Any]]  # by their names
    outputs: list[dict[str, Any]]


MANIFESTS = Topic[_Manifest]("manifests", most=16)  # thousand files of one run are fetched with thousand calls


def _manifest(ports: StoragePorts, folder: str) -> _Manifest:
    """The manifest, cached: a complete archive doesn't change."""
    return ports.memory.answer(MANIFESTS, ports.clock(), lambda: files_of(ports.blobs, folder), folder)


def files_of(blobs: Blobs, folder: str) -> _Manifest:
    """The content of the manifest in the folder. Manifests of version 1 have no outputs."""
    manifest = read_manifest(blobs, folder)
    try:
        files = {str(file["name"]): file for file in manifest["files"]}
        return _Manifest(files, list(manifest.get("outputs", [])))
    except (KeyError, TypeError, AttributeError) as exc:
        raise BadInput(f"{folder}/{MANIFEST} is not a manifest: {type(exc).__name__} {exc}.") from exc
