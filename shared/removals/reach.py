"""Compute the reach of a removal at the request, and list the blobs in reach when the removal is carried out.

This is the only module of removals that lists blobs, and it lists them through a `Reach`, so a removal can't delete
anything that was uploaded or written after its request (docs/adr/0075-a-removal-carries-its-reach.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from shared.drops.decide import CLOCK_SKEW_SECONDS, SETTLED_SECONDS
from shared.drops.model import Drop, generation_of
from shared.jobs.ports import Jobs
from shared.jobs.spec import LEFT_OUTPUT
from shared.kernel.drop_key import DropKey
from shared.kernel.places import DROPS_CONTAINER, OUTPUT_CONTAINER
from shared.kernel.storage import Blob, Blobs, Place
from shared.removals.chain import own_paths
from shared.removals.model import Reach, RemovalKind
from shared.runs.content import drop_blobs
from shared.runs.data import CARD, LISTING, kept_listing
from shared.runs.model import Run
from shared.runs.ports import Runs
from shared.runs.results.outputs import archive_folder, outputs


def of_drop(drop: Drop, asked_at: datetime) -> Reach:
    """Return the reach of a removal of the drop: the blobs of its last seal, by their etags, and older blobs.

    The drop's last listing saw every blob that was written by `newest`. A blob of the last few seconds may be younger
    than the request, because blob times have no fractions of a second and the clocks of app and storage differ.
    """
    settled = asked_at - timedelta(seconds=SETTLED_SECONDS)
    listing = generation_of(drop).folder if drop.generation else ""
    return Reach(min(drop.newest or settled, settled), listing=listing, token=drop.token)


def of_run(runs: Runs, jobs: Jobs, what: RemovalKind, run: Run, asked_at: datetime) -> Reach:
    """Return the reach of a removal of this run's files.

    Nothing may write into the folders of a removed run, so all files up to the request are in reach, by the storage's
    clock. Copies and checkpoints may be written again while the removal waits, for a run that starts from them.
    """
    seconds = CLOCK_SKEW_SECONDS if what is RemovalKind.RUN else -SETTLED_SECONDS
    return Reach(asked_at + timedelta(seconds=seconds), tuple(_folders(runs, jobs, what, run)))


def in_reach(blobs: Blobs, reach: Reach, drop: DropKey | None) -> Iterator[tuple[str, Iterator[Blob]]]:
    """Yield each place of the removal: the container, and the blobs to delete there."""
    listed = kept_listing(blobs, reach.listing) if reach.listing else None
    etags = {blob.name: blob.etag.strip('"') for blob in listed or ()}

    def may_go(blob: Blob) -> bool:
        old = blob.last_modified is None or blob.last_modified <= reach.written_by
        return old or etags.get(blob.name) == blob.etag.strip('"')

    if drop:
        yield DROPS_CONTAINER, filter(may_go, drop_blobs(blobs, drop))
    for place in reach.places:
        yield place.container, filter(may_go, blobs.list(place))


def kept_with_drop(run: Run) -> tuple[str, ...]:
    """Return the names of a generation's list of files and data card, which stay as long as the drop. Empty for a run
    without a drop."""
    return tuple(f"{archive_folder(run)}/{name}" for name in (LISTING, CARD)) if run.asked.drop else ()


def _folders(runs: Runs, jobs: Jobs, what: RemovalKind, run: Run) -> Iterator[Place]:
    """Yield the places to delete with this run. The places of a continuing run stay."""
    if what is RemovalKind.RUN:
        yield Place(OUTPUT_CONTAINER, f"{archive_folder(run)}/")
    own = own_paths(runs, what, run)
    for output in outputs(run):
        left = output.name == LEFT_OUTPUT
        if (what is RemovalKind.CHECKPOINTS and not left) or (what is RemovalKind.COPIES and left):
            continue
        if output.part:
            yield jobs.folder(output.job).inside(output.part)
        elif output.path in own:
            yield jobs.place(output.path)
