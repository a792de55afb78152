"""The data that a job itself names, beside a drop: listed and hashed when a version is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from shared.jobs.location import DROPS_STORE, Location, Where
from shared.jobs.readers.pipeline import step_inputs
from shared.jobs.readers.place_text import has_expression, place_text, read_place
from shared.jobs.spec import JobSpec
from shared.kernel.errors import TrainyardError
from shared.kernel.storage import Blob
from shared.models.hashing import MOST_DATA_BYTES, MOST_DATA_FILES, sha256_of
from shared.models.ports import ModelPorts
from shared.runs.model import Run

FROM_MODEL = "from_model"  # the input with the parent's model, which is a separate dependency


@dataclass(frozen=True)
class NamedData:
    """Data named by a job: the input's name (with the step's name), the place as written, the files with SHA-256.

    `not_known` says why there are no hashes, or why the files may differ from those of the training; '' in all other
    cases.
    """

    name: str
    place: str
    files: tuple[tuple[Blob, str], ...] = ()
    not_known: str = ""


def named_data(ports: ModelPorts, run: Run) -> tuple[NamedData, ...]:
    """Return the inputs of the run's job and steps outside of the run's drop."""
    return tuple(_read(ports, name, where, run.created_at) for name, where in places(run))


def places(run: Run) -> Iterator[tuple[str, Where]]:
    """Yield the name and the place of each input outside of the drop, each place once."""
    seen = set[str]()
    for name, where in _all(run.asked.request):
        if name.endswith(FROM_MODEL) or _is_in_drop(where, run.asked.drop) or place_text(where) in seen:
            continue
        seen.add(place_text(where))
        yield name, where


def listed(ports: ModelPorts, where: Where) -> list[Blob]:
    """Return the files at the place. Raises TrainyardError if the files can't be listed, or for too many files."""
    place = ports.jobs.place(where)
    return list(islice(ports.blobs.list(place), MOST_DATA_FILES + 1))


def _all(job: JobSpec) -> Iterator[tuple[str, Where]]:
    yield from ((name, each.path) for name, each in job.data.items())
    for step, inputs in step_inputs(job).items():
        for name, each in inputs.items():
            path = each.get("path") if isinstance(each, dict) else None
            if isinstance(path, str) and not has_expression(path):
                yield f"{step}.{name}", read_place(path)


def _is_in_drop(where: Where, drop: str) -> bool:
    return (
        bool(drop)
        and isinstance(where, Location)
        and where.store == DROPS_STORE
        and f"{where.path.rstrip('/')}/".startswith(f"{drop}/")
    )


def _read(ports: ModelPorts, name: str, where: Where, began: datetime) -> NamedData:
    data = NamedData(name, place_text(where))
    if not isinstance(where, Location):
        return _unknown(data, "Trainyard can't read its path")
    try:
        container, blobs = ports.jobs.place(where).container, listed(ports, where)
        size = sum(blob.size for blob in blobs)
        if len(blobs) > MOST_DATA_FILES or size > MOST_DATA_BYTES:
            return _unknown(data, "it has too much data to be hashed")
        digests = ports.each(lambda blob: sha256_of(ports.blobs, container, blob.name, blob.size, blob.md5), blobs)
    except TrainyardError as exc:
        return _unknown(data, str(exc))
    found = NamedData(name, data.place, tuple(zip(blobs, digests, strict=True)))
    if not blobs:
        return _unknown(found, "its files no longer exist")
    late = [blob.name for blob in blobs if blob.last_modified is None or blob.last_modified > began]
    return _unknown(found, f"{late[0]} was written after the run was requested") if late else found


def _unknown(data: NamedData, why: str) -> NamedData:
    text = f"Whether input {data.name} ({data.place}) is what the job read: {why}."
    return NamedData(data.name, data.place, data.files, text)
