"""Remove runs and drops: request a removal, and carry out a removal.

A request marks the run or the drop, writes the record with the removal's reach, and sends a message. The handler may
crash and be repeated, because deleting a missing blob does nothing. A removal is in force while the mark is there. A
drop that is uploaded to again is not sealed before its removal is done.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from shared.drops.model import Drop, DropState
from shared.drops.ports import DropPorts, Drops
from shared.kernel.clock import Clock
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Conflict, NotFound
from shared.kernel.person import NOBODY, Person
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blob, Blobs, Queues
from shared.kernel.versioned import Stored
from shared.removals.messages import CarryOutRemoval
from shared.removals.model import Reach, Removal, RemovalKind
from shared.removals.ports import Named, RemovalPorts, Removals
from shared.removals.reach import in_reach, kept_with_drop, of_drop, of_run
from shared.runs.content import drop_blobs
from shared.runs.data import CARD, LISTING
from shared.runs.decide import is_over, reads
from shared.runs.find_run import find_run
from shared.runs.model import FINAL, Run, RunState
from shared.runs.ports import Runs
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
    """The requester of a removal, and the reason."""

    by: Person = NOBODY
    why: str = "Somebody asked for it."

    def removal(self, what: RemovalKind, name: str, at: datetime, reach: Reach) -> Removal:
        return Removal(what, name, at, self.by.name, self.why, by_id=self.by.id, reach=reach)


def remove_run(ports: RemovalPorts, removals: Removals, name: str, asked: RemovalRequest) -> Removal:
    """Request the removal of everything left by the run, except the run's record. A repeat returns the existing
    removal.

    Raises Conflict while the run, or a run that continues it, has not ended.
    """

    now = ports.clock()

    def mark(stored: Stored[Run]) -> tuple[Stored[Run], datetime | None]:
        """Return the run marked as removed, and the time of an earlier mark."""
        _check_needless(ports.runs, ports.named, stored.value)
        if earlier := stored.value.removed.at:
            return stored, earlier
        removed = replace(stored.value.removed, at=now, by=asked.by.name, by_id=asked.by.id)
        return ports.runs.update(stored, replace(stored.value, removed=removed)), None

    marked, earlier = compare_and_set(ports.clock, f"Run {name}", lambda: ports.runs.get(name), mark)
    reach = of_run(ports.runs, ports.jobs, RemovalKind.RUN, marked.value, earlier or now)
    if earlier:
        return _ask_again(ports.queues, removals, asked.removal(RemovalKind.RUN, name, earlier, reach))
    if promoted := ports.named.needing_run(name):  # promoted meanwhile; a promotion checks the mark in the same way
        removed = replace(marked.value.removed, at=None, by="", by_id="")
        ports.runs.update(marked, replace(marked.value, removed=removed))
        _check_unnamed(promoted, f"Run {name}")
    return _ask(ports.queues, removals, asked.removal(RemovalKind.RUN, name, now, reach))


def _check_needless(runs: Runs, named: Named, run: Run) -> None:
    """Raise Conflict while the run or a continuing run has not ended, or a model needs the run."""
    if not is_over(run) or (run.archive.at is None and run.archiving.gave_up_at is None):
        raise Conflict(
            f"Run {run.name} is {run.progress.state} and not archived. Cancel it, or wait for its end.", "not_final"
        )
    users = (other for other in _live(runs) if run.name in (other.asked.continues, other.asked.from_run))
    if user := next(users, None):
        raise Conflict(f"Run {user.name} continues run {run.name} and is {user.progress.state}.", "needed")
    _check_unnamed(named.needing_run(run.name), f"Run {run.name}")


def _ask_again(queues: Queues, removals: Removals, removal: Removal) -> Removal:
    """Return the earlier removal, and resend the message of an unfinished removal."""
    known = removals.get(removal.what, removal.name, removal.asked_at)
    if known and known.done_at is None:
        _send(queues, known)
    return known or _ask(queues, removals, removal)


def remove_drop(ports: RemovalPorts, removals: Removals, key: DropKey, asked: RemovalRequest) -> Removal:
    """Request the removal of a drop's files and record. A repeat returns the same removal.

    Raises Conflict while the drop is open, or a run of it has not ended.
    """
    stored = ports.drops.get(key)
    if stored is None:
        raise NotFound(f"No upload to drops/{key} was seen.")
    drop, now = stored.value, stored.value.removed_at or ports.clock()
    removal = asked.removal(RemovalKind.DROP, str(key), now, of_drop(drop, now))
    if drop.state in (DropState.OPEN, DropState.SEALING):
        raise Conflict(f"Drop {key} is {drop.state}. {drop.why}", "drop_open")
    if drop.removed_at is not None:
        return _ask_again(ports.queues, removals, removal)
    if user := next((run for run in _live(ports.runs) if reads(run, key)), None):
        raise Conflict(f"Run {user.name} trains on drop {key} and is {user.progress.state}.", "needed")
    _check_unnamed(ports.named.needing_drop(key), f"Drop {key}")
    ports.drops.replace(replace(drop, removed_at=now), stored)  # so that no run trains on it meanwhile
    return _ask(ports.queues, removals, removal)


def clear(ports: RemovalPorts, removals: Removals, what: RemovalKind, name: str, asked: RemovalRequest) -> Removal:
    """Request the removal of an archived run's checkpoints or copies. Raises Conflict while a run needs them.

    The mark on the run is written before the check, so that a run that is requested meanwhile is seen by this check,
    or sees the mark and brings the model back from the archive.
    """
    now = ports.clock()
    reach = of_run(ports.runs, ports.jobs, what, ports.runs.get(name).value, now)
    mark_cleared(ports.runs, ports.clock, name, what, True)
    try:
        _check_unused(ports.named, ports.runs, what, name)
    except Conflict:
        mark_cleared(ports.runs, ports.clock, name, what, False)
        raise
    return _ask(ports.queues, removals, asked.removal(what, name, now, reach))


def _check_unused(named: Named, runs: Runs, what: RemovalKind, name: str) -> None:
    """Raise Conflict if a run starts from these copies, a run continues from these checkpoints, or a model needs the
    copies or checkpoints.
    """
    if what is RemovalKind.CHECKPOINTS:
        users = (run for run in _live(runs) if run.asked.continues == name)
    else:
        users = (run for run in _live(runs) if run.asked.from_run == name)
    if user := next(users, None):
        raise Conflict(f"Run {user.name} starts from the {what} of run {name}, and is {user.progress.state}.", "needed")
    if what is RemovalKind.COPIES:  # Azure ML's registry refers to the copies
        _check_unnamed(named.needing_run(name), f"What the job of run {name} wrote")


def _check_unnamed(versions: list[str], what: str) -> None:
    """Raise Conflict if a model needs this."""
    if versions:
        more = f" and {len(versions) - 3} more" if len(versions) > 3 else ""
        raise Conflict(
            f"{what} is kept for {', '.join(versions[:3])}{more}: without it, that model could not be verified or "
            "trained "
            f"again. `models {versions[0]} --let-go` releases it.",
            "named",
        )


def carry_out(ports: RemovalPorts, message: CarryOutRemoval) -> None:
    """Carry out a removal and record the completion. After PATIENCE, a new message continues the rest."""
    removals, what, name = ports.removals, message.what, message.name
    removal = removals.get(what, name, message.asked_at)
    if removal is None or removal.done_at is not None:
        return
    if not _is_in_force(ports.drops, ports.runs, removal):
        removals.put(replace(removal, done_at=ports.clock()))
        log.info("%s %s: its removal of %s is not in force", what, name, removal.asked_at)
        return
    reach, until = removal.reach or _reach_now(ports, removal), ports.clock() + PATIENCE
    files, size = removal.files, removal.bytes
    for container, blobs in _going(ports.runs, ports.blobs, removal, reach):
        files, size = files + len(blobs), size + sum(blob.size for blob in blobs)
        ports.blobs.remove_listed(container, blobs)
        if ports.clock() > until:
            removals.put(replace(removal, files=files, bytes=size))
            _send(ports.queues, removal)
            return
    if what is RemovalKind.DROP:
        _forget_drop(ports, DropKey.of(name), reach)
    removals.put(replace(removal, files=files, bytes=size, done_at=ports.clock()))
    log.info("%s %s: removed %d files, %d bytes. %s", what, name, files, size, removal.why)


def finish(ports: RemovalPorts, drop: Drop) -> None:
    """Resend the removal for which an open drop waits. If the removal's request ended before its record was
    written, remove the mark from the drop.
    """
    assert drop.removed_at is not None
    removal = ports.removals.get(RemovalKind.DROP, str(drop.key), drop.removed_at)
    if removal and removal.done_at is None:
        _send(ports.queues, removal)
    elif stored := ports.drops.get(drop.key):
        _clear_mark(ports.drops, stored, drop.removed_at)


def send_again(queues: Queues, clock: Clock, removals: Removals) -> None:
    """Resend the messages of removals that are not done after an hour, because their messages must be lost."""
    now = clock()
    for removal in removals.newest(SENT_AGAIN):
        if removal.done_at is None and LOST_AFTER <= now - removal.asked_at < SENT_FOR:
            _send(queues, removal)


def _ask(queues: Queues, removals: Removals, removal: Removal) -> Removal:
    removals.put(removal)
    _send(queues, removal)
    return removal


def _send(queues: Queues, removal: Removal) -> None:
    queues.send(CarryOutRemoval(removal.what, removal.name, removal.asked_at))


def _is_in_force(drops: Drops, runs: Runs, removal: Removal) -> bool:
    """Return whether the run or the drop still has the mark of this removal."""
    if removal.what is RemovalKind.DROP:
        stored = drops.get(DropKey.of(removal.name))
        return stored is not None and stored.value.removed_at == removal.asked_at
    run = runs.get(removal.name).value
    if removal.what is RemovalKind.RUN:
        return run.removed.at == removal.asked_at
    return str(removal.what) in run.removed.cleared


def _reach_now(ports: DropPorts, removal: Removal) -> Reach:
    """Return the reach of a removal that the previous version recorded, if the removal is still in force."""
    if removal.what is not RemovalKind.DROP:
        run = ports.runs.get(removal.name).value
        return of_run(ports.runs, ports.jobs, removal.what, run, removal.asked_at)
    stored = ports.drops.get(DropKey.of(removal.name))
    return of_drop(stored.value, removal.asked_at) if stored else Reach(removal.asked_at)


def _going(runs: Runs, blobs: Blobs, removal: Removal, reach: Reach) -> Iterator[tuple[str, list[Blob]]]:
    """Yield batches of blobs to delete, with their container. The list of a generation's files and its data card
    are kept as long as the drop.
    """
    is_drop = removal.what is RemovalKind.DROP
    keep = () if is_drop else kept_with_drop(runs.get(removal.name).value)
    for container, found in in_reach(blobs, reach, DropKey.of(removal.name) if is_drop else None):
        going = (blob for blob in found if blob.name not in keep)
        while batch := list(islice(going, _BATCH)):
            yield container, batch


def _forget_drop(ports: DropPorts, key: DropKey, reach: Reach) -> None:
    """Delete the drop's record, generations and listings. A drop with a new upload stays, and may be sealed again."""
    stored = ports.drops.get(key)
    if stored is None:
        return
    if stored.value.token != reach.token and next(drop_blobs(ports.blobs, key), None) is not None:
        _clear_mark(ports.drops, stored, stored.value.removed_at)
        return
    for generation in ports.drops.generations(key):
        run = find_run(ports.runs, generation.run)
        if run is None or run.removed.at is not None:
            ports.blobs.remove(OUTPUT_CONTAINER, [f"{generation.folder}/{name}" for name in (LISTING, CARD)])
    ports.drops.forget(stored)


def _clear_mark(drops: Drops, stored: Stored[Drop], asked_at: datetime | None) -> None:
    if asked_at is not None and stored.value.removed_at == asked_at:
        drops.replace(replace(stored.value, removed_at=None), stored)


def mark_cleared(runs: Runs, clock: Clock, name: str, what: RemovalKind, cleared: bool) -> None:
    def write(stored: Stored[Run]) -> None:
        others = {each for each in stored.value.removed.cleared if each != str(what)}
        kinds = tuple(sorted({*others, str(what)} if cleared else others))
        runs.update(stored, replace(stored.value, removed=replace(stored.value.removed, cleared=kinds)))

    compare_and_set(clock, f"Run {name}", lambda: runs.get(name), write)


def _live(runs: Runs) -> Iterator[Run]:
    """Yield the unfinished runs. States are read in the order of a run's life: a run never moves past the reading
    unseen.
    """
    for state in RunState:
        if state not in (*FINAL, RunState.BROKEN):
            yield from in_state(runs, state)
