"""Collect uploads into drops: record an upload, check a drop, and close the drop."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.drops.checks import open_drop, send_check, write
from shared.drops.decide import (
    SETTLED_SECONDS,
    DropVerdict,
    OnUpload,
    VerdictKind,
    becomes_single_file,
    judge_drop,
    on_upload,
    one_too_many,
    seconds_to_first_check,
    why_not_a_drop,
)
from shared.drops.facts import DropWaitsForRemoval
from shared.drops.messages import CheckDrop, FileUploaded
from shared.drops.model import CHECKING, Drop, DropState
from shared.drops.ports import AlreadyAdded, DropPorts, Drops
from shared.drops.seal import Complete, Prepared, finish_sealing, prepare, reject, seal
from shared.jobs.ports import WorkspacePorts
from shared.jobs.route import Route, Routes
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Changed
from shared.kernel.parsing import convert
from shared.kernel.ports import StoragePorts
from shared.kernel.storage import Queues
from shared.kernel.versioned import Stored
from shared.runs.content import SoFar, Survey, survey_in_time
from shared.runs.data import PackedListing

log = logging.getLogger(__name__)

AFTER_SECONDS = 1.0  # a short delay, so that another invocation continues
BEGIN = SoFar()
REMOVAL_SECONDS = 5.0  # until the next check of a drop that waits for a removal
REMOVAL_LOST_AFTER = timedelta(minutes=1)  # a removal usually takes seconds
MOST = 20_000_000  # files per drop; listing this many takes minutes to an hour


def note_upload(ports: DropPorts, blob_name: str, at: datetime | None, form: str = "") -> None:
    """Record a write to a blob of the drops container at `at` (None: now). Most events cost one read.

    A drop that this process has never read is inserted without reading it; the insert also detects an existing drop.
    `form` is the form of the event; a drop keeps the form of its first event. The row is written before the check is
    queued: after a crash in between, the reconcile timer queues the check.
    """
    key, at = DropKey.of(blob_name), at or ports.clock()
    if not key.name and blob_name.endswith("/"):
        return  # a whole route was renamed; the reconcile timer finds its drops
    path = "" if blob_name == str(key) else blob_name.removeprefix(key.prefix()) or "."
    upload = Upload(key, path, at, form)

    def first() -> Stored[Drop] | None:
        return None if ports.drops.is_new(key) else ports.drops.get(key)

    def write(stored: Stored[Drop] | None) -> None:
        try:
            _handle_upload(ports, stored, upload)
        except AlreadyAdded as exc:
            _handle_upload(ports, exc.there, upload)

    compare_and_set(ports.clock, f"Drop {key}", lambda: ports.drops.get(key), write, first=first)


def note_event(ports: DropPorts, event: FileUploaded) -> None:
    note_upload(ports, event.name, event.at, event.form)


@dataclass(frozen=True)
class Upload:
    """A file was written to a drop: its path in the drop, the time, and the form of the event."""

    key: DropKey
    path: str
    at: datetime
    form: str


def _handle_upload(ports: DropPorts, stored: Stored[Drop] | None, upload: Upload) -> None:
    """Carry out the consequence of the upload. A drop whose sealing was interrupted is sealed first."""
    key, path, at = upload.key, upload.path, upload.at
    step = on_upload(stored.value if stored else None, key, path, at, _route(ports.routes, key))
    if step is OnUpload.REJECT:
        write(ports.drops, stored, _rejected(ports, stored, key, path, at))
    elif step is OnUpload.OPEN:
        before = stored.value if stored else None
        open_drop(ports, stored, key, seconds_to_first_check(before, path, at, ports.routes[key.route]), upload.form)
    elif step is OnUpload.FINISH and stored:
        finish_sealing(ports, stored)
        _handle_upload(ports, ports.drops.get(key), upload)
    elif stored:
        _record_form(ports, stored, upload.form, look=step is OnUpload.LOOK)


def _record_form(ports: DropPorts, stored: Stored[Drop], form: str, look: bool) -> None:
    """Record how an upload's event arrived, if the timer created the drop.

    A concurrent check then fails because the etag changed, so another check is queued.
    """
    drop = stored.value
    missed = bool(form) and not drop.event_form and drop.state in (DropState.OPEN, DropState.SEALED)
    if missed:
        stored = write(ports.drops, stored, replace(drop, event_form=form))
    if look:
        _check(ports, stored)
    elif missed:
        send_check(ports.queues, drop, last=drop.state is not DropState.OPEN)


def check_drop(ports: DropPorts, message: CheckDrop) -> None:
    """Check a drop: seal it, reject it, or check it again later. A stale token does nothing.

    A drop that just closed is checked once more, for uploads between the closing listing and the write: the events of
    such uploads found an open drop and did nothing.
    """
    stored = ports.drops.get(DropKey(message.route, message.name))
    if stored is not None and stored.value.token == message.token:
        _check(ports, stored, message.last, convert(message.so_far or {}, SoFar))


def _check(ports: DropPorts, stored: Stored[Drop], last: bool = False, so_far: SoFar = BEGIN) -> None:
    try:
        if stored.value.state is DropState.SEALING:  # this may be the message for the final check
            send_check(ports.queues, stored.value, SETTLED_SECONDS, last=True)
            finish_sealing(ports, stored)
        elif stored.value.state is DropState.OPEN and stored.value.removed_at:
            _wait_for_removal(ports, stored.value, last)
        elif stored.value.state is DropState.OPEN:
            _judge(ports, stored, last, so_far)
        elif last:  # the process that closed the drop queued this message
            _check_again(ports, stored, so_far)
    except Changed:
        log.info("drop %s: another check was quicker", stored.value.key)


def _wait_for_removal(ports: StoragePorts, drop: Drop, last: bool) -> None:
    """Check the drop again later: files of a pending removal must not become part of the next generation."""
    if drop.removed_at and ports.clock() - drop.removed_at > REMOVAL_LOST_AFTER:
        ports.happened(DropWaitsForRemoval(drop))
    if not last:
        send_check(ports.queues, drop, REMOVAL_SECONDS)


def _listed(ports: StoragePorts, drop: Drop, last: bool, so_far: SoFar, listing: PackedListing) -> Survey | None:
    """The survey of the drop; None if another message continues the listing."""
    seen = survey_in_time(ports.blobs, drop.key, ports.clock, so_far, listing.add)
    if isinstance(seen, Survey):
        return seen
    send_check(ports.queues, drop, AFTER_SECONDS, last, seen)
    return None


def _judge(ports: DropPorts, stored: Stored[Drop], last: bool, so_far: SoFar) -> None:
    route = _route(ports.routes, stored.value.key)
    if route is None:
        write(ports.drops, stored, _rejected(ports, stored, stored.value.key, "", ports.clock()))
        return
    with closing(PackedListing(whole=not so_far.blobs)) as listing:
        _judge_on(ports, stored, route, DropCheck(last, so_far, listing))


@dataclass(frozen=True)
class DropCheck:
    """The check of an open drop by one message (see messages.CheckDrop), and the listing that the check fills."""

    last: bool
    so_far: SoFar
    listing: PackedListing


def _judge_on(ports: DropPorts, stored: Stored[Drop], route: Route, check: DropCheck) -> None:
    """Judge an open drop of the route."""
    drop, now, last, so_far, listing = stored.value, ports.clock(), check.last, check.so_far, check.listing
    if so_far.blobs >= MOST:
        why = f"It has more than {MOST:,} files. Upload fewer, larger files, such as archives."
        reject(ports.drops, Stored(replace(drop, newest=now, looked_at=now), stored.etag), "too_many_files", why)
        return
    seen = _listed(ports, drop, last, so_far, listing)
    if seen is None:
        return
    verdict = judge_drop(drop, seen, route, now)
    single = verdict.verdict is VerdictKind.SEAL and becomes_single_file(drop, seen)
    if single and not ports.drops.count_single_file(drop.key, route.single_files):
        verdict, single = one_too_many(route), False
    log.info("drop %s: %s, %s", drop.key, verdict.verdict, verdict.why)
    if verdict.verdict is VerdictKind.WAIT:
        _wait(ports.drops, ports.queues, stored, verdict, last)
        return
    if verdict.verdict is VerdictKind.FORGET:
        ports.drops.delete(stored)
        return
    looked = replace(drop, newest=seen.newest or drop.newest, looked_at=now, listed=seen.fingerprint)
    complete = Complete(seen, verdict, route, listing, drop.listed if drop.code == CHECKING else "")
    prepared = prepare(ports, looked, complete) if verdict.verdict is VerdictKind.SEAL else None
    if prepared and prepared.later:
        if single:
            ports.drops.uncount_single_file(drop.key)
        _continue_check(ports, stored, seen, prepared.later, last)
        return
    send_check(ports.queues, drop, SETTLED_SECONDS, last=True)
    sent_at = ports.clock()
    if not _close(ports, Stored(looked, stored.etag), complete, prepared) and single:
        ports.drops.uncount_single_file(drop.key)
    # The queued check may have come too early and found the drop open
    if ports.clock() - sent_at >= timedelta(seconds=SETTLED_SECONDS):
        send_check(ports.queues, drop, SETTLED_SECONDS, last=True)


def _wait(drops: Drops, queues: Queues, stored: Stored[Drop], verdict: DropVerdict, last: bool) -> None:
    """Check the drop again later. If a check of its data was in progress, an upload ended that check."""
    drop = stored.value
    if drop.code == CHECKING:
        drops.replace(replace(drop, code=verdict.code, why=verdict.why, listed=""), stored)
    if not last:
        send_check(queues, drop, verdict.wait)


def _continue_check(ports: DropPorts, stored: Stored[Drop], seen: Survey, progress: str, last: bool) -> None:
    """Write the progress of the data check into the drop, and let another message continue the check.

    The write comes first: of two deliveries of a message, only the one that writes sends the next message.
    """
    ports.drops.replace(replace(stored.value, code=CHECKING, why=progress, listed=seen.fingerprint), stored)
    send_check(ports.queues, stored.value, AFTER_SECONDS, last)


def _close(ports: DropPorts, looked: Stored[Drop], complete: Complete, prepared: Prepared | None) -> bool:
    """Seal or reject the drop, or mark the unchanged drop as sealed. Return whether a sealed drop made a run."""
    verdict = complete.verdict
    if prepared:
        return seal(ports, looked, prepared, complete.listing)
    if verdict.verdict is VerdictKind.UNCHANGED:
        sealed = replace(looked.value, state=DropState.SEALED, code=verdict.code, why=verdict.why)
        ports.drops.replace(sealed, looked)
    elif verdict.verdict is VerdictKind.REJECT:
        reject(ports.drops, looked, verdict.code, verdict.why)
    return False


def _check_again(ports: DropPorts, stored: Stored[Drop], so_far: SoFar) -> None:
    """Open a closed drop again if its content differs from the closing listing.

    Nothing is written otherwise. A duplicate event that arrives much later opens the drop for one unnecessary check.
    """
    drop = stored.value
    seen = _listed(ports, drop, True, so_far, PackedListing(whole=False)) if so_far.blobs < MOST else None
    route = _route(ports.routes, drop.key)
    if route is not None and seen and seen.fingerprint != drop.listed and seen.newest is not None:
        open_drop(ports, stored, drop.key, min(route.quiet_seconds, route.max_wait_seconds))


def _rejected(ports: WorkspacePorts, stored: Stored[Drop] | None, key: DropKey, path: str, at: datetime) -> Drop:
    """The record of a rejected upload, with the reason."""
    code, why = why_not_a_drop(key, path, _route(ports.routes, key), ports.routes) or ("", "")
    before = stored.value if stored else Drop(key, DropState.REJECTED, ports.new_token(), ports.clock())
    return replace(before, state=DropState.REJECTED, code=code, why=why, newest=at, looked_at=at)


def _route(routes: Routes, key: DropKey) -> Route | None:
    return None if key.problem() else routes.get(key.route)
