"""The ports, the routes and the clock that every use case works with, in one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from shared.clusters.ports import Budgets, Clusters, Leases, NoBudgets, Samples, SweepLog
from shared.drops.ports import Drops
from shared.events.ports import Audience, Events
from shared.jobs.limits import Limits
from shared.jobs.ports import Jobs
from shared.jobs.routes_file import Routes
from shared.kernel.parallel import Each, in_turn
from shared.kernel.places import ANNOUNCEMENTS as ANNOUNCEMENTS
from shared.kernel.places import ARCHIVES as ARCHIVES
from shared.kernel.places import CLUSTER_LOOKS as CLUSTER_LOOKS
from shared.kernel.places import DELIVERIES as DELIVERIES
from shared.kernel.places import DROP_CHECKS as DROP_CHECKS
from shared.kernel.places import DROP_EVENTS as DROP_EVENTS
from shared.kernel.places import DROPS_CONTAINER as DROPS_CONTAINER
from shared.kernel.places import JOB_EVENTS as JOB_EVENTS
from shared.kernel.places import NOTICES as NOTICES
from shared.kernel.places import OUTPUT_CONTAINER as OUTPUT_CONTAINER
from shared.kernel.places import QUEUES as QUEUES
from shared.kernel.places import REMOVALS as REMOVALS
from shared.kernel.places import RUN_LOOKS as RUN_LOOKS
from shared.kernel.places import SCHEDULE_LOOKS as SCHEDULE_LOOKS
from shared.kernel.places import SUBMISSIONS as SUBMISSIONS
from shared.kernel.settings import Rules
from shared.kernel.storage import Blobs, Queues
from shared.money.policy import Policy
from shared.money.ports import Books, RetailPrices
from shared.runs.ports import Runs


@dataclass(frozen=True, eq=False)
class System:
    """Everything outside that a use case touches. `events` is None where no topic is configured.

    `audience` is None where nobody knows who wants notices: then somebody may.
    """

    drops: Drops
    runs: Runs
    queues: Queues
    blobs: Blobs
    jobs: Jobs
    clusters: Clusters
    sweeps: SweepLog
    samples: Samples
    leases: Leases
    events: Events | None
    routes: Routes
    trainers: Path
    clock: Callable[[], datetime]
    new_token: Callable[[], str]
    limits: Limits = field(default_factory=Limits)  # of jobs that belong to no route
    batchai_account: str = ""  # which storage account Batch AI documents mean by their placeholder
    rules: Rules = field(default_factory=Rules)  # of the sweeps
    books: Books = field(kw_only=True)
    money: Policy = field(default_factory=Policy)
    retail: RetailPrices | None = None  # None where prices are not refreshed
    budgets: Budgets = field(default_factory=NoBudgets)
    audience: Audience | None = None
    each: Each = in_turn  # how what is slow is done to many
    rendezvous: str = ""  # the table service's address, where the nodes of elastic runs meet
