"""From a request to what its job is built from, and to the run's first record. Nothing is written here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec

from shared.batchai.adopt import Adopted
from shared.jobs.build import JobOrder, Values, build
from shared.jobs.data import Data, read_data
from shared.jobs.limits import Limits
from shared.jobs.model import Problem
from shared.jobs.parameters import Parameters
from shared.jobs.ports import HasBatchAIAccount, HasJobs, HasLimits, HasRoutes, HasTrainers
from shared.jobs.routes_file import NUMBERS, Route
from shared.jobs.trainer import trainer_names, trainer_template
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Impossible
from shared.kernel.has import HasBlobs, HasClock, HasRules
from shared.kernel.places import DROPS_CONTAINER
from shared.kernel.settings import Rules
from shared.kernel.storage import Blobs, Place
from shared.kernel.suggest import did_you_mean, there_are
from shared.runs.intake.batchai import adopt_request
from shared.runs.intake.from_job import run_of
from shared.runs.intake.request import NodeRange, RunRequest
from shared.runs.intake.warm_start import model_of
from shared.runs.model import Moment, Run, RunState
from shared.runs.ports import Datasets, HasDatasets, HasPurse, HasRuns

RESUBMISSIONS = int(NUMBERS["resubmissions"][0])  # of a run whose job has no route


class Ports(
    HasClock,
    HasBlobs,
    HasRules,
    HasJobs,
    HasRoutes,
    HasTrainers,
    HasLimits,
    HasBatchAIAccount,
    HasRuns,
    HasPurse,
    HasDatasets,
    Protocol,
):
    """What is needed here from outside."""


@dataclass(frozen=True)
class Asked:
    """A request, what its job is built from, and the fewest nodes and resubmissions of an elastic one.

    `adopted` is what a Batch AI document became.
    """

    request: RunRequest
    order: JobOrder
    bounds: tuple[int, int]
    route: str  # that has the defaults, '' without one
    adopted: Adopted | None = None


def read_request(ports: Ports, request: RunRequest, name: str) -> Asked:
    """What a run of this name is made of. Raises Impossible for a trainer, template, model or document that is none."""
    adopted = adopt_request(ports, request)
    if adopted:
        request = msgspec.structs.replace(request, job=adopted.job)
    template, described, route = (adopted.template, {}, None) if adopted else _template(ports, request)
    data = _data(ports.blobs, request.data)
    what = request.trainer or request.template or name
    asked, defaults = _values(request), route.defaults if route else _defaults(ports.limits, request, template)
    resubmissions = request.resubmissions
    if resubmissions is None:
        resubmissions = route.resubmissions if route else RESUBMISSIONS
    fewest = asked.min_nodes or (0 if asked.nodes else defaults.min_nodes)
    order = JobOrder(
        run=name,
        title=f"{what}: {request.data}"[:200] if request.data else what,
        template=template,
        parameters=described,
        limits=route.limits if route else ports.limits,
        defaults=defaults,
        written=request.job or {},
        asked=asked,
        data=data,
        from_model=model_of(ports, request.from_run) if request.from_run else "",
        tags=_tags(request, data),
    )
    return Asked(request, order, (fewest, int(resubmissions)), route.name if route else "", adopted)


def first_record(ports: Ports, asked: Asked) -> Run:
    """The run of this request. Raises Impossible with all that is wrong with its job, and the code of the first."""
    built, now = build(asked.order), ports.clock()
    if built.problems:
        raise Impossible("; ".join(in_words(asked, problem) for problem in built.problems), built.problems[0].code)
    drop = asked.order.data.drop if asked.order.data else None
    fingerprint, generation = content_of(ports.datasets, drop) if drop else ("", 0)
    return run_of(asked.order.run, built.job, asked.bounds, now).changed(
        drop=str(drop or ""),
        route=asked.request.template or "",
        fingerprint=fingerprint,
        history=(Moment(RunState.RECEIVED, now, _how_asked(asked)),),
        keep_warm_seconds=_keep_warm(ports.rules, asked.request),
        tags=asked.request.tags,
        from_run=asked.request.from_run or "",
        project=ports.purse.project_of(built.job.get("tags"), asked.route),
        generation=generation,
    )


_ASKED_AS = {  # by the place in the job: the field of a request that goes there
    "resources.instance_count": "nodes",
    "compute": "cluster",
    "experiment_name": "experiment",
    "limits.timeout": "timeout_seconds",
}


def in_words(asked: Asked, problem: Problem) -> str:
    """What is wrong, by the name under which it was asked for."""
    field = _ASKED_AS.get(problem.path, "")
    given = field and getattr(asked.request, field) is not None
    return f"{field if given else problem.path} {problem.message}"


def content_of(datasets: Datasets, drop: DropKey) -> tuple[str, int]:
    """Fingerprint and generation of the drop when it was last sealed. It may have changed since."""
    content = datasets.of(drop)
    return (content.fingerprint, content.generation) if content else ("", 0)


def _template(ports: Ports, request: RunRequest) -> tuple[dict[str, Any], Parameters, Route | None]:
    """The job to begin with, and the route that has its defaults. A trainer takes those of its first route."""
    if request.job is not None:
        return {}, {}, None
    if request.template is not None:
        route = ports.routes[_choose("template", request.template, ports.routes)]
        return route.template, route.parameters, route
    trainer = _choose("trainer", request.trainer or "", trainer_names(ports.trainers))
    first = next((route for _, route in sorted(ports.routes.items()) if route.trainer == trainer), None)
    if first:
        return first.template, first.parameters, first
    return *trainer_template(ports.trainers, trainer), None


def _choose(what: str, name: str, choices: Any) -> str:
    known = sorted(choices)
    if name not in known:
        near = did_you_mean(name, known)
        raise Impossible(f"There is no {what} {name!r}.{near} There are: {there_are(known)}.", f"unknown_{what}")
    return name


def _experiment(request: RunRequest, template: dict[str, Any]) -> str:
    return "" if (request.job or template).get("experiment_name") else "asked"


def _defaults(limits: Limits, request: RunRequest, template: dict[str, Any]) -> Values:
    """Those of a job without a route."""
    return Values(_experiment(request, template), limits.cluster if request.job is not None else "")


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


def _keep_warm(rules: Rules, request: RunRequest) -> float:
    seconds, longest = request.keep_warm_seconds or 0.0, rules.longest_lease.total_seconds()
    if seconds > longest:
        raise Impossible(f"keep_warm_seconds is {seconds:g}; a lease may last {longest:g} s.", "too_long")
    return seconds


def _tags(request: RunRequest, data: Data | None) -> dict[str, str]:
    drop = data.drop if data else None
    tags = {"trainyard.route": request.template or "", "trainyard.drop": str(drop or "")}
    return {**request.tags, **{name: value for name, value in tags.items() if value}}


def _data(blobs: Blobs, text: str | None) -> Data | None:
    data = read_data(text) if text else None
    return replace(data, single_file=_single_file(blobs, data)) if data else None


def _single_file(blobs: Blobs, data: Data) -> bool | None:
    """Whether data in the drops container are a file or a folder; None if they aren't there, or are elsewhere."""
    if not data.below_drops:
        return None
    name = data.below_drops.rstrip("/")
    if blobs.first(Place(DROPS_CONTAINER, f"{name}/")):
        return False
    exact = blobs.first(Place(DROPS_CONTAINER, name))
    return True if exact and exact.name == name else None


def _how_asked(asked: Asked) -> str:
    return " ".join(["Asked for over HTTP.", *([asked.adopted.report.summary()] if asked.adopted else [])])
