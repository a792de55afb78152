"""A month of five clusters in seconds, on the real use cases: users, drops, leases, budgets, preemptions, API errors.

The clock is an argument, and moves only by minutes in which something is up. The bill is the simulator's own, which
knows each node. One seed is one month. In half of the months the app reads every change of a cluster's size, as an app
that misses none does. In every second month of the other half the app is stopped at times, for up to a day.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from shared.clusters import lease_actions, scaling
from shared.clusters.lease_model import LeaseSpec
from shared.clusters.messages import CheckCluster
from shared.clusters.model import Cluster
from shared.clusters.samples import HOLDS, Sample
from shared.kernel.errors import TrainyardError, Unavailable
from shared.kernel.person import Person
from shared.money.budgets import AccountBudgets
from shared.money.charge_costs import keep_books
from shared.money.daily_charges import charged
from shared.money.model import Day, month_of
from shared.money.policy import Budget, Policy
from shared.money.prices import TIERS, Price, Prices
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from shared.runs.model import FINAL
from shared.runs.progress.cancel import cancel_run
from tests.fakes.ports import FakeClusters, FakeSamples
from tests.fakes.world import ROUTE, World
from tests.shared.money.money_pool import CANCEL_GRACE, MINUTE, Pool, Work

BEGIN = datetime(2026, 1, 18, tzinfo=UTC)  # a new month begins in the middle
END = datetime(2026, 2, 15, tzinfo=UTC)
DAY = timedelta(days=1)
PERIOD = 5  # minutes between two sweeps
PROJECTS = ("audio", "text", "vision")
SIZES = {"A1": 1.0, "B2": 2.5, "C4": 6.0}  # dollars an hour


class Clusters(FakeClusters):
    """The workspace's clusters, which may fail to answer."""

    def __init__(self, pools: dict[str, Pool], dice: Random, errors: float) -> None:
        super().__init__()
        self._pools, self._dice, self._errors = pools, dice, errors

    def list(self) -> list[Cluster]:
        self._answer()
        return [pool.seen() for pool in self._pools.values()]

    def scale(self, name: str, min_nodes: int | None = None, idle_seconds: float | None = None) -> None:
        self._answer()
        pool = self._pools[name]
        if min_nodes is not None:
            pool.declared = replace(pool.declared, min_nodes=min_nodes)
        if idle_seconds is not None:
            pool.declared = replace(pool.declared, idle_seconds=idle_seconds)

    def _answer(self) -> None:
        if self._dice.random() < self._errors:
            raise Unavailable("Azure ML does not answer.")


class Samples(FakeSamples):
    """Samples that are fast enough for a month, because they arrive in order of time."""

    def __init__(self) -> None:
        super().__init__()
        self._times: dict[str, list[datetime]] = defaultdict(list)
        self._samples: dict[str, list[Sample]] = defaultdict(list)

    def record(self, sample: Sample) -> None:
        times, samples = self._times[sample.cluster], self._samples[sample.cluster]
        if times and times[-1] == sample.at:
            samples[-1] = sample
        else:
            times.append(sample.at)
            samples.append(sample)

    def clusters(self) -> list[str]:
        return sorted(self._times)

    def first_day(self, cluster: str) -> datetime | None:
        times = self._times[cluster]
        return times[0].replace(hour=0, minute=0, second=0, microsecond=0) if times else None

    def between(self, cluster: str, since: datetime, until: datetime) -> Iterator[Sample]:
        times = self._times[cluster]
        yield from self._samples[cluster][bisect_left(times, since) : bisect_left(times, until)]

    def newest(self) -> dict[str, int]:
        """Return how many nodes each cluster had in its newest sample."""
        return {cluster: samples[-1].nodes for cluster, samples in self._samples.items()}


@dataclass
class Seen:
    """What the month recorded besides the bill.

    `nodes` is the highest number of concurrent nodes, `good` the last count without an error, `longest` the longest
    time without such a count, and `refused` the rejected requests. `uncounted` is the cost in dollars of nodes that
    changed before a count saw them. `stopped` is the minutes in which the app did not run.
    """

    nodes: int = 0
    good: datetime = BEGIN
    longest: timedelta = timedelta(minutes=PERIOD)
    refused: int = 0
    uncounted: float = 0.0
    stopped: int = 0


@dataclass
class Month:
    """One simulated month. Call `play`, then read `days`, `pools` and `seen`."""

    seed: int
    trainers: Path
    seen: Seen = field(default_factory=Seen)

    def __post_init__(self) -> None:
        self.dice = Random(self.seed)
        self.watched = self.seed % 2 == 0
        self._stops = Random(self.seed) if self.seed % 4 == 1 else None
        self._stopped_until = BEGIN
        errors = 0.0 if self.watched else 0.05
        self.pools = {f"cluster{n}": self._pool(f"cluster{n}") for n in range(5)}
        routes = [
            replace(ROUTE, name=name, cluster=name, project=self.dice.choice(["", *PROJECTS]), max_nodes=4, nodes=1)
            for name in self.pools
        ]
        self.world = World(self.trainers, routes)
        self.world.clock.now = BEGIN
        self.world.jobs.clusters = set(self.pools)
        self.budgets = {
            project: Budget(self.dice.choice([30.0, 90.0, 300.0]), grace_seconds=300.0) for project in PROJECTS[:2]
        }
        self.amounts = {(p, month_of(at)): b.month or 0.0 for p, b in self.budgets.items() for at in (BEGIN, END)}
        prices = Prices([Price(size, tier, "", cost, "test") for size, cost in SIZES.items() for tier in TIERS])
        policy = Policy("moon", self.budgets, prices)
        self.samples = Samples()
        self._taken: set[str] = set()  # jobs that Azure ML has started
        self.world.system = replace(
            self.world.system,
            samples=self.samples,
            clusters=Clusters(self.pools, Random(self.seed), errors),
            money=policy,
            budgets=AccountBudgets(self.world.books, policy, self.world.clock),
        )

    def _pool(self, name: str) -> Pool:
        size = self.dice.choice([*SIZES])
        cluster = Cluster(
            name, 0, self.dice.choice([2, 4]), self.dice.choice([60.0, 120.0, 600.0]),
            tier=self.dice.choice(TIERS), vm_size=size, project=self.dice.choice(["", *PROJECTS]),
        )  # fmt: skip
        return Pool(cluster, SIZES[size])

    @property
    def now(self) -> datetime:
        return self.world.clock()

    def play(self) -> None:
        span = (END - BEGIN) / MINUTE
        visits = sorted(BEGIN + MINUTE * self.dice.randint(0, int(span) - 600) for _ in range(self.dice.randint(6, 14)))
        while visits or not self._quiet():
            if self._quiet():
                self._look(patiently=True)
                self.world.clock.now = self.seen.good = max(self.now, visits[0] - MINUTE)
                self._look(patiently=True)
                self.world.clock.now = max(self.now, visits[0])
            while visits and visits[0] <= self.now and self.now >= self._stopped_until:
                visits.pop(0)
                for _ in range(self.dice.randint(1, 5)):
                    self._visit()
            self._minute()
            assert self.now < END, f"seed {self.seed}: something never comes to rest"
        self._look(patiently=True)
        self.world.clock.now = self.seen.good = END
        self._look(patiently=True)

    def days(self) -> list[Day]:
        return charged(self.world.system, BEGIN, self.now).days

    # what people do

    def _visit(self) -> None:
        name, system = self.dice.choice([*self.pools]), self.world.system
        pool = self.pools[name]
        try:
            match self.dice.randint(0, 9):
                case 0:
                    wish = LeaseSpec(
                        seconds=60.0 * self.dice.randint(10, 600), why="tuning", nodes=self.dice.randint(1, 2)
                    )
                    lease_actions.lease(system, name, wish, Person(self.dice.choice(["ann", "bob"])))
                case 1:
                    pool.declared = replace(pool.declared, min_nodes=1)  # set by hand, and forgotten
                case 9:
                    self._lower_a_budget()
                case 2:
                    live = [run.name for run in self.world.runs.newest(20)]
                    cancel_run(system, self.dice.choice(live)) if live else None
                case 3 | 4:
                    self.world.upload(f"{name}/{self.dice.randint(0, 99)}/1.bin", self.dice.randbytes(4))
                case _:
                    self._submit(name, pool)
        except TrainyardError:
            self.seen.refused += 1
        self._settle()

    def _lower_a_budget(self) -> None:
        """Let an administrator leave a project a dollar, or half of its budget if that is less."""
        project = self.dice.choice([*self.budgets])
        spent = self.spent().get((project, month_of(self.now)), 0.0)
        budget = self.budgets[project]
        amount = max(1.0, min((budget.month or 0.0) / 2, spent + 1.0))
        self.budgets[project] = replace(budget, month=amount)
        for month in {month_of(self.now), month_of(END)}:
            self.amounts[project, month] = amount
        self.amounts[project, month_of(self.now)] = max(amount, spent)

    def _submit(self, name: str, pool: Pool) -> None:
        tags = {"project": self.dice.choice(PROJECTS[:2])} if self.dice.random() < 0.3 else {}
        request = RunRequest(
            template=name,
            data="azureml://datastores/workspaceblobstore/paths/p",
            nodes=self.dice.randint(1, pool.declared.max_nodes),
            timeout_seconds=60 * self.dice.randint(20, 150),
            keep_warm_seconds=600 * self.dice.randint(0, 3) if self.dice.random() < 0.2 else None,
            tags=tags,
        )
        create.create_run(self.world.system, request, owner=self.dice.choice(["ann", "bob", ""]))

    # what Azure and the app do

    def _minute(self) -> None:
        if self._stops and self._stops.random() < 1 / 400:
            self._stopped_until = min(self.now + MINUTE * self._stops.randint(5, 24 * 60), END - DAY)
        if self.now < self._stopped_until:
            self._minute_without_the_app()
            return
        self._take_jobs()
        for name, pool in self.pools.items():
            events = pool.step(self.now, self.dice)
            if self.watched and pool.nodes != self.samples.newest().get(name, 0):
                scaling.scale_one(self.world.system, CheckCluster(name))
            for job, raw in events:
                self.world.job_goes(job, raw)
        self._settle()
        self._take_jobs()
        if (self.now - BEGIN) // MINUTE % PERIOD == 0:
            self._look()
        for name, pool in self.pools.items():
            self._pay(name, pool)
        self.world.clock.advance(60)

    def _minute_without_the_app(self) -> None:
        """Pass a minute without counts or removed nodes: a count stays valid for a while, and the rest of the time
        is unknown."""
        holds = self.now < self.seen.good + HOLDS
        for name, pool in self.pools.items():
            for job, raw in pool.step(self.now, self.dice, evicts=False):
                self.world.job_goes(job, raw)
            self._pay(name, pool, counted=holds)
        self.seen.stopped += 1
        self.world.clock.advance(60)

    def _pay(self, name: str, pool: Pool, counted: bool = True) -> None:
        pool.pay()
        if counted:
            self.seen.uncounted += abs(pool.nodes - self.samples.newest().get(name, 0)) * pool.price / 60
        self.seen.nodes = max(self.seen.nodes, sum(each.nodes for each in self.pools.values()))

    def _take_jobs(self) -> None:
        """Read Azure ML's jobs as the app left them: queue new jobs, end canceled ones."""
        for name, job in list(self.world.jobs.jobs.items()):
            pool = self.pools[str(job.spec["compute"]).removeprefix("azureml:")]
            if job.raw == "Canceled" and name not in self._taken:  # before Azure ML started the job
                self._taken.add(name)
                self.world.job_goes(name, "Canceled")
            elif job.raw == "Canceled":
                pool.cancel(name, self.now)
            elif job.raw == "Queued" and name not in pool.jobs:
                nodes = (job.spec.get("resources") or {}).get("instance_count", 1)
                limit = timedelta(seconds=job.spec["limits"]["timeout"])
                self._taken.add(name)
                pool.jobs[name] = Work(nodes, min(MINUTE * self.dice.randint(3, 280), limit))

    def _settle(self) -> None:
        self.world.deliver_all()
        self.world.run_until_idle()

    def _look(self, patiently: bool = False) -> None:
        while True:
            try:
                scaling.scale_clusters(self.world.system)
                keep_books(self.world.system)
            except TrainyardError:
                if patiently:
                    continue
            else:
                self.seen.longest = max(self.seen.longest, self.now - self.seen.good)
                self.seen.good = self.now
            break
        self._settle()

    def _quiet(self) -> bool:
        return (
            all(pool.nodes == 0 and not pool.jobs and pool.declared.min_nodes == 0 for pool in self.pools.values())
            and not any(self.samples.newest().values())
            and not any(self.world.queues.messages.values())
            and not self.world.leases.open()
            and all(run.progress.state in FINAL for run in self.world.runs.newest(1000))
        )

    # what must hold

    def bound(self, grace: float) -> float:
        """Return the most dollars by which a budget may be exceeded, from the terms in docs/cost.md.

        The terms are two periods of the sweep (one detects, one cancels), the grace, the cancellation and the nodes'
        release.
        """
        period = self.seen.longest.total_seconds()
        idle = max(pool.declared.idle_seconds for pool in self.pools.values())
        seconds = 2 * period + grace + CANCEL_GRACE.total_seconds() + idle + period
        return self.seen.nodes * max(pool.price for pool in self.pools.values()) * seconds / 3600

    def spent(self) -> dict[tuple[str, str], float]:
        """Return what each project spent in each month, according to the books."""
        found: dict[tuple[str, str], float] = defaultdict(float)
        for day in self.days():
            for row in day.rows:
                found[row.project, day.day[:6]] += row.dollars or 0.0
        return found
