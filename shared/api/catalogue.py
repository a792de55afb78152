"""The catalogue of what can be submitted: trainers, routes, and a check of a drop's job file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared.api.requests import RouteCheck
from shared.drops.seal import brought, route_problems
from shared.jobs.downloads import NOT_AVAILABLE
from shared.jobs.parameters import Parameters, Schema
from shared.jobs.ports import WorkspacePorts
from shared.jobs.readers.azureml import path_of
from shared.jobs.readers.trainer import trainer_names, trainer_template
from shared.jobs.readers.variables import without_values
from shared.jobs.route import Route, Routes, choices
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Impossible, NotFound
from shared.kernel.suggest import did_you_mean
from shared.runs.features import CheckedDrop, check_files

Json = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def all_trainers(trainers: Path, routes: Routes) -> list[Json]:
    """Return every trainer, with its parameters as a JSON Schema, from which a form can be built."""
    return [_trainer(trainers, routes, name) for name in trainer_names(trainers)]


def _trainer(trainers: Path, routes: Routes, name: str) -> Json:
    template, parameters = trainer_template(trainers, name)
    return {
        "trainer": name,
        "description": template.description,
        "elastic": template.is_elastic,
        "routes": sorted(route.name for route in routes.values() if route.trainer == name),
        "parameters": schema_of(parameters),
    }


def all_routes(routes: Routes) -> list[Json]:
    """Return every route: its purpose, its clusters, and its limits."""
    return [_route(route) for _, route in sorted(routes.items())]


def _route(route: Route) -> Json:
    return {
        "route": route.name,
        "trains": route.trains,
        "trainer": route.trainer,
        "description": route.template.description,
        "elastic": route.template.is_elastic,
        "cluster": route.cluster,
        "clusters": sorted(route.clusters | {route.cluster}) if route.trains else [],
        "nodes": route.nodes,
        "min_nodes": route.min_nodes,
        "max_nodes": route.max_nodes,
        "timeout_seconds": route.timeout_seconds,
        "vm_size": route.vm_size,
        "processes": route.processes,
        "experiment": route.experiment,
        "job_files": route.job_file.allowed,
        "parameters": schema_of(route.parameters),
    }


def schema_of(parameters: Parameters) -> Json:
    """Return the parameters as one JSON Schema, each with a title and a description."""
    properties: dict[str, Schema] = {name: {"title": name, **schema} for name, schema in parameters.items()}
    return {"$schema": DRAFT, "type": "object", "additionalProperties": False, "properties": properties}


def check(ports: WorkspacePorts, name: str, asked: RouteCheck) -> Json:
    """Return the job that a drop of this route with this job file would become.

    Raises Impossible with all problems, and NotFound for an unknown route, with the nearest route.
    """
    route = ports.routes.get(name)
    if route is None:
        near = did_you_mean(name, ports.routes)
        raise NotFound(f"There is no route {name[:80]!r}.{near} Routes: {choices(ports.routes)}.")
    job, problems = route_problems(ports, DropKey(name, "example"), route, asked.job)
    words = [": ".join(filter(None, (path_of(p.path), p.message))) for p in problems]
    if job is None or (problems and (asked.files is None or any(p.code != NOT_AVAILABLE for p in problems))):
        raise Impossible("\n".join(words), problems[0].code)
    shown = ports.jobs.document(without_values(job)) if route.trains else {}
    data = check_files(ports, route, CheckedDrop(*brought(ports, route, asked.job), asked.files)).get("data", {})
    if words:  # a download that fails refuses the drop, and its files are checked all the same
        data = {**data, "verdict": "refused", "refusals": [*words, *data.get("refusals", [])]}
    return {"route": name, "trains": route.trains, "job": shown, "data": data}
