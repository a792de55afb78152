"""A route: what the first folder of a drop's path stands for. Pure; routes_file.py reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shared.jobs.limits import Limits
from shared.jobs.location import Asset
from shared.jobs.order import Values
from shared.jobs.parameters import Parameters
from shared.jobs.route_model import RouteModel
from shared.jobs.spec import JobSpec
from shared.kernel.suggest import there_are

if TYPE_CHECKING:
    from shared.jobs.search import Sweep


@dataclass(frozen=True)
class JobFileRule:
    """What a job file in a drop may do. `environments` None means any."""

    allowed: bool = True
    environments: tuple[str | Asset, ...] | None = None


@dataclass(frozen=True)
class Retention:
    """How many days a route keeps things; 0 for ever. `drops` go once no kept model came from them."""

    checkpoints: float = 0.0
    copies: float = 0.0
    drops: float = 0.0


@dataclass(frozen=True)
class Route:
    """One entry of the routes file. Times are in seconds. `template` is the job of its drops.

    Where it does not train (`trains`), its drops are data that jobs name, and it has no job and no cluster.

    `nodes` is the number of nodes, of an elastic route the most; `min_nodes` is then the fewest, and else 0.
    """

    name: str
    template: JobSpec
    trainer: str
    cluster: str
    nodes: int
    max_nodes: int
    experiment: str
    timeout_seconds: float
    quiet_seconds: float
    settle_seconds: float
    max_wait_seconds: float
    job_file: JobFileRule
    min_nodes: int = 0
    resubmissions: int = 10
    move_to: str = ""  # the cluster where a run goes on that was preempted `move_after` times within so many seconds
    move_after: int = 3
    within_seconds: float = 0.0  # after it was made a run is done, if its nodes are to be chosen for that; 0: no date
    takes_seconds: float = 0.0  # of work on all its nodes; 0: as the newest runs of its kind took
    move_within_seconds: float = 3600
    clusters: frozenset[str] = frozenset()  # further ones that a job may name
    max_processes: int = 64
    allow: frozenset[str] = frozenset()
    project: str = ""  # whose budget its runs are charged to
    single_files: int = 0  # how many loose files may become runs of their own; archives always may
    retention: Retention = field(default_factory=Retention)
    parameters: Parameters = field(default_factory=dict)  # the template's, described
    template_timeout: bool = False  # the template's own time limit holds: the route names none
    vm_size: str = ""  # of its cluster's machines; '' where the file doesn't say
    gpus: int = -1  # of each of them; -1 where nobody knows
    model: RouteModel | None = None  # that its runs challenge for
    sweep: Sweep | None = None  # that each of its drops becomes
    trains: bool = True

    @property
    def limits(self) -> Limits:
        """What holds for every job of this route, however it was asked for."""
        return Limits(
            clusters=self.clusters | {self.cluster},
            max_nodes=self.max_nodes,
            max_processes=self.max_processes,
            timeout_seconds=self.timeout_seconds,
            allow=self.allow,
            environments=self.job_file.environments,
        )

    @property
    def defaults(self) -> Values:
        timeout = 0 if self.template_timeout else self.timeout_seconds
        return Values(self.experiment, self.cluster, self.nodes, self.min_nodes, timeout, self.processes)

    @property
    def processes(self) -> int:
        """How many its jobs start on each node, one for each GPU; 0 where the template alone says it."""
        counted = self.template.distribution in ("pytorch", "mpi") or self.template.is_elastic
        return max(1, self.gpus) if counted and self.gpus >= 0 else 0


Routes = Mapping[str, Route]


def choices(routes: Routes) -> str:
    """Their names, for an error that says which there are."""
    return there_are(name if route.trains else f"{name} (trains nothing)" for name, route in routes.items())


@dataclass(frozen=True)
class RoutesFile:
    """The routes by name, and the limits of jobs that belong to none of them."""

    routes: Routes
    limits: Limits
