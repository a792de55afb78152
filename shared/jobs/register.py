"""Register what every job needs before the first one comes, so that a submission is one request."""

from __future__ import annotations

from dataclasses import dataclass

from shared.jobs.snapshot import digest_environment, digest_files
from shared.jobs.vm_size import same
from shared.system import System


@dataclass(frozen=True)
class RouteReport:
    """A route, and what would stop its jobs: an empty `problem` is none."""

    route: str
    cluster: str
    problem: str = ""


@dataclass(frozen=True)
class Registered:
    """The ids of the trainers' code and environment, and how the routes stand."""

    code: str
    environment: str
    routes: tuple[RouteReport, ...]


def register_assets(system: System) -> tuple[str, str]:
    """The ids of the trainers' code and environment, registered where they are new. Twice changes nothing."""
    code = system.jobs.register_code(str(system.trainers), digest_files(system.trainers))
    file = str(system.trainers / "environment.yaml")
    return code, system.jobs.register_environment(file, digest_environment(system.trainers))


def register(system: System) -> Registered:
    """Register the trainers' code and environment, and hold the routes against the workspace."""
    code, environment = register_assets(system)
    there = {cluster.name: cluster for cluster in system.clusters.list()}
    reports = []
    for name, route in sorted(system.routes.items()):
        cluster = there.get(route.cluster)
        problem = ""
        if cluster is None:
            problem = f"there is no cluster {route.cluster}; there are {', '.join(sorted(there)) or 'none'}"
        elif route.min_nodes > cluster.max_nodes:
            problem = f"it needs {route.min_nodes} nodes, cluster {route.cluster} has at most {cluster.max_nodes}"
        elif route.vm_size and cluster.vm_size and not same(route.vm_size, cluster.vm_size):
            problem = f"its vm_size is {route.vm_size}, the machines of cluster {route.cluster} are {cluster.vm_size}"
        reports.append(RouteReport(name, route.cluster, problem))
    return Registered(code, environment, tuple(reports))
