"""Runs that people ask for: make one, say what would be made, repeat one, cancel one."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any

from shared.api import requests
from shared.api.requests import RunRequest
from shared.drops.model import DropKey, DropState
from shared.jobs import jobspec, orders
from shared.jobs.assets import assets
from shared.jobs.orders import Data, Order
from shared.jobs.routes_file import Route, trainer_names, trainer_template
from shared.kernel.errors import Changed, Conflict, Impossible, NotFound, Unavailable
from shared.kernel.storage import Place
from shared.runs.decide import is_over
from shared.runs.elastic import begin, member_request
from shared.runs.model import Moment, Run, RunState, asked_run_name
from shared.system import DROPS_CONTAINER, SUBMISSIONS, System

log = logging.getLogger(__name__)

WRITE_ATTEMPTS = 10
SENT_BY_THEN = timedelta(seconds=5)  # a call that lives sends the run off milliseconds after it recorded it
Reason = dict[str, str]


def create_run(system: System, request: RunRequest, key: str | None = None) -> Run:
    """Record the run and queue its submission. The same key is the same run, whatever happened in between.

    Raises Conflict if the key was used for another request, Impossible for one that can't become a job. If it dies
    after the record was written, the reconcile timer queues the submission.
    """
    name, asked = _run_name(system, key), requests.digest(request)
    if key and (made := _made_before(system, name, asked)):
        return made
    order = _order(system, request, name)
    if order.data and order.single_file is None and order.data.below_drops:
        raise Impossible(f"There is nothing at {order.data.below_drops!r} in the drops container.", "no_data")
    run = _received(system, order, asked)
    return _insert(system, run) or _made_before(system, name, asked) or run


def dry_run(system: System, request: RunRequest, key: str | None = None) -> dict[str, Any]:
    """The job that would be sent, and why it could not start now: `{"job": ..., "reasons": [{"code", "message"}]}`.

    Of an elastic run it is the first member's.

    Makes nothing. Without a key the job has another name at every call, as a real one would.
    """
    order = _order(system, request, _run_name(system, key))
    run = _received(system, order, "")
    asked, needed = run.request, run.nodes
    if run.elastic:
        asked, needed = (
            member_request(run, run.elastic.members[0], system.rendezvous, run.created_at),
            run.elastic.min_nodes,
        )
    reasons = _data_reasons(system, order)
    try:
        asked = jobspec.resolve(asked, **assets(system, asked, register=False))
        reasons += [_reason("bad_job", f"{p.path}: {p.message}") for p in system.jobs.problems(asked)]
        reasons += _cluster_reasons(system, jobspec.cluster(asked), needed)
    except Unavailable as exc:
        reasons.append(_reason("unavailable", str(exc)))
    return {"job": asked, "reasons": reasons}


def retry_run(system: System, name: str) -> Run:
    """Make a new run with the job of a final one, on the data and the trainers' code as they are now.

    A run has one retry: asking again gives that one. Raises Conflict while the run is not final.
    """
    old = system.runs.get(name).value
    if not is_over(old):
        raise Conflict(f"Run {name} is {old.state}. Cancel it first, or wait for its end.", "not_final")
    now, new = system.clock(), asked_run_name("retry", name)
    run = replace(
        Run(new, old.drop, old.route, old.fingerprint, old.experiment, old.cluster, old.nodes, now),
        request=orders.again(old.request, name, new),
        elastic=old.elastic and begin(old.request, (old.elastic.min_nodes, old.elastic.resubmissions), now),
        history=(Moment(RunState.RECEIVED, now, f"Run {name} is tried again."),),
        retry_of=name,
    )
    return _insert(system, run) or _made_before(system, new, run.asked) or run


def cancel_run(system: System, name: str) -> Run:
    """Write down that the run is to end, and queue its cancellation. A final run is left as it is; twice is once.

    The mark makes it stick: a submission that is under way sees it afterwards, and the reconcile timer repeats it.
    """
    for _ in range(WRITE_ATTEMPTS):
        stored = system.runs.get(name)
        if is_over(stored.value):
            return stored.value
        try:
            if stored.value.cancel_asked_at is None:
                stored = system.runs.update(stored, cancel_asked_at=system.clock())
        except Changed:
            continue
        system.queues.send(SUBMISSIONS, {"run": name})
        return stored.value
    raise Changed(f"Run {name} changed {WRITE_ATTEMPTS} times while it was canceled.")


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


def _insert(system: System, run: Run) -> Run | None:
    """Record the run and send it off; None if one of its name was there."""
    if not system.runs.insert(run):
        return None
    system.queues.send(SUBMISSIONS, {"run": run.name})
    log.info("run %s: received, for cluster %s", run.name, run.cluster)
    return run


def _order(system: System, request: RunRequest, name: str) -> Order:
    basis, route = _basis(system, request)
    data = orders.read_data(request.data) if request.data else None
    return Order(name, request, basis, route, data, _single_file(system, data) if data else None)


def _basis(system: System, request: RunRequest) -> tuple[dict[str, Any], Route | None]:
    """The job to begin with, and the route that has its defaults. A trainer takes those of its first route."""
    if request.job is not None:
        return request.job, None
    if request.template is not None:
        route = system.routes[orders.choose("template", request.template, system.routes)]
        return route.template, route
    trainer = orders.choose("trainer", request.trainer or "", trainer_names(system.trainers))
    first = next((route for _, route in sorted(system.routes.items()) if route.trainer == trainer), None)
    return (first.template if first else trainer_template(system.trainers, trainer)), first


def _single_file(system: System, data: Data) -> bool | None:
    """Whether data in the drops container are a file or a folder; None if they aren't there, or are elsewhere."""
    if not data.below_drops:
        return None
    name = data.below_drops.rstrip("/")
    if system.blobs.first(Place(DROPS_CONTAINER, f"{name}/")):
        return False
    exact = system.blobs.first(Place(DROPS_CONTAINER, name))
    return True if exact and exact.name == name else None


def _received(system: System, order: Order, asked: str) -> Run:
    job, now = orders.build(order), system.clock()
    drop = order.data.drop if order.data else None
    return Run(
        name=order.run,
        drop=str(drop or ""),
        route=order.request.template or "",
        fingerprint=_fingerprint(system, drop) if drop else "",
        experiment=job["experiment_name"],
        cluster=jobspec.cluster(job),
        nodes=jobspec.nodes(job),
        created_at=now,
        request=job,
        history=(Moment(RunState.RECEIVED, now, "Asked for over HTTP."),),
        asked=asked,
        elastic=begin(job, orders.bounds(order.request, order.route), now),
    )


def _fingerprint(system: System, drop: DropKey) -> str:
    """Of the drop's content when it was last sealed, which may have changed since."""
    stored = system.drops.get(drop)
    return stored.value.fingerprint if stored else ""


def _data_reasons(system: System, order: Order) -> list[Reason]:
    data = order.data
    if data is None or not data.below_drops:
        return []
    if order.single_file is None:
        return [_reason("no_data", f"There is nothing at {data.below_drops!r} in the drops container.")]
    stored = system.drops.get(data.drop) if data.drop else None
    if stored and stored.value.state is DropState.OPEN:
        return [_reason("drop_open", f"Drop {data.drop} still collects uploads. {stored.value.why}")]
    return []


def _cluster_reasons(system: System, name: str, nodes: int) -> list[Reason]:
    clusters = {cluster.name: cluster for cluster in system.clusters.list()}
    cluster = clusters.get(name)
    if cluster is None:
        known = ", ".join(sorted(clusters)) or "none"
        return [_reason("unknown_cluster", f"The workspace has no cluster {name!r}; it has: {known}.")]
    if nodes > cluster.max_nodes:
        return [_reason("too_many_nodes", f"{nodes} nodes are asked for; {name} has at most {cluster.max_nodes}.")]
    if nodes > (free := cluster.max_nodes - cluster.busy_nodes):
        return [_reason("cluster_busy", f"{name} has {free} nodes free of {cluster.max_nodes}; the job would wait.")]
    return []


def _reason(code: str, message: str) -> Reason:
    return {"code": code, "message": message}
