"""Decisions without I/O: is the drop complete, what does a job's status change, why keep this cluster up."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from shared.model import (
    FINAL,
    JOB_FILES,
    SUCCESS_MARKER,
    TRANSITIONS,
    Blob,
    Cluster,
    Decision,
    Drop,
    DropKey,
    DropState,
    JobStatus,
    Moment,
    Run,
    RunState,
    path_problem,
)
from shared.routes import Route

CLOCK_SKEW_SECONDS = 4  # between our clock and the storage's, at most; both are kept by time servers
SETTLED_SECONDS = CLOCK_SKEW_SECONDS + 1.0  # after that a listing has every blob of a second

# --- a drop: an upload arrives ---------------------------------------------------------------------------------------


class OnUpload(StrEnum):
    """What an upload event asks for."""

    NOTHING = "nothing"  # already known, or late
    OPEN = "open"  # begin collecting, and look again after the quiet period
    LOOK = "look"  # it is open; look at once, this may have been its last file
    FINISH = "finish"  # finish the sealing that is under way, then decide again
    REJECT = "reject"  # it can't be a drop of any route


def on_upload(drop: Drop | None, path: str, at: datetime, route: Route | None) -> OnUpload:
    """Say what an upload of `path` inside the drop at time `at` asks for.

    An event from before the last verdict's newest blob is late: that verdict's listing saw its blob. One from the very
    second of the newest blob may be of a blob that came after the listing (times of blobs have no fractions), so it
    opens the drop again, unless the listing was taken well after that second. If nothing is new, the next look finds
    the same fingerprint and closes the drop without a run.
    """
    if drop is not None and drop.state is DropState.OPEN:
        return OnUpload.LOOK if closes(path) else OnUpload.NOTHING
    if drop is not None and _is_late(drop, at):
        return OnUpload.NOTHING
    if drop is not None and drop.state is DropState.SEALING:
        return OnUpload.FINISH
    if route is None:
        return OnUpload.NOTHING if drop is not None and drop.state is DropState.REJECTED else OnUpload.REJECT
    return OnUpload.OPEN


def _is_late(drop: Drop, at: datetime) -> bool:
    if drop.newest is None or drop.looked_at is None:
        return False
    second = drop.newest.replace(microsecond=0)
    return at.replace(microsecond=0) < second + timedelta(seconds=_saw_it_all(drop))


def _saw_it_all(drop: Drop) -> int:
    """1 if the last listing was taken so long after its newest blob that it has all blobs of that second, else 0."""
    assert drop.newest is not None
    assert drop.looked_at is not None
    return int(drop.looked_at - drop.newest >= timedelta(seconds=SETTLED_SECONDS))


def closes(path: str) -> bool:
    """Whether a blob at this path inside a drop may close it: a marker, or the drop's only file ('')."""
    return path in (SUCCESS_MARKER, "", *JOB_FILES)


def first_look(before: Drop | None, path: str, at: datetime, route: Route) -> float:
    """Seconds from the event that opens a drop to the first look at it.

    An event of the second of the last verdict's newest blob is probably late. The look that finds out comes soon, but
    late enough to settle the question for all such events.
    """
    if before is not None and before.newest is not None and at - before.newest < timedelta(seconds=1):
        return SETTLED_SECONDS
    return 0.0 if closes(path) else min(route.quiet_seconds, route.max_wait_seconds)


# --- a drop: is it complete? -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Survey:
    """What a listing of a drop shows.

    `fingerprint` is over (name, MD5 or etag, size) of its blobs in listing order, but for the `_SUCCESS` marker.

    The etag stands in where the service knows no MD5 (a blob of several blocks, written without one). So the same bytes
    uploaded again in one request give the same fingerprint, in many requests a new one.
    """

    fingerprint: str
    blobs: int
    bytes: int
    data_blobs: int
    newest: datetime | None
    markers: Mapping[str, Blob]
    single_file: bool
    problem: str | None


def survey(key: DropKey, blobs: Iterable[Blob]) -> Survey:
    """Look at each blob once, in bounded memory. The listing's order is the service's, the same at every call."""
    digest, count, size, data, newest, problem, single = hashlib.sha256(), 0, 0, 0, None, None, False
    markers: dict[str, Blob] = {}
    for blob in blobs:
        path = blob.name.removeprefix(key.prefix()) if blob.name != str(key) else ""
        single = not path
        if path != SUCCESS_MARKER:  # it says "complete", and is no content
            digest.update(f"{blob.name}\0{blob.md5 or blob.etag.strip(chr(34))}\0{blob.size}\n".encode())
        count, size = count + 1, size + blob.size
        if blob.last_modified is not None:
            newest = blob.last_modified if newest is None else max(newest, blob.last_modified)
        if path in (SUCCESS_MARKER, *JOB_FILES):
            markers[path] = blob
        else:
            data += 1
            problem = problem or (path_problem(path) if path else None)
    return Survey(digest.hexdigest(), count, size, data, newest, markers, single, problem)


class Verdict(StrEnum):
    SEAL = "seal"
    WAIT = "wait"
    REJECT = "reject"
    UNCHANGED = "unchanged"  # same content as sealed before: close it again, no run
    FORGET = "forget"  # every blob is gone


@dataclass(frozen=True)
class DropVerdict:
    """What to do with an open drop, and why, for its owner to read. `wait` in seconds, until the next look."""

    verdict: Verdict
    code: str
    why: str
    wait: float = 0.0


def judge_drop(drop: Drop, seen: Survey, route: Route, now: datetime) -> DropVerdict:
    """Say whether the drop is complete.

    It is when a marker came after the last sealing (`_SUCCESS` at once, a job file when nothing arrived for the route's
    settle time, because folders are often uploaded in parallel or by name), when it is a single archive, when nothing
    arrived for the quiet period, or at the maximum wait.
    """
    if seen.blobs == 0 and drop.generation == 0:
        return DropVerdict(Verdict.FORGET, "gone", "Every blob of it was deleted before it closed.")
    if _nothing_new(drop, seen):
        return DropVerdict(Verdict.UNCHANGED, "unchanged", f"Its content is that of run {drop.run}.")
    waited, quiet = _ages(drop, seen, now)
    closed = _closed_by(drop, seen, route, waited, quiet)
    if closed is None:
        wait = min(route.quiet_seconds - quiet, route.max_wait_seconds - waited)
        if _fresh(drop, seen, JOB_FILES):
            wait = min(wait, route.settle_seconds - quiet)
        why = f"Closes after {route.quiet_seconds:g} s without an upload."
        return DropVerdict(Verdict.WAIT, "collecting", why, max(wait, 0.1))
    if problem := drop.key.problem() or seen.problem:
        return DropVerdict(Verdict.REJECT, "bad_name", problem)
    if seen.data_blobs == 0:
        return DropVerdict(Verdict.REJECT, "empty", "It holds only a marker. Upload the data, then the marker.")
    return DropVerdict(Verdict.SEAL, *closed)


def _nothing_new(drop: Drop, seen: Survey) -> bool:
    """The same fingerprint as sealed before, or a difference that deletions alone explain (they raise no event)."""
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
    """Those of the markers that arrived after the last sealing: an old marker closes no new generation."""
    return [
        name
        for name in names
        if (blob := seen.markers.get(name)) is not None
        and (drop.generation == 0 or drop.newest is None or (blob.last_modified or drop.newest) > drop.newest)
    ]


# --- a run -----------------------------------------------------------------------------------------------------------

HISTORY_LIMIT = 100  # moments kept; a job that is preempted more often keeps its first half and its last


def advance(run: Run, state: RunState, now: datetime, why: str = "") -> dict[str, Any]:
    """The changes to the run's fields when its job is seen in `state`, empty if the table forbids that step."""
    if state not in TRANSITIONS[run.state]:
        return {}
    history = (*run.history, Moment(state, now, why))
    if len(history) > HISTORY_LIMIT:
        history = history[: HISTORY_LIMIT // 2] + history[-HISTORY_LIMIT // 2 :]
    changes: dict[str, Any] = {"state": state, "history": history}
    starts_anew = state is RunState.QUEUED and run.state is RunState.RUNNING
    if starts_anew or (run.attempts == 0 and state in (RunState.QUEUED, RunState.RUNNING)):
        changes["attempts"] = run.attempts + 1
    if state in (RunState.FAILED, RunState.CANCELED):
        changes["reason"] = why
    return changes


def first_moment(run: Run) -> tuple[Moment, ...]:
    """The history of a run that was just received."""
    return (Moment(RunState.RECEIVED, run.created_at, f"Drop {run.drop} was sealed."),)


def why_step(run: Run, status: JobStatus) -> str:
    """One sentence about a step that needs one."""
    if run.state is RunState.RUNNING and status.state is RunState.QUEUED:
        return "The job lost its nodes and waits for others."
    if status.state is RunState.CANCELED:
        return status.error or ("Canceled as asked." if run.cancel_asked_at else "The job was canceled in Azure ML.")
    return ""


def first_line(text: str) -> str:
    """The first sentence-like line of an error, without what follows "Error:" (the log tells that better)."""
    line = text.strip().partition("\n")[0]
    return line.partition(" Error: ")[0].strip()


def failing_log(tails: Mapping[str, str], lines: int) -> tuple[str, str]:
    """Of several ranks' log ends, the name and the last lines of the one that explains a failure.

    A rank that raised says more than those that then lost their peer, whose last line is about a connection: those come
    second, and third the first rank that wrote at all.
    """
    written = {name: tail.strip() for name, tail in sorted(tails.items()) if tail.strip()}
    raised = {name: tail for name, tail in written.items() if "Traceback" in tail or ": failed:" in tail}
    own = {name: tail for name, tail in raised.items() if "connection" not in tail.rpartition("\n")[2].lower()}
    for candidates in (own, raised, written):
        for name, tail in candidates.items():
            return name, "\n".join(tail.splitlines()[-lines:])
    return "", ""


def is_over(run: Run) -> bool:
    return run.state in FINAL


LOWER_IS_BETTER = ("loss", "error", "perplexity", "seconds", "wait")


def fold_metrics(
    rows: Iterable[Mapping[str, Any]], skip: frozenset[str] = frozenset({"time", "step", "epoch"})
) -> tuple[dict[str, float], dict[str, float]]:
    """The last and the best value of each metric. Lower is better for those that LOWER_IS_BETTER names."""
    last: dict[str, float] = {}
    best: dict[str, float] = {}
    for row in rows:
        for name, value in row.items():
            if name in skip or isinstance(value, bool) or not isinstance(value, int | float) or value != value:
                continue
            last[name] = float(value)
            pick = min if any(word in name for word in LOWER_IS_BETTER) else max
            best[name] = pick(best.get(name, float(value)), float(value))
    return last, best


# --- a cluster -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Need:
    """What is known of a cluster's use: what needs it now, in words, or when its last run of ours ended."""

    busy: str | None = None
    last_used: datetime | None = None


def judge_cluster(cluster: Cluster, need: Need, latest: Decision | None, now: datetime) -> Decision:
    """One decision about a cluster.

    It goes to zero when nothing needs it, no node runs anything, and that has been so for its own idle time.
    """
    busy = need.busy
    decision = Decision(cluster.name, "keep", "busy", busy or "", now)
    if busy:
        return decision
    if cluster.busy_nodes:
        return replace(decision, code="busy_nodes", why=f"{cluster.busy_nodes} of {cluster.nodes} nodes are working.")
    since = (latest.idle_since if latest else None) or now
    since = max(since, need.last_used or since)
    decision = replace(decision, idle_since=since)
    if cluster.min_nodes == 0 and cluster.nodes == 0:
        return replace(decision, code="at_zero", why="It has no nodes.")
    if cluster.min_nodes == 0:
        return replace(decision, code="scales_itself", why=f"Its minimum is 0 already; {cluster.nodes} nodes are up.")
    idle = now - since
    if idle < timedelta(seconds=cluster.idle_seconds):
        why = f"Idle for {idle.total_seconds():.0f} of {cluster.idle_seconds:g} s."
        return replace(decision, code="idle_time", why=why)
    why = f"Nothing needs it, for {idle.total_seconds():.0f} s; its minimum was {cluster.min_nodes}."
    return replace(decision, action="to-zero", code="idle", why=why)
