"""What a drop held: its generations, the files of each, and how two of them differ."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from shared.drops.diff import DataFile, DataRef, Difference, compare, files_of, read_ref
from shared.drops.model import Drop, Generation, generation_of
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import NotFound
from shared.runs.content import drop_blobs
from shared.runs.data import MOST_LISTED, kept_listing
from shared.runs.model import RUN_NAME, Run
from shared.system import System


def generations(system: System, key: DropKey) -> list[Generation]:
    """The drop's generations, newest first. Raises NotFound for a drop that nobody uploaded to."""
    drop = _drop(system, key)
    kept = system.drops.generations(key)
    if drop.generation and (not kept or kept[0].number < drop.generation):
        return [generation_of(drop), *kept]  # a version of the app closed it that kept none
    return kept


def files(system: System, ref: str) -> list[DataFile]:
    """The files that `ref` names, by path: a drop's generation, what lies in it now, or what a run was made for.

    Raises NotFound if there is no such thing, or no list of it was kept: of more than 100,000 files none is.
    """
    if RUN_NAME.fullmatch(ref):
        return _of_run(system, ref)
    found = read_ref(ref)
    if found.now:
        blobs = islice(drop_blobs(system, found.key), MOST_LISTED)
        return files_of(found.key, blobs)
    return _of_generation(system, found)


def diff(system: System, before: str, after: str) -> Difference:
    """How the files of `after` differ from those of `before`."""
    return compare(files(system, before), files(system, after))


def _drop(system: System, key: DropKey) -> Drop:
    stored = system.drops.get(key)
    if stored is None:
        known = ", ".join(sorted(system.routes))
        raise NotFound(f"No upload to drops/{key.route}/{key.name} was seen. Routes: {known}.")
    return stored.value


def _of_run(system: System, name: str) -> list[DataFile]:
    run = system.runs.get(name).value
    if not run.drop:
        raise NotFound(f"Run {name} was made from no drop.")
    key = DropKey.of(run.drop)
    folder = next((each.folder for each in _known(system, key) if _is_of(each, run)), f"{run.experiment}/{run.name}")
    return _listed(system, key, folder, f"run {name}")


def _known(system: System, key: DropKey) -> list[Generation]:
    try:
        return generations(system, key)
    except NotFound:
        return []


def _is_of(generation: Generation, run: Run) -> bool:
    """Whether the run was made for it. The number alone does not tell: a drop that was removed begins again with 1."""
    return (generation.number, generation.fingerprint) == (run.generation, run.fingerprint)


def _of_generation(system: System, ref: DataRef) -> list[DataFile]:
    known = generations(system, ref.key)
    chosen = next((each for each in known if ref.number in (0, each.number)), None)
    if chosen is None and not known:
        raise NotFound(f"Drop {ref.key} has no generation: it has not closed yet, or was rejected.")
    if chosen is None:
        numbers = ", ".join(str(each.number) for each in known[:20])
        raise NotFound(f"Drop {ref.key} has no generation {ref.number}; it has: {numbers}.")
    return _listed(system, ref.key, chosen.folder, f"generation {chosen.number} of {ref.key}")


def _listed(system: System, key: DropKey, folder: str, what: str) -> list[DataFile]:
    kept = kept_listing(system, folder)
    if kept is None:
        raise NotFound(f"No list of the files of {what} was kept: it had more than {MOST_LISTED:,}, or was removed.")
    return files_of(key, kept)


def total(found: Iterable[DataFile]) -> int:
    """The bytes of these files."""
    return sum(file.size for file in found)
