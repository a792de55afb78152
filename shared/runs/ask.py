"""Runs that people ask for: make one, or say what would be made. Those made from other runs are in successors.py."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import msgspec

from shared.api import requests
from shared.api.requests import NodeRange, RunRequest
from shared.batchai.adopt import Adopted
from shared.clusters.waiting import refusal
from shared.drops.model import DropKey, DropState
from shared.jobs.assets import assets
from shared.jobs.build import JobOrder, Values, build
from shared.jobs.data import Data, read_data
from shared.jobs.job import cluster, mapping, nodes, resolve, timeout, uses_own_environment
from shared.jobs.parameters import Parameters, resolved
from shared.jobs.routes_file import NUMBERS, Route
from shared.jobs.trainer import trainer_names, trainer_template
from shared.jobs.uploads import check_complete
from shared.kernel.errors import Conflict, Impossible, NotFound, Unavailable
from shared.kernel.storage import Place
from shared.kernel.suggest import did_you_mean, there_are
from shared.money import admission
from shared.runs.batchai import adopt_request
from shared.runs.elastic import begin
from shared.runs.model import Moment, Run, RunState, asked_run_name
from shared.runs.workloads import workload
from shared.system import DROPS_CONTAINER, SUBMISSIONS, System

log = logging.getLogger(__name__)

SENT_BY_THEN = timedelta(seconds=5)  # a call that lives sends the run off milliseconds after it recorded it
RESUBMISSIONS = int(NUMBERS["resubmissions"][0])  # of a run whose job has no route
Reason = dict[str, str]
NEVER = ("unknown_cluster", "too_many_nodes")  # reasons that no waiting mends


def create_run(system: System, request: RunRequest, key: str | None = None, owner: str = "", owner_id: str = "") -> Run:
    """Record the run and queue its submission. The same key is the same run, whatever happened in between.

    Raises Conflict if the key was used for another request, Impossible for one that can't become a job. If it dies
    after the record was written, the reconcile timer queues the submission.
    """
    name, asked = _run_name(system, key), requests.digest(request)
    if key and (made := _made_before(system, name, asked)):
        return made
    asking = _asking(system, request, name)
    data = asking.order.data
    if data and data.single_file is None and data.below_drops:
        raise Impossible(f"There is nothing at {data.below_drops!r} in the drops container.", "no_data")
    if missing := _missing(asking):
        raise Impossible(" ".join(reason["message"] for reason in missing), "no_data")
    run = replace(_received(system, asking), asked=asked, owner=owner, owner_id=owner_id)
    check_complete(system, run.request)
    _check_possible(system, run)
    return record(system, run)


def _check_possible(system: System, run: Run) -> None:
    """Raise Impossible for a run that could never start: no such cluster or datastore, or more nodes than there are.

    What can't be asked now is not held against the run.
    """
    try:
        reasons = _cluster_reasons(system, run.cluster, workload(run).fewest_nodes(run))
        for value in mapping(run.request.get("inputs")).values():
            path = str(value.get("path", "")) if isinstance(value, dict) else ""
            if path.startswith("azureml://datastores/"):
                system.jobs.place(path)
        never = [reason for reason in reasons if reason["code"] in NEVER] or _lacks(system, run.request)
    except NotFound as exc:
        raise Impossible(str(exc), "bad_data") from exc
    except Unavailable as exc:
        log.warning("run %s: whether it can start could not be asked. %s", run.name, exc)
        return
    if never:
        raise Impossible(never[0]["message"], never[0]["code"])


def _lacks(system: System, job: dict[str, Any]) -> list[Reason]:
    """What the workspace can't give the job. The environment of the trainers is left out: it is always there."""
    own = {"environment": None} if uses_own_environment(job) else {}
    return [_reason("not_available", words) for words in system.jobs.lacks({**job, **own})]


def dry_run(system: System, request: RunRequest, key: str | None = None) -> dict[str, Any]:
    """The job that would be sent, and why it could not start now: `{"job": ..., "reasons": [{"code", "message"}]}`.

    Of an elastic run it is the first member's. Makes nothing. Without a key the job has another name at every call, as
    a real one would.
    """
    asking = _asking(system, request, _run_name(system, key))
    run = _received(system, asking)
    how = workload(run)
    job = how.request(run, how.jobs(run)[0], system.rendezvous, run.created_at)
    job, reasons = _looked_over(system, job, how.fewest_nodes(run))
    reasons = [*_missing(asking), *_data_reasons(system, asking.order.data), *reasons]
    run = admission.priced(system, run)
    if why := admission.refusal(system, run):
        reasons.append(_reason(why.code, why.why))
    return {"job": job, "reasons": reasons, "cost": costs(run), **_told(asking)}


def plan(system: System, request: RunRequest) -> dict[str, Any]:
    """The same for a Batch AI job that nobody may want to send yet: what is wrong with it is among the reasons."""
    asking = _asking(system, request, _run_name(system, None))
    built = build(asking.order)
    job, reasons = _looked_over(system, built.job, nodes(built.job))
    wrong = [_reason(p.code, f"{p.path} {p.message}") for p in built.problems]
    return {"job": job, "reasons": [*wrong, *_missing(asking), *reasons], **_told(asking)}


def _looked_over(system: System, job: dict[str, Any], fewest: int) -> tuple[dict[str, Any], list[Reason]]:
    """The job with its ids, and why it could not start now."""
    reasons: list[Reason] = []
    asked = job
    try:
        ids = assets(system, job, register=False)
        job = resolve(job, ids.code, ids.environment, ids.code_digest)
        reasons += [_reason("bad_job", f"{p.path}: {p.message}") for p in system.jobs.problems(job)]
        reasons += _lacks(system, asked)
        if name := cluster(job):
            reasons += _cluster_reasons(system, name, fewest)
    except Unavailable as exc:
        reasons.append(_reason("unavailable", str(exc)))
    return job, reasons


def _told(asking: _Asking) -> dict[str, Any]:
    """Of a Batch AI job, what became of its fields."""
    return {"report": [finding.said() for finding in asking.adopted.report.findings]} if asking.adopted else {}


def _missing(asking: _Asking) -> list[Reason]:
    return [_reason("no_data", sentence) for sentence in (asking.adopted.missing if asking.adopted else ())]


def costs(run: Run) -> dict[str, Any]:
    """What is known of a run's cost before it starts."""
    return {
        "project": run.project,
        "estimated": run.estimated_cost,
        "greatest": run.greatest_cost,
        "price": run.price or None,
        "price_from": run.price_from,
    }


def _run_name(system: System, key: str | None) -> str:
    return asked_run_name("key", key) if key else asked_run_name("token", system.new_token())


def _made_before(system: System, name: str, asked: str) -> Run | None:
    """The run of this name; None if there is none. Sent off again if the call that made it seems to have died."""
    try:
        run = system.runs.get(name).value
    except NotFound:
        return None
    if run.asked != asked:
        raise Conflict(
            f"This Idempotency-Key made run {name} from another request. Use a new key.", "idempotency_conflict"
        )
    if run.state is RunState.RECEIVED and system.clock() - run.created_at > SENT_BY_THEN:
        system.queues.send(SUBMISSIONS, {"run": name})
    return run


def record(system: System, run: Run) -> Run:
    """Record the run and send it off, or give the one that was recorded under its name for the same request.

    Raises Conflict if its project's budget does not allow it.
    """
    run = admission.priced(system, run)
    try:
        admission.admit(system, run)
    except Conflict:
        if made := _made_before(system, run.name, run.asked):
            return made
        raise
    return _insert(system, run) or _made_before(system, run.name, run.asked) or run


def _insert(system: System, run: Run) -> Run | None:
    """Record the run and send it off; None if one of its name was there."""
    if not system.runs.insert(run):
        return None
    system.queues.send(SUBMISSIONS, {"run": run.name})
    log.info("run %s: received, for cluster %s", run.name, run.cluster)
    return run


# --- from the request to the job -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Asking:
    """A request, what its job is built from, and the fewest nodes and resubmissions of an elastic one.

    `adopted` is what a Batch AI document became.
    """

    request: RunRequest
    order: JobOrder
    bounds: tuple[int, int]
    route: str  # that has the defaults, '' without one
    adopted: Adopted | None = None


def _asking(system: System, request: RunRequest, name: str) -> _Asking:
    adopted = adopt_request(system, request)
    if adopted:
        request = msgspec.structs.replace(request, job=adopted.job)
    template, described, route = (adopted.template, {}, None) if adopted else _template(system, request)
    data = read_data(request.data) if request.data else None
    if data:
        data = replace(data, single_file=_single_file(system, data))
    start = model_of(system, request.from_run) if request.from_run else ""
    what = request.trainer or request.template or name
    asked, defaults = _values(request), route.defaults if route else _defaults(system, request, template)
    resubmissions = request.resubmissions
    if resubmissions is None:
        resubmissions = route.resubmissions if route else RESUBMISSIONS
    fewest = asked.min_nodes or (0 if asked.nodes else defaults.min_nodes)
    order = JobOrder(
        run=name,
        title=f"{what}: {request.data}"[:200] if request.data else what,
        template=template,
        parameters=described,
        limits=route.limits if route else system.limits,
        defaults=defaults,
        written=request.job or {},
        asked=asked,
        data=data,
        from_model=start,
        tags=_tags(request, data),
    )
    return _Asking(request, order, (fewest, int(resubmissions)), route.name if route else "", adopted)


def model_of(system: System, name: str) -> str:
    """The folder of the model that a run left. Raises Impossible if there is none, or not any more."""
    try:
        run = system.runs.get(name).value
    except NotFound as exc:
        raise Impossible(str(exc), "no_model") from exc
    if run.state is not RunState.COMPLETED:
        raise Impossible(f"Run {name} is {run.state}; only a completed one has a model to start from.", "no_model")
    path = str(mapping(mapping(run.request.get("outputs")).get("models")).get("path", ""))
    if not path or system.blobs.first(system.jobs.place(path)) is None:
        gone = "was removed" if run.removed_at else f"was cleaned up; its archive has it: fetch {name} --only models"
        raise Impossible(f"No job can begin with the model of run {name}: it {gone}.", "no_model")
    return path


def _template(system: System, request: RunRequest) -> tuple[dict[str, Any], Parameters, Route | None]:
    """The job to begin with, and the route that has its defaults. A trainer takes those of its first route."""
    if request.job is not None:
        return {}, {}, None
    if request.template is not None:
        route = system.routes[_choose("template", request.template, system.routes)]
        return route.template, route.parameters, route
    trainer = _choose("trainer", request.trainer or "", trainer_names(system.trainers))
    first = next((route for _, route in sorted(system.routes.items()) if route.trainer == trainer), None)
    if first:
        return first.template, first.parameters, first
    return *trainer_template(system.trainers, trainer), None


def _choose(what: str, name: str, choices: Any) -> str:
    known = sorted(choices)
    if name not in known:
        near = did_you_mean(name, known)
        raise Impossible(f"There is no {what} {name!r}.{near} There are: {there_are(known)}.", f"unknown_{what}")
    return name


def _experiment(request: RunRequest, template: dict[str, Any]) -> str:
    return "" if (request.job or template).get("experiment_name") else "asked"


def _defaults(system: System, request: RunRequest, template: dict[str, Any]) -> Values:
    """Those of a job without a route."""
    return Values(_experiment(request, template), system.limits.cluster if request.job is not None else "")


def _values(request: RunRequest) -> Values:
    asked = request.nodes
    fewest, most = (int(asked.min), int(asked.max)) if isinstance(asked, NodeRange) else (0, int(asked or 0))
    return Values(
        experiment=request.experiment or "",
        cluster=request.cluster or "",
        nodes=most,
        min_nodes=fewest,
        timeout_seconds=request.timeout_seconds or 0.0,
        parameters=request.parameters,
    )


def _keep_warm(system: System, request: RunRequest) -> float:
    seconds, longest = request.keep_warm_seconds or 0.0, system.rules.longest_lease.total_seconds()
    if seconds > longest:
        raise Impossible(f"keep_warm_seconds is {seconds:g}; a lease may last {longest:g} s.", "too_long")
    return seconds


def _tags(request: RunRequest, data: Data | None) -> dict[str, str]:
    drop = data.drop if data else None
    tags = {"trainyard.route": request.template or "", "trainyard.drop": str(drop or "")}
    return {**request.tags, **{name: value for name, value in tags.items() if value}}


def _single_file(system: System, data: Data) -> bool | None:
    """Whether data in the drops container are a file or a folder; None if they aren't there, or are elsewhere."""
    if not data.below_drops:
        return None
    name = data.below_drops.rstrip("/")
    if system.blobs.first(Place(DROPS_CONTAINER, f"{name}/")):
        return False
    exact = system.blobs.first(Place(DROPS_CONTAINER, name))
    return True if exact and exact.name == name else None


def _received(system: System, asking: _Asking) -> Run:
    """The run of this request. Raises Impossible with all that is wrong with its job, and the code of the first."""
    built, now = build(asking.order), system.clock()
    if built.problems:
        raise Impossible("; ".join(f"{p.path} {p.message}" for p in built.problems), built.problems[0].code)
    drop = asking.order.data.drop if asking.order.data else None
    fingerprint, generation = content_of(system, drop) if drop else ("", 0)
    return Run(
        name=asking.order.run,
        drop=str(drop or ""),
        route=asking.request.template or "",
        fingerprint=fingerprint,
        experiment=built.job["experiment_name"],
        cluster=cluster(built.job),
        nodes=nodes(built.job),
        created_at=now,
        request=built.job,
        history=(Moment(RunState.RECEIVED, now, _how_asked(asking)),),
        parameters=resolved(built.job),
        elastic=begin(built.job, asking.bounds, now),
        resubmissions=asking.bounds[1],
        timeout_seconds=timeout(built.job, otherwise=0),
        keep_warm_seconds=_keep_warm(system, asking.request),
        tags=asking.request.tags,
        from_run=asking.request.from_run or "",
        project=admission.project_of(system, built.job.get("tags"), asking.route),
        generation=generation,
    )


def _how_asked(asking: _Asking) -> str:
    return " ".join(["Asked for over HTTP.", *([asking.adopted.report.summary()] if asking.adopted else [])])


def content_of(system: System, drop: DropKey) -> tuple[str, int]:
    """Fingerprint and generation of the drop when it was last sealed. It may have changed since."""
    stored = system.drops.get(drop)
    return (stored.value.fingerprint, stored.value.generation) if stored else ("", 0)


# --- why it could not start now --------------------------------------------------------------------------------------


def _data_reasons(system: System, data: Data | None) -> list[Reason]:
    if data is None or not data.below_drops:
        return []
    if data.single_file is None:
        return [_reason("no_data", f"There is nothing at {data.below_drops!r} in the drops container.")]
    stored = system.drops.get(data.drop) if data.drop else None
    if stored and stored.value.state is DropState.OPEN:
        return [_reason("drop_open", f"Drop {data.drop} still collects uploads. {stored.value.why}")]
    return []


def _cluster_reasons(system: System, name: str, nodes: int) -> list[Reason]:
    clusters = {cluster.name: cluster for cluster in system.clusters.list()}
    cluster = clusters.get(name)
    if cluster is None:
        words = f"The workspace has no cluster {name!r}.{did_you_mean(name, clusters)} It has: {there_are(clusters)}."
        return [_reason("unknown_cluster", words)]
    if found := refusal(cluster, nodes):
        return [_reason(found.code, found.why)]
    if nodes > (free := cluster.max_nodes - cluster.busy_nodes):
        return [_reason("cluster_busy", f"{name} has {free} nodes free of {cluster.max_nodes}; the job would wait.")]
    return []


def _reason(code: str, message: str) -> Reason:
    return {"code": code, "message": message}
