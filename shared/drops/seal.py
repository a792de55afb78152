"""From a complete drop to its one run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from shared.drops.decide import DropVerdict, Survey, survey
from shared.drops.model import JOB_FILES, Drop, DropState
from shared.events.announce import announce
from shared.jobs.build import Built, JobOrder, build
from shared.jobs.data import data_of
from shared.jobs.model import Problem
from shared.jobs.readers.around import Around, Written
from shared.jobs.readers.azureml import path_of
from shared.jobs.readers.job_file import JOB_FILE_LIMIT, BrokenJobFile, JobFile, read_job_file
from shared.jobs.readers.written import read_of_drop
from shared.jobs.routes_file import Route
from shared.jobs.spec import JobSpec, Layer
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import BadInput
from shared.kernel.storage import Place
from shared.kernel.versioned import Stored
from shared.money.admission import project_of
from shared.runs.data import Listing, keep_listing
from shared.runs.decide import first_moment
from shared.runs.intake.from_job import run_of
from shared.runs.model import Run, RunState, run_name
from shared.system import DROPS_CONTAINER, SUBMISSIONS, System


@dataclass(frozen=True)
class Complete:
    """What is known of a drop that is complete."""

    seen: Survey
    verdict: DropVerdict
    route: Route
    listing: Listing


def seal(system: System, stored: Stored[Drop], complete: Complete) -> None:
    """Write what the run will be (the write-ahead mark), then make the run. Rejects a drop that can't become one."""
    drop, seen, verdict, route = stored.value, complete.seen, complete.verdict, complete.route
    name = run_name(drop.key, seen.fingerprint)
    try:
        job_file = _job_file(system, drop.key, seen)
        written = _written(system, route, job_file, Place(DROPS_CONTAINER, drop.key.prefix()))
        built = build(_order(name, drop.key, seen, route, written))
    except BrokenJobFile as exc:
        reject(system, stored, "bad_job_file", str(exc))
        return
    problems = [*_absent(written), *_problems(system, built, written, route)]
    if problems or built.job is None:
        code = "bad_job_file" if job_file else "bad_job"
        reject(system, stored, code, (job_file or JobFile("The job", {}, {})).explain(problems))
        return
    keep_listing(system, f"{built.job.experiment}/{name}", complete.listing)
    sealing = replace(
        drop,
        state=DropState.SEALING,
        generation=drop.generation + 1,
        fingerprint=seen.fingerprint,
        run=name,
        request=built.job,
        blobs=seen.blobs,
        bytes=seen.bytes,
        owner=seen.owner,
        sealed_at=system.clock(),
        code=verdict.code,
        why=" ".join([verdict.why, *([written.summary] if written and written.summary else [])]),
    )
    finish_sealing(system, system.drops.replace(sealing, stored))


def finish_sealing(system: System, stored: Stored[Drop]) -> None:
    """Make the run that a sealing drop names, send it off, and close the drop. Each step may have been done before."""
    drop = stored.value
    try:
        inserted = system.runs.insert(_run(system, drop))
    except BadInput as exc:  # its record can't be written, ever
        reject(system, stored, "bad_job", str(exc))
        return
    if inserted or system.runs.get(drop.run).value.state is RunState.RECEIVED:
        system.queues.send(SUBMISSIONS, {"run": drop.run})
    announce(system, "DropSealed", f"{drop.key}/{drop.generation}", {"drop": str(drop.key), "run": drop.run})
    system.drops.replace(replace(drop, state=DropState.SEALED), stored)


def reject(system: System, stored: Stored[Drop], code: str, why: str) -> None:
    system.drops.replace(replace(stored.value, state=DropState.REJECTED, code=code, why=why), stored)


def _written(system: System, route: Route, job_file: JobFile | None, folder: Place | None) -> Written | None:
    """What the job file says, in words of ours; `folder` is None before there is a drop. Raises BrokenJobFile."""
    if job_file is None or not route.job_file.allowed:
        return Written(Layer()) if job_file else None
    limits = replace(route.limits, max_upload_mib=system.limits.max_upload_mib)
    return read_of_drop(job_file, Around(system, limits, folder))


def _absent(written: Written | None) -> list[Problem]:
    return [Problem("properties", sentence, "no_data") for sentence in (written.absent if written else ())]


def route_problems(
    system: System, key: DropKey, route: Route, content: dict[str, Any] | None
) -> tuple[JobSpec | None, list[Problem]]:
    """The job of a drop with such a job file, and all that is wrong with it; asked before there is a drop."""
    job_file = None if content is None else JobFile("job.yaml", content, {})
    try:
        written = _written(system, route, job_file, None)
    except BrokenJobFile as exc:
        return None, [Problem("code", str(exc))]
    built = build(_order("checked", key, survey(key, ()), route, written))
    return built.job, _problems(system, built, written, route)


def _order(name: str, key: DropKey, seen: Survey, route: Route, written: Written | None) -> JobOrder:
    data = data_of(key, seen.single_file)
    tags = {"trainyard.drop": str(key), "trainyard.route": route.name, "trainyard.fingerprint": seen.fingerprint}
    template = written.template if written and written.template else route.template
    return JobOrder(
        run=name,
        title=str(key),
        template=replace(template, description=template.description or f"Trained from drop {key}."),
        parameters={} if written and written.template else route.parameters,
        limits=route.limits,
        defaults=route.defaults,
        written=written.layer if written else None,
        data=data,
        root=data,
        tags=tags,
    )


def _problems(system: System, built: Built, written: Written | None, route: Route) -> list[Problem]:
    """What is wrong with the job: by the limits, and for a job file by Azure ML's schema. Each key is told once."""
    if written is None:
        return list(built.problems)
    if not route.job_file.allowed:
        why = f"route {route.name!r} takes no job files. Remove it, and close the drop with _SUCCESS."
        return [Problem("", why)]
    told = {path_of(problem.path) for problem in built.problems}
    schema = system.jobs.problems(built.job) if built.job else []
    return [*written.problems, *built.problems, *(problem for problem in schema if problem.path not in told)]


def _job_file(system: System, key: DropKey, seen: Survey) -> JobFile | None:
    names = [name for name in JOB_FILES if name in seen.markers]
    if len(names) > 1:
        raise BrokenJobFile(f"The drop holds {' and '.join(names)}; keep one of them.")
    if not names:
        return None
    try:
        data = system.blobs.read(DROPS_CONTAINER, key.prefix() + names[0], JOB_FILE_LIMIT)
    except BadInput as exc:
        raise BrokenJobFile(str(exc)) from exc
    return read_job_file(names[0], data)


def _run(system: System, drop: Drop) -> Run:
    job, route = drop.request, system.routes.get(drop.key.route)
    now = drop.sealed_at or system.clock()
    bounds = (route.min_nodes, route.resubmissions) if route else (0, 0)
    run = run_of(drop.run, job, bounds, now)
    run = replace(
        run,
        drop=str(drop.key),
        route=drop.key.route,
        fingerprint=drop.fingerprint,
        experiment=run.experiment or drop.key.route,
        generation=drop.generation,
        owner=drop.owner,
        project=project_of(system, job.tags, drop.key.route),
    )
    return replace(run, history=first_moment(run))
