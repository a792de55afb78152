"""The use of space: the bytes of drops, archives, and jobs' files in the workspace's container."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.jobs.location import OUTPUT_STORE, Location
from shared.jobs.ports import Jobs
from shared.kernel.drop_key import DropKey
from shared.kernel.places import DROPS_CONTAINER, OUTPUT_CONTAINER
from shared.kernel.storage import Blobs, Place
from shared.runs.data import CARD, LISTING

BUDGET_SECONDS = 60.0  # per answer; an answer that ran out of time is marked incomplete


@dataclass
class Usage:
    """Bytes by kind, and by holder. `complete` is False if time ran out before everything was counted."""

    kinds: Counter[str] = field(default_factory=Counter)
    holders: Counter[tuple[str, str]] = field(default_factory=Counter)
    files: Counter[tuple[str, str]] = field(default_factory=Counter)
    complete: bool = True


def usage(jobs: Jobs, blobs: Blobs) -> Usage:
    """Count every blob of Trainyard once."""
    counts, until = Usage(), time.monotonic() + BUDGET_SECONDS
    for kind, name, size in _sizes(jobs, blobs):
        counts.kinds[kind] += size
        counts.holders[kind, name] += size
        counts.files[kind, name] += 1
        if time.monotonic() > until:
            counts.complete = False
            break
    return counts


def _sizes(jobs: Jobs, blobs: Blobs) -> Iterator[tuple[str, str, int]]:
    for blob in blobs.list(Place(DROPS_CONTAINER, "")):
        yield "drops", str(DropKey.of(blob.name)), blob.size
    for blob in blobs.list(Place(OUTPUT_CONTAINER, "")):
        folder, _, inside = blob.name.partition("/")[2].partition("/")
        # Each generation of a drop has a listing, also on a route that trains nothing.
        yield "lists" if inside in (LISTING, CARD) else "archives", folder or blob.name, blob.size
    copies = jobs.place(Location(OUTPUT_STORE, "trainyard/"))
    for blob in blobs.list(copies):
        run, _, rest = blob.name.removeprefix(copies.prefix).partition("/")
        yield "checkpoints" if rest.startswith("checkpoints/") else "copies", run, blob.size
    logs = _folders_of_jobs(jobs)
    for blob in blobs.list(logs):
        yield "logs", blob.name.removeprefix(logs.prefix).partition("/")[0], blob.size


def _folders_of_jobs(jobs: Jobs) -> Place:
    """Return the place of the folders of all jobs, named by job."""
    any_job = "job"
    folder = jobs.folder(any_job).place
    return Place(folder.container, folder.prefix.rpartition(any_job)[0])
