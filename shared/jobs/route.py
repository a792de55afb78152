"""A route: the meaning of the first folder in a drop's path. Pure; routes_file.py reads routes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shared.jobs.card import Card
from shared.jobs.data_rule import DataRule
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
    """The rights of a drop's job file. `environments` None allows any environment."""

    allowed: bool = True
    environments: tuple[str | Asset, ...] | None = None


@dataclass(frozen=True)
class Retention:
    """How many days a route keeps files; 0: forever. `drops` are deleted once no kept model was trained on them."""

    checkpoints: float = 0.0
    copies: float = 0.0
    drops: float = 0.0


@dataclass(frozen=True)
class Route:
    """One entry of the routes file. Times are in seconds. `template` is the job for the route's drops.

    A route with `trains` false has no job and no cluster: its drops are data for other jobs.

    `nodes` is the number of nodes, for an elastic route the maximum. `min_nodes` is the minimum of an elastic route,
    else 0.
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
    move_to: str = ""  # the cluster where a run continues after `move_after` preemptions in `move_within_seconds`
    move_after: int = 3
    within_seconds: float = 0.0  # deadline of a run, from its creation; its nodes are chosen to meet it; 0: no deadline
    takes_seconds: float = 0.0  # duration of the work on all nodes; 0: from the newest similar runs
    move_within_seconds: float = 3600
    clusters: frozenset[str] = frozenset()  # additional clusters that a job may name
    max_processes: int = 64
    allow: frozenset[str] = frozenset()
    project: str = ""  # the project that pays for the route's runs
    single_files: int = 0  # how many single files may become runs of their own; archives always may
    retention: Retention = field(default_factory=Retention)
    parameters: Parameters = field(default_factory=dict)  # the template's, described
    template_timeout: bool = False  # the template's own time limit holds: the route names none
    vm_size: str = ""  # of the cluster's machines; '' if the file names none
    gpus: int = -1  # GPUs per machine; -1 if unknown
    model: RouteModel | None = None  # the model for which the route's runs compete
    sweep: Sweep | None = None  # the sweep for each drop of the route
    card: Card = field(default_factory=dict)  # people's statements about its models
    trains: bool = True
    on_hang: str = ""  # the reaction to a run that hangs: cancel, retry, tell; '' for none
    data: DataRule = field(default_factory=DataRule)  # how the data of its drops is checked

    @property
    def limits(self) -> Limits:
        """The limits for every job of this route, however the job is requested."""
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
        """The number of processes per node, one per GPU; 0 if only the template decides."""
        counted = self.template.distribution in ("pytorch", "mpi") or self.template.is_elastic
        return max(1, self.gpus) if counted and self.gpus >= 0 else 0


Routes = Mapping[str, Route]


def choices(routes: Routes) -> str:
    """The routes' names, as choices in an error message."""
    return there_are(name if route.trains else f"{name} (trains nothing)" for name, route in routes.items())


@dataclass(frozen=True)
class RoutesFile:
    """The routes by name, and the limits of jobs without a route."""

    routes: Routes
    limits: Limits
