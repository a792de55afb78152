"""Decide before a run starts: the cost, the payer, and whether the budget allows the run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from statistics import median
from typing import Any

from shared.clusters.model import Cluster
from shared.clusters.ports import ClusterPorts
from shared.jobs.route import Routes
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.errors import Conflict, Impossible, TrainyardError
from shared.kernel.memory import Topic
from shared.kernel.names import NAME
from shared.kernel.suggest import did_you_mean, there_are
from shared.kernel.versioned import Stored
from shared.money import decide
from shared.money.model import Account, Quote, month_of
from shared.money.policy import Policy
from shared.money.ports import MoneyPorts
from shared.money.prices import Price, Prices
from shared.runs import features
from shared.runs.model import Run
from shared.runs.node_use import seconds_of
from shared.runs.ports import Refusal, RunPorts
from shared.runs.progress.workloads import workload

PROJECT_TAG = "project"
RUNS_READ = 200  # for the estimate; costs one request
RUNS_USED = 20  # the newest runs of the same kind
NEW_CLUSTER = timedelta(seconds=30)  # a new cluster is known after this time at the latest

# While a service does not answer, its last answer is used.
CLUSTERS = Topic[list[Cluster]]("clusters", timedelta(minutes=5), else_last=True)
PRICES = Topic[list[Price]]("prices", timedelta(minutes=1), else_last=True)
NEWEST_RUNS = Topic[list[Run]]("newest runs", timedelta(minutes=1), else_last=True)


@dataclass(frozen=True)
class BudgetAdmission:
    """Implements the port shared.runs.ports.Admission with the money file and the projects' accounts."""

    ports: MoneyPorts

    def project_of(self, tags: Any, route: str) -> str:
        return project_of(self.ports.routes, self.ports.money, tags, route)

    def priced(self, run: Run) -> Run:
        return priced(self.ports, run)

    def admit(self, run: Run) -> None:
        features.reserve(self.ports, run)
        try:
            admit(self.ports, run)
        except Conflict:
            features.release(self.ports, run)
            raise

    def refusal(self, run: Run) -> Refusal | None:
        return features.refusal(self.ports, run) or refusal(self.ports, run)

    def usual_seconds(self, run: Run) -> float | None:
        seconds = seconds_before(self.ports, run)
        return median(seconds) if seconds else None


def project_of(routes: Routes, money: Policy, tags: Any, route: str) -> str:
    """Return the project of a job's tags or route; '' without a project.

    Raises Impossible for a tag that names a project without a budget, if any budgets are set: otherwise a tag could
    bypass the budgets.
    """
    named = str(tags.get(PROJECT_TAG) or "")
    budgets = money.budgets
    if named and budgets and named not in budgets:
        hint = did_you_mean(named, budgets)
        raise Impossible(
            f"There is no project {named[:80]!r}.{hint} There are: {there_are(budgets)}.", "unknown_project"
        )
    if named and not NAME.fullmatch(named):
        raise Impossible(f"project is {named[:80]!r}; use letters, digits, dashes and underscores.", "bad_name")
    route_settings = routes.get(route)
    return named or (route_settings.project if route_settings else "")


def priced(ports: MoneyPorts, run: Run) -> Run:
    """Return the run with price, estimated cost and greatest cost, as far as known now.

    A run that already has a price keeps it. The payer is the run's own project, else the project of its tags or route,
    else its cluster's project.
    """
    if not run.money.project:
        run = replace(
            run,
            money=replace(
                run.money, project=project_of(ports.routes, ports.money, run.asked.request.tags, run.asked.route)
            ),
        )
    if not workload(run).has_own_nodes:  # a sweep: its trials have the prices
        return _with_most(ports, run)
    try:
        cluster, before = _cluster(ports, run.asked.cluster), seconds_before(ports, run)
    except TrainyardError as exc:  # if a service refuses, the price stays unknown and the run may still start
        return run if run.money.price else replace(run, money=replace(run.money, price_from=str(exc)))
    if not run.money.project and cluster and cluster.project:
        run = replace(run, money=replace(run.money, project=cluster.project))
    if run.money.price:
        return _with_limit(ports.money, run)
    price = price_of(ports, cluster) if cluster else None
    cost = decide.quote(run, price.dollars if price else None, before)
    return replace(
        run,
        money=replace(
            run.money,
            price=cost.price or 0.0,
            price_from=price.source if price else cost.why,
            estimated=cost.estimated,
            greatest=cost.greatest,
        ),
    )


def _with_most(ports: MoneyPorts, run: Run) -> Run:
    """Return a sweep with the greatest cost of all trials, if the price is known."""
    try:
        cluster = _cluster(ports, run.asked.request.cluster)
    except TrainyardError:
        return run
    price = price_of(ports, cluster) if cluster else None
    return replace(run, money=replace(run.money, greatest=decide.most_of_sweep(run, price.dollars))) if price else run


def _with_limit(money: Policy, run: Run) -> Run:
    """Return a run on a feature's choice of cluster with the budget's limit per run, if the limit is below the run's
    greatest cost.
    """
    budget = money.budgets.get(run.money.project)
    limited = run.is_steered and budget and budget.run is not None and budget.run < (run.money.greatest or 0.0)
    return replace(run, money=replace(run.money, allowed=budget.run)) if limited and budget else run


def admit(ports: MoneyPorts, run: Run) -> None:
    """Reserve the run's greatest cost in the project's budget. A repeat changes nothing.

    Raises Conflict, with the remedy, if the budget does not allow the run. Two concurrent admissions are decided one
    after the other, because the account is written under its etag.
    """
    budget = ports.money.budgets.get(run.money.project)
    if budget is None or not workload(run).has_own_nodes:
        return
    project = run.money.project

    def write(stored: Stored[Account] | None) -> None:
        now = ports.clock()
        before = stored.value if stored else Account(project, month_of(now))
        after = decide.admit(budget, before, run, _quote(run), now)
        if isinstance(after, Refusal):
            raise Conflict(after.why, after.code)
        if after != before:
            ports.books.write_account(stored, after) if stored else ports.books.open_account(after)

    compare_and_set(ports.clock, f"The account of project {project}", lambda: ports.books.account(project), write)


def refusal(ports: MoneyPorts, run: Run) -> Refusal | None:
    """Return why the project's budget would not let the run start now; None if the run could start. Reserves
    nothing.
    """
    budget = ports.money.budgets.get(run.money.project)
    if budget is None or not workload(run).has_own_nodes:
        return None
    now, stored = ports.clock(), ports.books.account(run.money.project)
    account = stored.value if stored else Account(run.money.project, month_of(now))
    decision = decide.admit(budget, account, run, _quote(run), now)
    return decision if isinstance(decision, Refusal) else None


def _quote(run: Run) -> Quote:
    return Quote(run.money.estimated, run.money.greatest, run.money.price or None, run.money.price_from)


def prices(ports: MoneyPorts) -> Prices:
    """Return all known prices. The money file's prices override refreshed prices, which override the app's own."""
    refreshed = ports.memory.answer(PRICES, ports.clock(), ports.books.prices)
    return ports.money.prices.over(Prices(refreshed)).over(ports.money.shipped)


def price_of(ports: MoneyPorts, cluster: Cluster) -> Price | None:
    return prices(ports).find(cluster.vm_size, cluster.tier, ports.money.region)


def clusters(ports: ClusterPorts) -> dict[str, Cluster]:
    """Return the workspace's clusters by name, at most minutes old, for their sizes and projects.

    While Azure ML does not answer, the last known clusters are returned. Raises Unavailable if none were ever read.
    """
    all_clusters = ports.memory.answer(CLUSTERS, ports.clock(), ports.clusters.list)
    return {cluster.name: cluster for cluster in all_clusters}


def _cluster(ports: ClusterPorts, name: str) -> Cluster | None:
    """Return the cluster, at most minutes old. A missing cluster may be new, so the list is read again."""
    if known := clusters(ports).get(name):
        return known
    recent = ports.memory.answer(replace(CLUSTERS, max_age=NEW_CLUSTER), ports.clock(), ports.clusters.list)
    return next((cluster for cluster in recent if cluster.name == name), None)


def newest_runs(ports: RunPorts) -> list[Run]:
    return ports.memory.answer(NEWEST_RUNS, ports.clock(), lambda: ports.runs.newest(RUNS_READ))


def seconds_before(ports: RunPorts, run: Run) -> list[float]:
    """Return the durations in seconds of the newest runs with the same experiment, route and number of nodes."""
    newest = newest_runs(ports)
    kind = (run.asked.experiment, run.asked.route, run.asked.nodes)
    durations = [seconds_of(old) for old in newest if (old.asked.experiment, old.asked.route, old.asked.nodes) == kind]
    return [seconds for seconds in durations if seconds is not None][:RUNS_USED]
