"""The ports, the routes and the clock for every use case, in one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from shared.clusters.capacity import ClusterCapacity
from shared.clusters.ports import Budgets, Clusters, DecisionLog, Leases, NoBudgets, Samples
from shared.drops.datasets import DropDatasets
from shared.drops.ports import Drops
from shared.events.ports import Audience, Events
from shared.jobs.limits import Limits
from shared.jobs.ports import Jobs, Reader
from shared.jobs.route import Routes
from shared.kernel.clock import Clock
from shared.kernel.facts import Fact
from shared.kernel.memory import Memory
from shared.kernel.parallel import Each, in_turn
from shared.kernel.parts import FeatureStore
from shared.kernel.settings import Rules
from shared.kernel.storage import Blobs, Queues
from shared.models.kept import KeptVersions
from shared.models.ports import Models, Registry, Signer
from shared.money.admission import BudgetAdmission
from shared.money.policy import Policy
from shared.money.ports import Books, RetailPrices
from shared.notices.ports import Post
from shared.reactions import react, written_with
from shared.removals.ports import Named, Removals
from shared.runs.facts import RunAdvances, RunBeingArchived
from shared.runs.model import Run
from shared.runs.ports import Admission, Capacity, Datasets, Runs
from shared.schedules.ports import Schedules, Versions

P = TypeVar("P")


@dataclass(frozen=True, eq=False)
class System:
    """The external ports of the use cases. `events` is None without a configured topic.

    `audience` is None if the subscriptions are unknown: assume that there are some. `removals` and `schedules` are the
    stores of removals and schedules. `features` are the stores that single features
    use, by name. `post` stores and sends
    notices.
    """

    drops: Drops
    runs: Runs
    queues: Queues
    blobs: Blobs
    jobs: Jobs
    clusters: Clusters
    decisions: DecisionLog
    samples: Samples
    leases: Leases
    events: Events | None
    routes: Routes
    trainers: Path
    clock: Clock
    new_token: Callable[[], str]
    limits: Limits = field(default_factory=Limits)  # limits of jobs without a route
    rules: Rules = field(default_factory=Rules)  # for the scaling of clusters
    given_settings: Mapping[str, str] = field(default_factory=dict)  # without the values of secrets
    reader: Reader = field(kw_only=True)  # reads every form of job document
    books: Books = field(kw_only=True)
    models: Models = field(kw_only=True)
    signer: Signer = field(kw_only=True)
    registry: Registry = field(kw_only=True)
    money: Policy = field(default_factory=Policy)
    retail: RetailPrices | None = None  # None where prices are not refreshed
    budgets: Budgets = field(default_factory=NoBudgets)
    audience: Audience | None = None
    each: Each = in_turn  # how one slow call is made for many items: in turn or in threads
    post: Post = field(kw_only=True)
    schedules: Schedules = field(kw_only=True)
    removals: Removals = field(kw_only=True)
    features: Mapping[str, Any] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)  # one per process: copies made with `replace` share it
    rendezvous: str = ""  # the table service's address, where the nodes of elastic runs meet

    @cached_property
    def admission(self) -> Admission:
        """Decides whether a project can afford a run."""
        return BudgetAdmission(self)

    @cached_property
    def capacity(self) -> Capacity:
        """Decides whether the clusters can provide a run's nodes."""
        return ClusterCapacity(self.clusters)

    @cached_property
    def datasets(self) -> Datasets:
        """Lists the contents of drops."""
        return DropDatasets(self.drops)

    @cached_property
    def named(self) -> Named:
        """Lists the models with a need for a run or a drop."""
        return KeptVersions(self.models)

    @cached_property
    def versions(self) -> Versions:
        """Resolves a name, for example churn@production, to a run."""
        return KeptVersions(self.models)

    def store(self, key: FeatureStore[P]) -> P:
        """Return the store that only one feature uses."""
        store: P = self.features[key.name]
        return store

    def happened(self, fact: Fact) -> None:
        """State a fact: run each reaction to the fact."""
        react(self, fact)

    def written_with(self, fact: RunAdvances | RunBeingArchived) -> Run:
        """Return the run with every change for the fact's write."""
        return written_with(self, fact)
