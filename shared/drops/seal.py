"""Seal a complete drop, and make its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from shared.drops.decide import DropVerdict
from shared.drops.facts import DropComplete, DropSealed
from shared.drops.model import Drop, DropState, generation_of
from shared.drops.ports import DropPorts, Drops
from shared.jobs.build import Built, build
from shared.jobs.data import data_of
from shared.jobs.downloads import out_of_reach
from shared.jobs.order import JobOrder
from shared.jobs.ports import Around, Jobs, WorkspacePorts, Written
from shared.jobs.problem import Problem
from shared.jobs.readers.azureml import path_of
from shared.jobs.readers.job_file import JOB_FILE_LIMIT, BrokenJobFile, JobFile, job_file_of, read_job_file
from shared.jobs.route import Route
from shared.jobs.route_sweep import for_drop
from shared.jobs.spec import JobSpec, Layer
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import BadInput
from shared.kernel.places import DROPS_CONTAINER
from shared.kernel.storage import Blobs, Place
from shared.kernel.versioned import Stored
from shared.runs.content import JOB_FILES, Survey, survey
from shared.runs.data import PackedListing, keep_listing
from shared.runs.features import Closing, before_sealing
from shared.runs.names import run_name


@dataclass(frozen=True)
class Complete:
    """The results of checking a complete drop.

    `checked` is the fingerprint of the content whose data an earlier message began to check, '' for none.
    """

    seen: Survey
    verdict: DropVerdict
    route: Route
    listing: PackedListing
    checked: str = ""


@dataclass(frozen=True)
class Prepared:
    """The fate of a complete drop: sealed as `sealing`, or rejected with `code` and `why`.

    `later` is the progress of a check that takes another message.
    """

    sealing: Drop | None = None
    code: str = ""
    why: str = ""
    later: str = ""


def prepare(ports: DropPorts, drop: Drop, complete: Complete) -> Prepared:
    """Build the job of a complete drop, and ask the features about the drop. Writes no record."""
    seen, route = complete.seen, complete.route
    name = run_name(drop.key, seen.fingerprint)
    try:
        job_file = _job_file(ports.blobs, drop.key, seen)
        written = _written(ports, route, job_file, Place(DROPS_CONTAINER, drop.key.prefix()))
        built = build(_order(name, drop.key, seen, route, written)) if route.trains else _no_job(route, written)
        declared = _declared(job_file, written)
    except BrokenJobFile as exc:
        return Prepared(code="bad_job_file", why=str(exc))
    problems = _problems(ports.jobs, route, built, written)
    if problems or built.job is None:
        code = "bad_job_file" if job_file else "bad_job"
        return Prepared(code=code, why=(job_file or JobFile("The job", {}, {})).explain(problems))
    sealing = _sealing(drop, complete, built.job, ports.clock())
    sealing = replace(sealing, run=name if route.trains else "")
    closing = Closing(
        drop.key,
        route,
        generation_of(sealing).folder,
        complete.listing.rows(),
        _has_job(written),
        declared,
        _checking(complete.checked, sealing),
    )
    opinion = before_sealing(ports, closing)
    if opinion.refused:
        return Prepared(code="bad_data", why=opinion.refused)
    why = " ".join(filter(None, (sealing.why, written.summary if written else "", opinion.note)))
    return Prepared(replace(sealing, why=why), later=opinion.later)


def _checking(fingerprint: str, sealing: Drop) -> str:
    """The folder of the check of this content, which an earlier message began; '' for no content."""
    run = run_name(sealing.key, fingerprint) if sealing.run else ""
    return generation_of(replace(sealing, fingerprint=fingerprint, run=run)).folder if fingerprint else ""


def seal(ports: DropPorts, stored: Stored[Drop], prepared: Prepared, listing: PackedListing) -> bool:
    """Write the future run into the drop (the write-ahead mark), then make the run.

    Rejects a drop that can't become a run, and returns False.
    """
    if prepared.sealing is None:
        reject(ports.drops, stored, prepared.code, prepared.why)
        return False
    keep_listing(ports.blobs, generation_of(prepared.sealing).folder, listing)
    finish_sealing(ports, ports.drops.replace(prepared.sealing, stored))
    return True


def _sealing(drop: Drop, complete: Complete, job: JobSpec, at: datetime) -> Drop:
    """The drop in the state `sealing`, with the next generation and content."""
    seen = complete.seen
    return replace(
        drop,
        state=DropState.SEALING,
        generation=drop.generation + 1,
        fingerprint=seen.fingerprint,
        request=job,
        blobs=seen.blobs,
        files=seen.data_blobs,
        bytes=seen.bytes,
        owner=seen.owner,
        sealed_at=at,
        code=complete.verdict.code,
        why=complete.verdict.why,
    )


def _no_job(route: Route, written: Written | None) -> Built:
    """The result for a drop on a route without training: an empty job, or the problems of the job file."""
    problems = written.layer.problems if written else ()
    return Built(None if problems else JobSpec(experiment=route.experiment), problems)


def finish_sealing(ports: DropPorts, stored: Stored[Drop]) -> None:
    """Publish that a sealing drop is complete, make the run, and close the drop. Each step may be a repeat."""
    drop = stored.value
    try:
        ports.happened(DropComplete(drop))
    except BadInput as exc:  # the run's record can never be written
        reject(ports.drops, stored, "bad_job", str(exc))
        return
    ports.happened(DropSealed(drop))
    ports.drops.replace(replace(drop, state=DropState.SEALED), stored)


def reject(drops: Drops, stored: Stored[Drop], code: str, why: str) -> None:
    drops.replace(replace(stored.value, state=DropState.REJECTED, code=code, why=why), stored)


def _written(ports: WorkspacePorts, route: Route, job_file: JobFile | None, folder: Place | None) -> Written | None:
    """The job file as a layer over the route's template; None without a job file. Raises BrokenJobFile.

    `folder` is the drop's folder, None before the drop exists.
    """
    if job_file is None:
        return None
    if not route.trains:
        why = f"Route {route.name!r} does not train, so its drops can't have job files or parameters. Leave them out."
        return Written(Layer(problems=(Problem("", why),)))
    if not route.job_file.allowed:
        why = f"route {route.name!r} does not accept job files. Remove the file, and close the drop with _SUCCESS."
        return Written(Layer(problems=(Problem("", why),)))
    limits = replace(route.limits, max_upload_mib=ports.limits.max_upload_mib)
    return ports.reader.of_drop(job_file, Around(ports, limits, folder))


def brought(ports: WorkspacePorts, route: Route, content: dict[str, Any] | None) -> tuple[bool, Mapping[str, Any]]:
    """Return whether a job file with this content has its own job, and how the file declares the drop's data ({}
    without a declaration).
    """
    job_file = None if content is None else job_file_of("job.yaml", content, {})
    written = _written(ports, route, job_file, None)
    return _has_job(written), _declared(job_file, written)


def _declared(job_file: JobFile | None, written: Written | None) -> Mapping[str, Any]:
    """Return how a job file declares the drop's data. Raises BrokenJobFile if the route's job reads this data."""
    if job_file is None or not job_file.data:
        return {}
    if not _has_job(written):
        why = "data: the job of the route reads the drop, so the route declares its data. Bring a job of your own."
        raise BrokenJobFile(f"{job_file.where('data')}: {why}")
    return job_file.data


def _has_job(written: Written | None) -> bool:
    return bool(written and (written.template or written.layer.job.command))


def route_problems(
    ports: WorkspacePorts, key: DropKey, route: Route, content: dict[str, Any] | None
) -> tuple[JobSpec | None, list[Problem]]:
    """The job of a drop with this job file, and the job's problems. Called before the drop exists."""
    try:
        job_file = None if content is None else job_file_of("job.yaml", content, {})
    except BrokenJobFile as exc:
        return None, [Problem("", str(exc))]
    try:
        written = _written(ports, route, job_file, None)
        _declared(job_file, written)
    except BrokenJobFile as exc:
        return None, [Problem("" if job_file and job_file.data else "code", str(exc))]
    if written:
        written = replace(written, absent=())  # the drop may bring the files that the job reads
    built = build(_order("checked", key, survey(key, ()), route, written)) if route.trains else _no_job(route, written)
    return built.job, _problems(ports.jobs, route, built, written)


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
        defaults=replace(route.defaults, sweep=for_drop(route.sweep, written.layer.job if written else None)),
        written=written.layer if written else None,
        data=data,
        root=data,
        tags=tags,
    )


def _problems(jobs: Jobs, route: Route, built: Built, written: Written | None) -> list[Problem]:
    """Problems of the job: by the limits, by downloads that fail and, for a job file, by Azure ML's schema. Each key is
    reported once.
    """
    if built.job is None or built.problems:
        downloads = []
    else:
        downloads = list(out_of_reach(jobs, {} if _has_job(written) else route.parameters, built.job))
    if written is None or built.job is None:
        return [*built.problems, *downloads]
    absent = (Problem("properties", sentence, "no_data") for sentence in written.absent)
    reported = {path_of(problem.path) for problem in built.problems}
    schema = (problem for problem in jobs.problems(built.job) if problem.path not in reported)
    return [*written.problems, *absent, *built.problems, *downloads, *schema]


def _job_file(blobs: Blobs, key: DropKey, seen: Survey) -> JobFile | None:
    names = [name for name in JOB_FILES if name in seen.markers]
    if len(names) > 1:
        raise BrokenJobFile(f"The drop contains {' and '.join(names)}; keep only one of them.")
    if not names:
        return None
    try:
        data = blobs.read(DROPS_CONTAINER, key.prefix() + names[0], JOB_FILE_LIMIT)
    except BadInput as exc:
        raise BrokenJobFile(str(exc)) from exc
    return read_job_file(names[0], data)
