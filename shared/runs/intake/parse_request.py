"""Parse a request into the parts of its job, and build the run's first record. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from shared.jobs.build import build
from shared.jobs.data import Data, find_data
from shared.jobs.downloads import out_of_reach
from shared.jobs.limits import Limits
from shared.jobs.order import JobOrder, Values
from shared.jobs.parameters import Parameters
from shared.jobs.ports import Around, Jobs, Written
from shared.jobs.problem import Problem
from shared.jobs.readers.azureml import path_of
from shared.jobs.readers.sweep import read_short
from shared.jobs.readers.trainer import trainer_names, trainer_template
from shared.jobs.route import Route, Routes
from shared.jobs.routes_file import NUMBERS
from shared.jobs.spec import JobSpec
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Impossible
from shared.kernel.settings import Rules
from shared.kernel.suggest import chosen
from shared.runs.features import Origin, begun
from shared.runs.intake.from_job import run_of
from shared.runs.intake.job_lifetime import within_lifetime
from shared.runs.intake.request import NodeRange, RunRequest
from shared.runs.intake.warm_start import model_of
from shared.runs.model import Moment, Run, RunState
from shared.runs.ports import Datasets, RunPorts
from shared.runs.results import printed_metrics

RESUBMISSIONS = int(NUMBERS["resubmissions"][0])  # for a run without a route


@dataclass(frozen=True)
class ParsedRequest:
    """A parsed request: the parts of its job, and the minimum nodes and resubmissions of an elastic run.

    `written` is the result of reading a complete job document.
    """

    request: RunRequest
    order: JobOrder
    bounds: tuple[int, int]
    route: str  # the route with the defaults, '' without a route
    written: Written | None = None


def read_request(ports: RunPorts, request: RunRequest, name: str) -> ParsedRequest:
    """Parse the request for a run of this name.

    Raises Impossible for an unknown trainer, template or model, or an invalid document.
    """
    values = _values(request)
    template, described, route = _template(ports.routes, ports.trainers, request)
    printed_metrics.reader(request.tags.get(printed_metrics.TAG, ""))
    written = None
    if request.job is not None or request.batchai is not None:
        around = Around(ports, ports.limits)
        written = ports.reader.of_request(request.job or {}, request.batchai, around)
        template = written.template or template
    data = find_data(ports.blobs, request.data) if request.data else None
    what = request.trainer or request.template or name
    defaults = route.defaults if route else _defaults(ports.limits, written, template)
    resubmissions = request.resubmissions
    if resubmissions is None:
        resubmissions = route.resubmissions if route else RESUBMISSIONS
    fewest = values.min_nodes or (0 if values.nodes else defaults.min_nodes)
    order = JobOrder(
        run=name,
        title=f"{what}: {request.data}"[:200] if request.data else what,
        template=template,
        parameters=described,
        limits=route.limits if route else ports.limits,
        defaults=defaults,
        written=written.layer if written else None,
        asked=values,
        data=data,
        from_model=model_of(ports, request.from_run) if request.from_run else None,
        tags={**request.tags, **_tags(request.template, data)},
    )
    return ParsedRequest(request, order, (fewest, int(resubmissions)), route.name if route else "", written)


def first_record(ports: RunPorts, asked: ParsedRequest) -> Run:
    """The first record of the run. Raises Impossible with all problems of the job, and the first problem's code."""
    built, now = build(asked.order), ports.clock()
    problems = built.problems or tuple(_out_of_reach(ports.jobs, asked.order, built.job))
    if built.job is None or problems:
        *first, last = (in_words(asked, problem) for problem in problems)
        raise Impossible("; ".join([*(words.rstrip(".") for words in first), last]), problems[0].code)
    drop = asked.order.data.drop if asked.order.data else None
    fingerprint, generation = content_of(ports.datasets, drop) if drop else ("", 0)
    job, shorter = within_lifetime(ports.capacity, built.job)
    why = f"{_how_asked(asked)} {shorter}".strip()
    run = run_of(asked.order.run, job, asked.bounds, now)
    run = replace(
        run,
        asked=replace(
            run.asked,
            drop=str(drop or ""),
            route=asked.request.template or "",
            fingerprint=fingerprint,
            keep_warm_seconds=_keep_warm(ports.rules, asked.request),
            from_run=asked.request.from_run or "",
            generation=generation,
        ),
        progress=replace(run.progress, history=(Moment(RunState.RECEIVED, now, why),)),
        people=replace(run.people, tags=asked.request.tags),
        money=replace(run.money, project=ports.admission.project_of(job.tags, asked.route)),
    )
    return begun(ports, run, Origin(asked.request, ports.routes.get(asked.route), asked.order.limits))


def _out_of_reach(jobs: Jobs, order: JobOrder, job: JobSpec | None) -> Iterator[Problem]:
    """Problems of parameters for which the nodes would download a file that they can't reach. A job that starts from a
    model downloads nothing.
    """
    starts_from_model = order.from_model is not None
    return iter(()) if job is None or starts_from_model else out_of_reach(jobs, order.parameters, job)


# Fields with the same name in a request and in a job
_OVER_THE_JOB = ("nodes", "cluster", "experiment", "timeout_seconds")


def in_words(asked: ParsedRequest, problem: Problem) -> str:
    """The problem's text, with the request's names of fields."""
    given = problem.path in _OVER_THE_JOB and getattr(asked.request, problem.path) is not None
    return f"{problem.path if given else path_of(problem.path)} {problem.message}"


def content_of(datasets: Datasets, drop: DropKey) -> tuple[str, int]:
    """Fingerprint and generation of the drop at its last seal. The content may have changed since."""
    content = datasets.of(drop)
    return (content.fingerprint, content.generation) if content else ("", 0)


def _template(routes: Routes, trainers: Path, request: RunRequest) -> tuple[JobSpec, Parameters, Route | None]:
    """The template of the job, and the route with the defaults. A trainer uses the defaults of the trainer's first
    route.
    """
    if request.job is not None or request.batchai is not None:
        return JobSpec(), {}, None
    if request.template is not None:
        training = {name: route for name, route in routes.items() if route.trains}
        route = training[chosen("template", request.template, training)]
        return route.template, route.parameters, route
    trainer = chosen("trainer", request.trainer or "", trainer_names(trainers))
    first = next((route for _, route in sorted(routes.items()) if route.trainer == trainer), None)
    if first:
        return first.template, first.parameters, first
    return *trainer_template(trainers, trainer), None


def _defaults(limits: Limits, written: Written | None, template: JobSpec) -> Values:
    """The defaults of a job without a route."""
    job = written.layer.job if written else template
    return Values("" if job.experiment else "asked", limits.cluster if written else "")


def _values(request: RunRequest) -> Values:
    """The request's own values. Raises Impossible for an invalid sweep."""
    parameters, sweep = dict(request.parameters), None
    problems: tuple[Problem, ...] = ()
    if request.sweep:
        section = {name: value for name, value in msgspec.to_builtins(request.sweep).items() if value is not None}
        parameters, sweep, problems = read_short(section, parameters)
    if problems:
        raise Impossible("; ".join(f"{p.path} {p.message}" for p in problems), problems[0].code)
    nodes = request.nodes
    fewest, most = (int(nodes.min), int(nodes.max)) if isinstance(nodes, NodeRange) else (0, int(nodes or 0))
    return Values(
        experiment=request.experiment or "",
        cluster=request.cluster or "",
        nodes=most,
        min_nodes=fewest,
        timeout_seconds=request.timeout_seconds or 0.0,
        parameters=parameters,
        sweep=sweep,
    )


def _keep_warm(rules: Rules, request: RunRequest) -> float:
    seconds, longest = request.keep_warm_seconds or 0.0, rules.longest_lease.total_seconds()
    if seconds > longest:
        raise Impossible(f"keep_warm_seconds is {seconds:g}; a lease may last {longest:g} s.", "too_long")
    return seconds


def _tags(route: str | None, data: Data | None) -> dict[str, str]:
    tags = {"trainyard.route": route or "", "trainyard.drop": str(data.drop or "") if data else ""}
    return {name: value for name, value in tags.items() if value}


def _how_asked(parsed_request: ParsedRequest) -> str:
    summary = parsed_request.written.summary if parsed_request.written else ""
    return f"Submitted over HTTP. {summary}".strip()
