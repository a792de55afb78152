"""From uploads to one run: note an upload, look at a drop, seal it."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from shared.drops.decide import (
    SETTLED_SECONDS,
    DropVerdict,
    OnUpload,
    Survey,
    Verdict,
    first_look,
    judge_drop,
    on_upload,
    survey,
)
from shared.drops.model import JOB_FILES, Drop, DropKey, DropState
from shared.events.announce import announce
from shared.jobs import jobspec
from shared.jobs.model import Problem
from shared.jobs.routes_file import Route
from shared.kernel.errors import BadInput, Changed
from shared.kernel.storage import Blob, Place
from shared.kernel.stored import Stored
from shared.runs.decide import first_moment
from shared.runs.elastic import begin
from shared.runs.model import Run, RunState, run_name
from shared.system import DROP_CHECKS, DROPS_CONTAINER, SUBMISSIONS, System

log = logging.getLogger(__name__)

WRITE_ATTEMPTS = 10  # rounds of read-decide-write before a message goes back to its queue


def note_upload(system: System, blob_name: str, at: datetime) -> None:
    """Note that a blob of the drops container was written at time `at`. Most events cost one read.

    The row is written before its check is sent: if we die in between, the reconcile timer sends one.
    """
    key = DropKey.of(blob_name)
    path = "" if blob_name == str(key) else blob_name.removeprefix(key.prefix())
    for _ in range(WRITE_ATTEMPTS):
        stored = system.drops.get(key)
        step = on_upload(stored.value if stored else None, path, at, _route(system, key))
        try:
            if _take(system, step, stored, key, path, at):
                return
        except Changed:
            continue
    raise Changed(f"Drop {key} changed {WRITE_ATTEMPTS} times while an upload was noted.")


def _take(system: System, step: OnUpload, stored: Stored[Drop] | None, key: DropKey, path: str, at: datetime) -> bool:
    """Do what the upload asks for. False: the drop was brought to another state first, decide again."""
    if step is OnUpload.REJECT:
        _write(system, stored, _unknown_route(system, stored, key, at))
    elif step is OnUpload.OPEN:
        before = stored.value if stored else None
        open_drop(system, stored, key, first_look(before, path, at, system.routes[key.route]))
    elif step is OnUpload.LOOK and stored:
        send_check(system, stored.value)
    elif step is OnUpload.FINISH and stored:
        _finish_sealing(system, stored)
        return False
    return True


def open_drop(system: System, stored: Stored[Drop] | None, key: DropKey, look_after: float) -> None:
    """Begin collecting. Raises Changed if another writer was first."""
    now = system.clock()
    before = stored.value if stored else Drop(key, DropState.OPEN, "", now)
    opened = replace(
        before,
        state=DropState.OPEN,
        token=system.new_token(),
        opened_at=now,
        code="collecting",
        why="Uploads are arriving.",
    )
    _write(system, stored, opened)
    send_check(system, opened, look_after)


def send_check(system: System, drop: Drop, delay: float = 0.0, last: bool = False) -> None:
    """Ask for a look at the drop. `last`: that look asks for no further one, because another chain of looks exists."""
    message = {"route": drop.key.route, "name": drop.key.name, "token": drop.token, "last": last}
    system.queues.send(DROP_CHECKS, message, delay)


def check_drop(system: System, key: DropKey, token: str, last: bool = False) -> None:
    """Look at a drop: seal it, reject it, or look again later. A stale token does nothing.

    A drop that was just closed is looked at once more, for uploads between the listing that closed it and the write:
    their events saw an open drop, and did nothing.
    """
    stored = system.drops.get(key)
    if stored is None or stored.value.token != token:
        return
    try:
        if stored.value.state is DropState.SEALING:
            _finish_sealing(system, stored)
        elif stored.value.state is DropState.OPEN:
            _judge(system, stored, last)
        else:
            _look_once_more(system, stored)
    except Changed:
        log.info("drop %s: another look was quicker", key)


def _judge(system: System, stored: Stored[Drop], last: bool) -> None:
    drop = stored.value
    route = _route(system, drop.key)
    if route is None:
        _write(system, stored, _unknown_route(system, stored, drop.key, system.clock()))
        return
    now = system.clock()
    seen = survey(drop.key, _blobs(system, drop.key))
    verdict = judge_drop(drop, seen, route, now)
    log.info("drop %s: %s, %s", drop.key, verdict.verdict, verdict.why)
    if verdict.verdict is Verdict.WAIT:
        if not last:
            send_check(system, drop, verdict.wait)
    elif verdict.verdict is Verdict.FORGET:
        system.drops.delete(drop.key, stored.etag)
    else:
        send_check(system, drop, SETTLED_SECONDS, last=True)
        looked = replace(drop, newest=seen.newest or drop.newest, looked_at=now, listed=seen.fingerprint)
        _close(system, Stored(looked, stored.etag), seen, verdict, route)


def _close(system: System, looked: Stored[Drop], seen: Survey, verdict: DropVerdict, route: Route) -> None:
    if verdict.verdict is Verdict.UNCHANGED:
        closed = replace(looked.value, state=DropState.SEALED, code=verdict.code, why=verdict.why)
        system.drops.replace(closed, looked.etag)
    elif verdict.verdict is Verdict.REJECT:
        _reject(system, looked, verdict.code, verdict.why)
    else:
        _seal(system, looked, seen, verdict, route)


def _look_once_more(system: System, stored: Stored[Drop]) -> None:
    """Open a closed drop again if it holds other content than the listing that closed it."""
    drop, now = stored.value, system.clock()
    seen = survey(drop.key, _blobs(system, drop.key))
    route = _route(system, drop.key)
    if route is not None and seen.fingerprint != drop.listed and seen.newest is not None:
        open_drop(system, stored, drop.key, min(route.quiet_seconds, route.max_wait_seconds))
    else:
        system.drops.replace(replace(drop, looked_at=now), stored.etag)


def _blobs(system: System, key: DropKey) -> Iterator[Blob]:
    """The drop's blobs: those in its folder, or the one that has its very name."""
    inside = system.blobs.list(Place(DROPS_CONTAINER, key.prefix()))
    first = next(inside, None)
    if first is not None:
        return itertools.chain([first], inside)
    exact = next(system.blobs.list(Place(DROPS_CONTAINER, str(key))), None)
    return iter([exact] if exact is not None and exact.name == str(key) else [])


def _seal(system: System, stored: Stored[Drop], seen: Survey, verdict: DropVerdict, route: Route) -> None:
    """Write what the run will be (the write-ahead mark), then make the run."""
    drop = stored.value
    run = run_name(drop.key, seen.fingerprint)
    try:
        job_file = _job_file(system, drop.key, seen)
        order = jobspec.JobOrder(run, drop.key, seen.single_file, seen.fingerprint, route, job_file)
        request = jobspec.build(order)
        problems = _problems(system, request, job_file, route) if job_file else []
    except jobspec.BrokenJobFile as exc:
        _reject(system, stored, "bad_job_file", str(exc))
        return
    if job_file and problems:
        _reject(system, stored, "bad_job_file", job_file.explain(problems))
        return
    sealing = replace(
        drop,
        state=DropState.SEALING,
        generation=drop.generation + 1,
        fingerprint=seen.fingerprint,
        run=run,
        request=request,
        blobs=seen.blobs,
        bytes=seen.bytes,
        sealed_at=system.clock(),
        code=verdict.code,
        why=verdict.why,
    )
    _finish_sealing(system, system.drops.replace(sealing, stored.etag))


def _problems(system: System, job: dict[str, Any], job_file: jobspec.JobFile, route: Route) -> list[Problem]:
    """What the route forbids, and what Azure ML's schema refuses; each key is told once."""
    forbidden = jobspec.forbidden(job, job_file, route)
    if not route.job_file.allowed:
        return forbidden
    told = {problem.path for problem in forbidden}
    return forbidden + [problem for problem in system.jobs.problems(job) if problem.path not in told]


def _job_file(system: System, key: DropKey, seen: Survey) -> jobspec.JobFile | None:
    names = [name for name in JOB_FILES if name in seen.markers]
    if len(names) > 1:
        raise jobspec.BrokenJobFile(f"The drop holds {' and '.join(names)}; keep one of them.")
    if not names:
        return None
    try:
        data = system.blobs.read(DROPS_CONTAINER, key.prefix() + names[0], jobspec.JOB_FILE_LIMIT)
    except BadInput as exc:
        raise jobspec.BrokenJobFile(str(exc)) from exc
    return jobspec.read_job_file(names[0], data)


def _finish_sealing(system: System, stored: Stored[Drop]) -> None:
    """Make the run that a sealing drop names, send it off, and close the drop. Each step may have been done before."""
    drop = stored.value
    job = drop.request
    run = Run(
        name=drop.run,
        drop=str(drop.key),
        route=drop.key.route,
        fingerprint=drop.fingerprint,
        experiment=str(job.get("experiment_name", drop.key.route)),
        cluster=jobspec.cluster(job),
        nodes=jobspec.nodes(job),
        created_at=drop.sealed_at or system.clock(),
        request=job,
    )
    route = system.routes.get(drop.key.route)
    bounds = (route.min_nodes, route.resubmissions) if route else (0, 0)
    run = replace(run, history=first_moment(run), elastic=begin(job, bounds, run.created_at))
    if system.runs.insert(run) or system.runs.get(run.name).value.state is RunState.RECEIVED:
        system.queues.send(SUBMISSIONS, {"run": run.name})
    announce(system, "DropSealed", f"{drop.key}/{drop.generation}", {"drop": str(drop.key), "run": drop.run})
    system.drops.replace(replace(drop, state=DropState.SEALED), stored.etag)


def _reject(system: System, stored: Stored[Drop], code: str, why: str) -> None:
    system.drops.replace(replace(stored.value, state=DropState.REJECTED, code=code, why=why), stored.etag)


def _unknown_route(system: System, stored: Stored[Drop] | None, key: DropKey, at: datetime) -> Drop:
    problem = key.problem()
    why = problem or f"There is no route {key.route!r}. Routes: {', '.join(sorted(system.routes)) or 'none'}."
    before = stored.value if stored else Drop(key, DropState.REJECTED, system.new_token(), system.clock())
    code = "bad_name" if problem else "unknown_route"
    return replace(before, state=DropState.REJECTED, code=code, why=why, newest=at, looked_at=at)


def _write(system: System, stored: Stored[Drop] | None, drop: Drop) -> Stored[Drop]:
    return system.drops.replace(drop, stored.etag) if stored else system.drops.insert(drop)


def _route(system: System, key: DropKey) -> Route | None:
    return None if key.problem() else system.routes.get(key.route)
