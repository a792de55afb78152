"""Remove runs and drops: request a removal, and carry it out.

A request writes the record, marks the run, and sends a message. The handler may crash and be repeated, because deleting
a missing blob does nothing. Files uploaded after the request stay.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.drops.decide import SETTLED_SECONDS
from shared.drops.model import DropState
from shared.drops.ports import Drops
from shared.jobs.ports import Jobs
from shared.jobs.spec import LEFT_OUTPUT
from shared.kernel.clock import Clock
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Conflict, NotFound
from shared.kernel.person import NOBODY, Person
from shared.kernel.places import DROPS_CONTAINER, OUTPUT_CONTAINER
from shared.kernel.storage import Blob, Blobs, Place, Queues
from shared.kernel.versioned import Stored
from shared.removals.chain import own_paths
from shared.removals.messages import CarryOutRemoval
from shared.removals.model import Removal, RemovalKind
from shared.removals.ports import Named, RemovalPorts, Removals
from shared.runs.content import drop_blobs
from shared.runs.data import LISTING, kept_listing
from shared.runs.decide import is_over, reads
from shared.runs.model import FINAL, Run, RunState
from shared.runs.ports import Runs
from shared.runs.results.outputs import archive_folder, outputs
from shared.runs.views.run_list import in_state

log = logging.getLogger(__name__)

SENT_AGAIN = 1000  # newest removals that are read; costs one request
LOST_AFTER, SENT_FOR = timedelta(hours=1), timedelta(days=30)
_BATCH = 200  # blobs that are deleted before the next batch is listed

PATIENCE = timedelta(
    minutes=2
)  # one more batch may take as long again; the host ends the worker after functionTimeout, 10 minutes


@dataclass(frozen=True)
class RemovalRequest:
    """Who requests a removal, and why."""

    by: Person = NOBODY
    why: str = "Asked for."

    def removal(self, what: RemovalKind, name: str, at: datetime) -> Removal:
        return Removal(what, name, at, self.by.name, self.why, by_id=self.by.id)


def remove_run(ports: RemovalPorts, removals: Removals, name: str, asked: RemovalRequest) -> Removal:
    """Request the removal of everything that the run left. The run's record stays. A repeat returns the same removal.

    Raises Conflict while the run, or a run that continues it, has not ended.
    """

    now = ports.clock()

    def mark(stored: Stored[Run]) -> tuple[Stored[Run], datetime | None]:
        """Return the run marked as removed, and when it was marked before."""
        _check_needless(ports.runs, ports.named, stored.value)
        if earlier := stored.value.removed.at:
            return stored, earlier
        removed = replace(stored.value.removed, at=now, by=asked.by.name, by_id=asked.by.id)
        return ports.runs.update(stored, replace(stored.value, removed=removed)), None

    marked, earlier = compare_and_set(ports.clock, f"Run {name}", lambda: ports.runs.get(name), mark)
    if earlier:
        return _ask_again(ports.queues, removals, asked.removal(RemovalKind.RUN, name, earlier))
    if promoted := ports.named.needing_run(name):  # promoted meanwhile; a promotion checks the mark in the same way
        removed = replace(marked.value.removed, at=None, by="", by_id="")
        ports.runs.update(marked, replace(marked.value, removed=removed))
        _check_unnamed(promoted, f"Run {name}")
    return _ask(ports.queues, removals, asked.removal(RemovalKind.RUN, name, now))


def _check_needless(runs: Runs, named: Named, run: Run) -> None:
    """Raise Conflict while the run, or a run that continues it, has not ended, or a model needs the run."""
    if not is_over(run) or (run.archive.at is None and run.archive.gave_up_at is None):
        raise Conflict(
            f"Run {run.name} is {run.progress.state} and not archived. Cancel it, or wait for its end.", "not_final"
        )
    users = (other for other in _live(runs) if run.name in (other.asked.continues, other.asked.from_run))
    if user := next(users, None):
        raise Conflict(f"Run {user.name} goes on from run {run.name} and is {user.progress.state}.", "needed")
    _check_unnamed(named.needing_run(run.name), f"Run {run.name}")


def _ask_again(queues: Queues, removals: Removals, removal: Removal) -> Removal:
    """Return the earlier removal, and resend its message while it is not done."""
    known = removals.get(removal.what, removal.name, removal.asked_at)
    if known and known.done_at is None:
        _send(queues, known)
    return known or _ask(queues, removals, removal)


def remove_drop(ports: RemovalPorts, removals: Removals, key: DropKey, asked: RemovalRequest) -> Removal:
    """Request the removal of a drop's files and record. Raises Conflict while the drop is open, or a run of it has not
    ended.
    """
    stored = ports.drops.get(key)
    if stored is None:
        raise NotFound(f"No upload to drops/{key} was seen.")
    if stored.value.state in (DropState.OPEN, DropState.SEALING):
        raise Conflict(f"Drop {key} is {stored.value.state}. {stored.value.why}", "drop_open")
    if user := next((run for run in _live(ports.runs) if reads(run, key)), None):
        raise Conflict(f"Run {user.name} trains on drop {key} and is {user.progress.state}.", "needed")
    _check_unnamed(ports.named.needing_drop(key), f"Drop {key}")
    now = ports.clock()
    ports.drops.replace(replace(stored.value, removed_at=now), stored)  # so that no run trains on it meanwhile
    return _ask(ports.queues, removals, asked.removal(RemovalKind.DROP, str(key), now))


def clear(ports: RemovalPorts, removals: Removals, what: RemovalKind, name: str, asked: RemovalRequest) -> Removal:
    """Request the removal of an archived run's checkpoints or copies. Raises Conflict while a run starts from its
    model.
    """
    if what is RemovalKind.COPIES and (
        user := next((run for run in _live(ports.runs) if run.asked.from_run == name), None)
    ):
        raise Conflict(f"Run {user.name} begins with the model of run {name} and is {user.progress.state}.", "needed")
    if what is RemovalKind.COPIES:  # Azure ML's registry refers to the copies
        _check_unnamed(ports.named.needing_run(name), f"What the job of run {name} wrote")
    return _ask(ports.queues, removals, asked.removal(what, name, ports.clock()))


def _check_unnamed(versions: list[str], what: str) -> None:
    """Raise Conflict if a model needs this."""
    if versions:
        more = f" and {len(versions) - 3} more" if len(versions) > 3 else ""
        raise Conflict(
            f"{what} is kept for {', '.join(versions[:3])}{more}: without it nobody could check or train that model "
            f"again. `models {versions[0]} --let-go` gives it up.",
            "named",
        )


def carry_out(ports: RemovalPorts, message: CarryOutRemoval) -> None:
    """Carry out a removal and record that it is done. After PATIENCE, a new message continues the rest."""
    removals, what, name, asked_at = ports.removals, message.what, message.name, message.asked_at
    removal = removals.get(what, name, asked_at)
    if removal is None or removal.done_at is not None:
        return
    files, size, until = removal.files, removal.bytes, ports.clock() + PATIENCE
    for container, blobs in _going(ports, removal):
        files, size = files + len(blobs), size + sum(blob.size for blob in blobs)
        ports.blobs.remove_listed(container, blobs)
        if ports.clock() > until:
            removals.put(replace(removal, files=files, bytes=size))
            _send(ports.queues, removal)
            return
    if what is RemovalKind.DROP:
        _forget_drop(ports, DropKey.of(name), asked_at)
    elif what is not RemovalKind.RUN:
        _mark_cleared(ports.runs, ports.clock, name, what)
    removals.put(replace(removal, files=files, bytes=size, done_at=ports.clock()))
    log.info("%s %s: removed %d files, %d bytes. %s", what, name, files, size, removal.why)


def send_again(ports: RemovalPorts, removals: Removals) -> None:
    """Resend the messages of removals that are not done after an hour, because their messages must be lost."""
    now = ports.clock()
    for removal in removals.newest(SENT_AGAIN):
        if removal.done_at is None and LOST_AFTER <= now - removal.asked_at < SENT_FOR:
            _send(ports.queues, removal)


def places(runs: Runs, jobs: Jobs, what: RemovalKind, run: Run) -> Iterator[Place]:
    """Yield the places that this removal of a run deletes. Places that a continuing run needs stay."""
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


def _ask(queues: Queues, removals: Removals, removal: Removal) -> Removal:
    removals.put(removal)
    _send(queues, removal)
    return removal


def _send(queues: Queues, removal: Removal) -> None:
    queues.send(CarryOutRemoval(removal.what, removal.name, removal.asked_at))


def _going(ports: RemovalPorts, removal: Removal) -> Iterator[tuple[str, list[Blob]]]:
    """Yield batches of blobs to delete, with their container. The listing of a generation's files stays as long as its
    drop.
    """
    if removal.what is RemovalKind.DROP:
        key = DropKey.of(removal.name)
        yield from _batches(DROPS_CONTAINER, _closed_with(ports.drops, ports.blobs, key, removal.asked_at))
        return
    run = ports.runs.get(removal.name).value
    for place in places(ports.runs, ports.jobs, removal.what, run):
        blobs = ports.blobs.list(place)
        keep = f"{archive_folder(run)}/{LISTING}" if run.asked.drop else ""
        yield from _batches(place.container, (blob for blob in blobs if blob.name != keep))


def _closed_with(drops: Drops, blobs: Blobs, key: DropKey, asked_at: datetime) -> Iterator[Blob]:
    """Yield the drop's blobs as listed when the drop closed. A blob written since then belongs to a new upload.

    Without a kept listing, yield the blobs from well before the request, because blob times have no fractions of a
    second.
    """
    generations = drops.generations(key, 1)
    listed = kept_listing(blobs, generations[0].folder) if generations else None
    etags = None if listed is None else {blob.name: blob.etag.strip('"') for blob in listed}
    before = asked_at - timedelta(seconds=SETTLED_SECONDS)
    for blob in drop_blobs(blobs, key):
        as_listed = etags is not None and etags.get(blob.name) == blob.etag.strip('"')
        old = etags is None and (blob.last_modified is None or blob.last_modified <= before)
        if as_listed or old:
            yield blob


def _batches(container: str, blobs: Iterator[Blob]) -> Iterator[tuple[str, list[Blob]]]:
    batch: list[Blob] = []
    for blob in blobs:
        batch.append(blob)
        if len(batch) == _BATCH:
            yield container, batch
            batch = []
    if batch:
        yield container, batch


def _forget_drop(ports: RemovalPorts, key: DropKey, asked_at: datetime) -> None:
    """Delete the drop's record, its generations and their listings, unless something was uploaded meanwhile."""
    stored = ports.drops.get(key)
    if stored is None or (stored.value.opened_at > asked_at):
        return
    for generation in ports.drops.generations(key):
        run = _run(ports.runs, generation.run) if generation.run else None
        if run is None or run.removed.at is not None:
            ports.blobs.remove(OUTPUT_CONTAINER, [f"{generation.folder}/{LISTING}"])
    ports.drops.forget(stored)


def _mark_cleared(runs: Runs, clock: Clock, name: str, what: RemovalKind) -> None:
    def write(stored: Stored[Run]) -> None:
        cleared = tuple(sorted({*stored.value.removed.cleared, str(what)}))
        runs.update(stored, replace(stored.value, removed=replace(stored.value.removed, cleared=cleared)))

    compare_and_set(clock, f"Run {name}", lambda: runs.get(name), write)


def _live(runs: Runs) -> Iterator[Run]:
    """Yield the runs that have not ended. States are read in their order, so a run that changes state is not missed."""
    for state in RunState:
        if state not in (*FINAL, RunState.BROKEN):
            yield from in_state(runs, state)


def _run(runs: Runs, name: str) -> Run | None:
    try:
        return runs.get(name).value
    except NotFound:
        return None
