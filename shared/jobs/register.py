"""Register the shared assets before the first job is submitted: a submission is then one request."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from shared.jobs.assets import CPU_ENVIRONMENT, GPU_ENVIRONMENT
from shared.jobs.location import Asset
from shared.jobs.ports import Jobs
from shared.jobs.readers.place_text import place_text
from shared.jobs.route import Routes
from shared.jobs.snapshot import digest_environment, digest_files
from shared.jobs.vm_size import same


@dataclass(frozen=True)
class RouteReport:
    """A route, and a problem for the route's jobs; `problem` is empty without a problem."""

    route: str
    cluster: str
    problem: str


@dataclass(frozen=True)
class Registered:
    """The ids of the trainers' code and environment, and a report on each route."""

    code: str
    environment: str
    routes: tuple[RouteReport, ...]


class Machines(Protocol):
    """The properties of a cluster to compare with a route."""

    @property
    def name(self) -> str: ...
    @property
    def vm_size(self) -> str: ...
    @property
    def max_nodes(self) -> int: ...


def register_assets(jobs: Jobs, trainers: Path) -> tuple[Asset, Asset]:
    """The ids of the trainers' code and CPU environment. New assets are registered.

    The GPU environment is registered too. Azure ML builds neither environment before a job needs it. A repeat changes
    nothing.
    """
    code = jobs.register_code(trainers, digest_files(trainers))
    files = [trainers / name for name in (CPU_ENVIRONMENT, GPU_ENVIRONMENT)]
    environment, _ = [jobs.register_environment(str(file), digest_environment(file)) for file in files]
    return code, environment


def register(jobs: Jobs, trainers: Path, routes: Routes, clusters: Iterable[Machines]) -> Registered:
    """Register the trainers' code and environment, and check the routes against the workspace's clusters."""
    code, environment = register_assets(jobs, trainers)
    by_name = {cluster.name: cluster for cluster in clusters}
    reports = []
    for name, route in sorted(routes.items()):
        if not route.trains:
            continue
        cluster = by_name.get(route.cluster)
        problem = ""
        if cluster is None:
            problem = f"there is no cluster {route.cluster}; there are {', '.join(sorted(by_name)) or 'none'}"
        elif route.min_nodes > cluster.max_nodes:
            problem = f"it needs {route.min_nodes} nodes, cluster {route.cluster} has at most {cluster.max_nodes}"
        elif route.vm_size and cluster.vm_size and not same(route.vm_size, cluster.vm_size):
            problem = f"its vm_size is {route.vm_size}, the machines of cluster {route.cluster} are {cluster.vm_size}"
        reports.append(RouteReport(name, route.cluster, problem))
    return Registered(place_text(code), place_text(environment), tuple(reports))
