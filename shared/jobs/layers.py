"""Merge the layers of a job, each over the layer below.

Mappings such as inputs are merged by name; null in a layer removes the value of the layers below. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import reduce
from typing import Any

from shared.jobs.kinds import KINDS, kind_of
from shared.jobs.order import JobOrder, Values
from shared.jobs.parameters import Parameters, parameters
from shared.jobs.spec import COMMAND, JobSpec, Layer

PROCESSES = "PET_NPROC_PER_NODE"  # torchrun's own variable
SERVERLESS = "serverless"  # the compute that Azure ML provides for a job without a cluster
_ALONE = "queue_settings"  # only jobs on serverless compute have it
_NOTHING = JobSpec()


def merged(order: JobOrder) -> Layer:
    """The template, the route's defaults, the user's layer, and the request's values, merged into one layer."""
    bottom = Layer(JobSpec(title=order.title))
    written, request_layer = order.written or Layer(), _edge(order.asked)
    layers = (Layer(order.template), _edge(order.defaults), _processes(order), written, request_layer)
    layer = reduce(over, layers, bottom)
    # A job may repeat its name, but can't choose it.
    kind = order.own.kind if order.own.kind in KINDS else COMMAND
    return replace(layer, job=replace(layer.job, name=order.run, kind=kind))


def known_parameters(order: JobOrder) -> Parameters:
    """The template's parameters; for a job with the user's own command, every literal input."""
    if order.parameters and not order.is_whole:
        return order.parameters
    below = (Layer(order.template), _edge(order.defaults), *([order.written] if order.written else []))
    job = reduce(over, below).job if order.is_whole else order.template
    return parameters(job, {}, "the job")


def over(below: Layer, above: Layer) -> Layer:
    """Merge two layers.

    Mappings are merged by name. Any other field comes from `above`, if `above` sets the field.
    """
    values = {each.name: _field(each.name, below, above) for each in fields(JobSpec)}
    said = {name for name in values if getattr(above.job, name) != getattr(_NOTHING, name)} | above.off
    unread = {name: value for name, value in below.unread.items() if name not in said}
    return Layer(JobSpec(**values), unread={**unread, **above.unread})


def _field(name: str, below: Layer, above: Layer) -> Any:
    lower, upper, nothing = (getattr(job, name) for job in (below.job, above.job, _NOTHING))
    if name in above.off:
        lower = nothing
    if not isinstance(nothing, Mapping):
        return lower if upper == nothing else upper
    if name == "rest":
        gone = tuple(f"{key}." for key, value in upper.items() if value is None)
        lower = {key: value for key, value in lower.items() if not f"{key}.".startswith(gone)} if gone else lower
    return {key: value for key, value in {**lower, **upper}.items() if value is not None}


def _edge(values: Values) -> Layer:
    return Layer(
        JobSpec(
            experiment=values.experiment,
            cluster=values.cluster,
            nodes=values.nodes,
            timeout_seconds=int(values.timeout_seconds),
            inputs=dict(values.parameters),
            sweep=values.sweep,
        )
    )


def _processes(order: JobOrder) -> Layer:
    """The number of processes per node, in the form for Azure ML or for the launcher of an elastic job."""
    if not kind_of(order.own).runs_a_command:
        return Layer()
    if order.defaults.processes and order.template.is_elastic:
        return Layer(JobSpec(variables={PROCESSES: str(order.defaults.processes)}))
    return Layer(JobSpec(processes=order.defaults.processes))


def on_its_cluster(order: JobOrder) -> JobOrder:
    """Move a whole job that was written for serverless compute to a cluster, without serverless settings.

    If a request names a cluster, every step of a pipeline runs on that cluster.
    """
    if order.written and order.asked.cluster:
        own = kind_of(order.own).on_its_cluster(order.own)
        order = replace(order, written=replace(order.written, job=own))
    serverless = order.is_whole and order.own.cluster in ("", SERVERLESS)
    if not (order.written and serverless and (order.asked.cluster or order.defaults.cluster)):
        return order
    kept = order.template != JobSpec() and _ALONE in order.limits.allow  # a route that allows the setting wants it kept
    restricted = {name: value for name, value in order.own.restricted.items() if kept or name != _ALONE}
    own = replace(order.own, cluster="", machine="", restricted=restricted)
    return replace(order, written=replace(order.written, job=own, off=order.written.off - {"cluster", "machine"}))
