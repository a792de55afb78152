"""The data card of a run: the card of the drop's generation that the run reads, as sealed when the run was created."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from shared.data_checks.at_sealing import kept
from shared.data_checks.model import DataCheck
from shared.kernel.drop_key import DropKey
from shared.kernel.storage import Blobs
from shared.runs.model import Run
from shared.runs.names import run_name
from shared.runs.ports import Datasets


def check_read_by(datasets: Datasets, blobs: Blobs, run: Run) -> DataCheck | None:
    """Return the check of the data that the run reads; None if this data was not checked.

    A run that reads several drops has the card of the first drop with a card, and a note about the others.
    """
    asked = run.asked
    if asked.drop and run.name == run_name(DropKey.of(asked.drop), asked.fingerprint):  # the run of this seal
        said = kept(blobs, f"{asked.experiment}/{run.name}")
        return said and replace(said, generation=f"{asked.drop}@{asked.generation}")
    known = [said for key, below in _places(run) if (said := _of_drop(datasets, blobs, key, below))]
    if not known:
        return None
    others = ", ".join(said.generation for said in known[1:])
    note = (f"The run also reads {others}, with a card of its own.",) if others else ()
    return replace(known[0], notes=(*known[0].notes, *note))


def _places(run: Run) -> Iterator[tuple[DropKey, str]]:
    """Yield the drops that the run reads, each with the path inside the drop, '' for the whole drop."""
    seen = set[str]()
    for place in (*run.asked.reads, run.asked.drop):
        key = DropKey.of(place.strip("/"))
        if key.name and str(key) not in seen:
            seen.add(str(key))
            yield key, place.strip("/").removeprefix(str(key)).strip("/")


def _of_drop(datasets: Datasets, blobs: Blobs, key: DropKey, below: str) -> DataCheck | None:
    """Return the check of the drop's last generation; None for an open drop, because its files may differ."""
    content = datasets.of(key)
    if content is None or content.collecting or not content.generation:
        return None
    folder = datasets.kept_in(key, content.generation, content.fingerprint)
    said = kept(blobs, folder) if folder else None
    note = (f"The run reads only {below} of this drop, and the card is that of the whole drop.",) if below else ()
    return said and replace(said, generation=f"{key}@{content.generation}", notes=(*said.notes, *note))
