"""Pure decisions about drops: the effect of an upload, and whether a drop is complete."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from shared.drops.model import Drop, DropState
from shared.jobs.route import Route, Routes, choices
from shared.kernel.drop_key import DropKey
from shared.runs.content import JOB_FILES, SUCCESS_MARKER, Survey

CLOCK_SKEW_SECONDS = 4  # maximum difference between our clock and the storage's; time servers keep both


SETTLED_SECONDS = CLOCK_SKEW_SECONDS + 1.0  # afterwards a listing contains every blob of a second


class OnUpload(StrEnum):
    """The consequence of an upload event."""

    NOTHING = "nothing"  # the drop's state already covers the upload, or the event is late
    OPEN = "open"  # start collecting, and check the drop after the quiet period
    LOOK = "look"  # the drop is open; check it immediately, because this may have been its last file
    FINISH = "finish"  # finish the current sealing, then decide again
    REJECT = "reject"  # the upload can't be a drop of any route


def on_upload(drop: Drop | None, key: DropKey, path: str, at: datetime, route: Route | None) -> OnUpload:
    """Decide the effect of an upload of `path` inside the drop `key` at time `at`.

    An event older than the last verdict's newest blob is late: the verdict's listing already contained the event's
    blob.

    An event from the same second as the newest blob may belong to a blob that is missing from the listing, because blob
    times have no fractions. Such an event opens the drop again, unless the listing was taken well after that second. If
    nothing is new, the next check finds the same fingerprint and closes the drop without a run. That check covers all
    events of the second, including repeated events of a marker.
    """
    if drop is not None and drop.state is DropState.OPEN:
        return OnUpload.LOOK if closes(path) and not _may_be_listed(drop, at) else OnUpload.NOTHING
    if drop is not None and _is_late(drop, at):
        return OnUpload.NOTHING
    if drop is not None and drop.state is DropState.SEALING:
        return OnUpload.FINISH
    if route is None or is_refused_file(key, path, route):
        return OnUpload.NOTHING if drop is not None and drop.state is DropState.REJECTED else OnUpload.REJECT
    return OnUpload.OPEN


def is_refused_file(key: DropKey, path: str, route: Route) -> bool:
    """Whether the upload is a file directly in the route's folder, not an archive, on a route without single files."""
    return not path and not key.is_archive() and not route.single_files


def why_not_a_drop(key: DropKey, path: str, route: Route | None, routes: Routes) -> tuple[str, str] | None:
    """Why an upload can't be a drop, as a code and a sentence, or None."""
    if problem := key.problem():
        return "bad_name", problem
    if route is None:
        return "unknown_route", f"There is no route {key.route!r}. Routes: {choices(routes)}."
    if is_refused_file(key, path, route):
        why = (
            f"{key} is a file directly in the route's folder. Upload it as drops/{key.route}/<name>/{key.name}: all "
            "files "
            "of one folder become one run."
        )
        return "loose_file", why
    return None


def _may_be_listed(drop: Drop, at: datetime) -> bool:
    """Whether the event is from before, or from the same second as, the last verdict's newest blob."""
    return drop.newest is not None and at - drop.newest < timedelta(seconds=1)


def _is_late(drop: Drop, at: datetime) -> bool:
    if drop.newest is None or drop.looked_at is None:
        return False
    second = drop.newest.replace(microsecond=0)
    return at.replace(microsecond=0) < second + timedelta(seconds=_saw_it_all(drop))


def _saw_it_all(drop: Drop) -> int:
    """1 if the last listing surely has every blob of the newest blob's second, because the listing came later; else
    0.
    """
    assert drop.newest is not None
    assert drop.looked_at is not None
    return int(drop.looked_at - drop.newest >= timedelta(seconds=SETTLED_SECONDS))


def closes(path: str) -> bool:
    """Whether a blob at this path in a drop may close the drop: a marker, a job file, or the drop's only file ('')."""
    return path in (SUCCESS_MARKER, "", *JOB_FILES)


def seconds_to_first_check(before: Drop | None, path: str, at: datetime, route: Route) -> float:
    """Seconds from the event that opens a drop to the drop's first check.

    An event from the second of the last verdict's newest blob is probably late. The check that decides this comes soon,
    but late enough to cover all events of that second.
    """
    if before is not None and _may_be_listed(before, at):
        return SETTLED_SECONDS
    return 0.0 if closes(path) else min(route.quiet_seconds, route.max_wait_seconds)


class VerdictKind(StrEnum):
    SEAL = "seal"
    WAIT = "wait"
    REJECT = "reject"
    UNCHANGED = "unchanged"  # the content equals the last seal: close the drop without a run
    FORGET = "forget"  # every blob is deleted


@dataclass(frozen=True)
class DropVerdict:
    """The decision about an open drop, with a reason for its owner. `wait`: seconds until the next check."""

    verdict: VerdictKind
    code: str
    why: str
    wait: float = 0.0


def judge_drop(drop: Drop, seen: Survey, route: Route, now: datetime) -> DropVerdict:
    """Decide whether the drop is complete.

    A drop is complete in any of these cases:

    - `_SUCCESS` arrived after the last seal
    - a job file arrived after the last seal, and nothing arrived for the route's settle time, because folders are often
      uploaded in parallel or in the order of names
    - the drop is a single archive
    - nothing arrived for the quiet period
    - the maximum wait is over
    """
    if seen.blobs == 0 and drop.generation == 0:
        return DropVerdict(VerdictKind.FORGET, "gone", "Every blob of it was deleted before it closed.")
    if _nothing_new(drop, seen):
        content = f"run {drop.run}" if drop.run else f"generation {drop.generation}"
        return DropVerdict(VerdictKind.UNCHANGED, "unchanged", f"Its content is the same as that of {content}.")
    waited, quiet = _ages(drop, seen, now)
    closed = _closed_by(drop, seen, route, waited, quiet)
    if closed is None:
        wait = min(route.quiet_seconds - quiet, route.max_wait_seconds - waited)
        if _fresh(drop, seen, JOB_FILES):
            wait = min(wait, route.settle_seconds - quiet)
        why = f"Closes after {route.quiet_seconds:g} s without an upload."
        return DropVerdict(VerdictKind.WAIT, "collecting", why, max(wait, 0.1))
    if problem := drop.key.problem() or seen.problem:
        return DropVerdict(VerdictKind.REJECT, "bad_name", problem)
    if seen.single_file and (single := why_not_a_drop(drop.key, "", route, {})):
        return DropVerdict(VerdictKind.REJECT, *single)
    if seen.data_blobs == 0:
        return DropVerdict(VerdictKind.REJECT, "empty", "It contains only a marker. Upload the data, then the marker.")
    return DropVerdict(VerdictKind.SEAL, *closed)


def becomes_single_file(drop: Drop, seen: Survey) -> bool:
    """Whether the drop would be a new single file. Archives don't count; a drop with a run is already counted."""
    return seen.single_file and not drop.key.is_archive() and not drop.generation


def one_too_many(route: Route) -> DropVerdict:
    """The verdict on a single file of a route with the maximum number of single-file runs."""
    why = f"Route {route.name!r} makes at most {route.single_files} runs of single files. Upload files into a folder."
    return DropVerdict(VerdictKind.REJECT, "too_many_files", why)


def _nothing_new(drop: Drop, seen: Survey) -> bool:
    """Whether the content equals the last seal, or differs only by deletions, which raise no events."""
    if drop.generation == 0:
        return False
    if seen.fingerprint == drop.fingerprint or seen.newest is None or drop.newest is None:
        return True
    return seen.newest < drop.newest or (seen.newest == drop.newest and seen.blobs < drop.blobs)


def _ages(drop: Drop, seen: Survey, now: datetime) -> tuple[float, float]:
    """Seconds since the drop opened, and since its newest upload."""
    newest = seen.newest or drop.opened_at
    return (now - drop.opened_at).total_seconds(), (now - newest).total_seconds()


def _closed_by(drop: Drop, seen: Survey, route: Route, waited: float, quiet: float) -> tuple[str, str] | None:
    if _fresh(drop, seen, (SUCCESS_MARKER,)):
        return "marker", f"{SUCCESS_MARKER} arrived."
    if quiet >= route.settle_seconds and (names := _fresh(drop, seen, JOB_FILES)):
        return "job_file", f"{names[0]} arrived."
    if drop.key.is_archive():
        return "archive", "It is a single archive."
    if quiet >= route.quiet_seconds:
        return "quiet", f"Nothing arrived for {route.quiet_seconds:g} s."
    if waited >= route.max_wait_seconds:
        return "max_wait", f"It was open for {route.max_wait_seconds:g} s."
    return None


def _fresh(drop: Drop, seen: Survey, names: Iterable[str]) -> list[str]:
    """The markers that arrived after the drop last closed. An old marker does not close the drop again."""
    return [
        name
        for name in names
        if (blob := seen.markers.get(name)) is not None
        and (drop.newest is None or (blob.last_modified or drop.newest) > drop.newest)
    ]
