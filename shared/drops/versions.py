"""The content of a drop over time: its generations, their files, and the differences between two generations."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from shared.drops.diff import DataDiff, DataFile, DataRef, compare, files_of, read_ref
from shared.drops.model import Drop, Generation, generation_of
from shared.drops.ports import DropPorts, Drops
from shared.jobs.route import Routes
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import NotFound
from shared.kernel.storage import Blob, Blobs
from shared.runs.content import drop_blobs
from shared.runs.data import MOST_LISTED, kept_listing
from shared.runs.model import Run
from shared.runs.names import RUN_NAME


def generations(drops: Drops, routes: Routes, key: DropKey) -> list[Generation]:
    """The drop's generations, newest first. Raises NotFound for a drop without uploads."""
    drop = _drop(drops, routes, key)
    kept = drops.generations(key)
    if drop.generation and (not kept or kept[0].number < drop.generation):
        # An older version of the app, which kept no generations, closed the drop last
        return [generation_of(drop), *kept]
    return kept


def files(ports: DropPorts, ref: str) -> list[DataFile]:
    """The files that `ref` names, by path: of a drop's generation, of the drop now, or of the data of a run.

    Raises NotFound for an unknown `ref`, or if no list was kept, which is the case for more than 100,000 files.
    """
    if RUN_NAME.fullmatch(ref):
        return _of_run(ports, ref)
    data_ref = read_ref(ref)
    if data_ref.now:
        blobs = islice(drop_blobs(ports.blobs, data_ref.key), MOST_LISTED)
        return files_of(data_ref.key, blobs)
    return _of_generation(ports, data_ref)


def diff(ports: DropPorts, before: str, after: str) -> DataDiff:
    """The differences between the files of `before` and the files of `after`."""
    return compare(files(ports, before), files(ports, after))


def _drop(drops: Drops, routes: Routes, key: DropKey) -> Drop:
    stored = drops.get(key)
    if stored is None:
        route_names = ", ".join(sorted(routes))
        raise NotFound(f"No upload to drops/{key.route}/{key.name} was seen. Routes: {route_names}.")
    return stored.value


def listing_of(ports: DropPorts, run: Run) -> list[Blob] | None:
    """The recorded blobs for which the run was made; None if the run has no drop or the list was not kept."""
    return kept_listing(ports.blobs, _folder(ports.drops, ports.routes, run)) if run.asked.drop else None


def _of_run(ports: DropPorts, name: str) -> list[DataFile]:
    run = ports.runs.get(name).value
    if not run.asked.drop:
        raise NotFound(f"Run {name} was not started by a drop.")
    return _listed(ports.blobs, DropKey.of(run.asked.drop), _folder(ports.drops, ports.routes, run), f"run {name}")


def _folder(drops: Drops, routes: Routes, run: Run) -> str:
    """The folder with the list of the drop's files, which is the folder of the generation's first run."""
    all_generations = _known(drops, routes, DropKey.of(run.asked.drop))
    return next((each.folder for each in all_generations if _is_of(each, run)), f"{run.asked.experiment}/{run.name}")


def _known(drops: Drops, routes: Routes, key: DropKey) -> list[Generation]:
    try:
        return generations(drops, routes, key)
    except NotFound:
        return []


def _is_of(generation: Generation, run: Run) -> bool:
    """Whether the run was made for this generation.

    The number alone is not sufficient, because a removed drop starts again with generation 1.
    """
    return (generation.number, generation.fingerprint) == (run.asked.generation, run.asked.fingerprint)


def _of_generation(ports: DropPorts, ref: DataRef) -> list[DataFile]:
    all_generations = generations(ports.drops, ports.routes, ref.key)
    chosen = next((each for each in all_generations if ref.number in (0, each.number)), None)
    if chosen is None and not all_generations:
        raise NotFound(f"Drop {ref.key} has no generation: it has not closed yet, or was rejected.")
    if chosen is None:
        numbers = ", ".join(str(each.number) for each in all_generations[:20])
        raise NotFound(f"Drop {ref.key} has no generation {ref.number}; it has: {numbers}.")
    return _listed(ports.blobs, ref.key, chosen.folder, f"generation {chosen.number} of {ref.key}")


def _listed(blobs: Blobs, key: DropKey, folder: str, what: str) -> list[DataFile]:
    kept = kept_listing(blobs, folder)
    if kept is None:
        raise NotFound(f"No list of the files of {what} was kept: it had more than {MOST_LISTED:,}, or was removed.")
    return files_of(key, kept)


def total(files: Iterable[DataFile]) -> int:
    """Total size of the files, in bytes."""
    return sum(file.size for file in files)
