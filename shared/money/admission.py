"""Before a run starts: what it will cost, who pays, and whether that is allowed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from statistics import median
from typing import Any

from shared.clusters.model import Cluster
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
from shared.runs.model import Run
from shared.runs.node_use import seconds_of
from shared.runs.ports import Refusal
from shared.runs.progress.workloads import workload

PROJECT_TAG = "project"
RUNS_READ = 200  # for the estimate: one request
RUNS_USED = 20  # of the same kind, the newest
NEW_CLUSTER = timedelta(seconds=30)  # until a cluster that was made just now is known

# While a service does not answer, what is known of it is what was known last.
CLUSTERS = Topic[list[Cluster]]("clusters", timedelta(minutes=5), else_last=True)
PRICES = Topic[list[Price]]("prices", timedelta(minutes=1), else_last=True)
NEWEST_RUNS = Topic[list[Run]]("newest runs", timedelta(minutes=1), else_last=True)


@dataclass(frozen=True)
class ProjectPurse:
    """The port shared.runs.ports.Purse, from the money file and the projects' accounts."""

    ports: MoneyPorts

    def project_of(self, tags: Any, route: str) -> str:
        return project_of(self.ports.routes, self.ports.money, tags, route)

    def priced(self, run: Run) -> Run:
        return priced(self.ports, run)

    def admit(self, run: Run) -> None:
        admit(self.ports, run)

    def refusal(self, run: Run) -> Refusal | None:
        return refusal(self.ports, run)

    def usual_seconds(self, run: Run) -> float | None:
        seconds = seconds_before(self.ports, run)
        return median(seconds) if seconds else None


def project_of(routes: Routes, money: Policy, tags: Any, route: str) -> str:
    """The project that a job's tags or its route name, '' if neither does. Raises Impossible for one without a budget.

    Where budgets are set, a tag may only name a project that has one: else any other name would be a way around them.
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
    """The run with its price, estimated and greatest cost as far as they are known now; one that has them, as it is.

    Who pays is its own project, else that of its tags or route, else its cluster's.
    """
    if not run.money.project:
        run = replace(
            run,
            money=replace(
                run.money, project=project_of(ports.routes, ports.money, run.asked.request.tags, run.asked.route)
            ),
        )
    if not workload(run).has_own_nodes:  # a sweep, whose trials have prices
        return _with_most(ports, run)
    try:
        cluster, before = _cluster(ports, run.asked.cluster), seconds_before(ports, run)
    except TrainyardError as exc:  # a service that refuses leaves a price unknown, and stops no run by that
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
    """A sweep with the most that its trials may cost, if that is known."""
    try:
        cluster = _cluster(ports, run.asked.request.cluster)
    except TrainyardError:
        return run
    price = price_of(ports, cluster) if cluster else None
    return replace(run, money=replace(run.money, greatest=decide.most_of_sweep(run, price.dollars))) if price else run


def _with_limit(money: Policy, run: Run) -> Run:
    """A run whose cluster a feature chooses with what its budget lets it cost, if that is less than it may cost."""
    budget = money.budgets.get(run.money.project)
    limited = run.is_steered and budget and budget.run is not None and budget.run < (run.money.greatest or 0.0)
    return replace(run, money=replace(run.money, allowed=budget.run)) if limited and budget else run


def admit(ports: MoneyPorts, run: Run) -> None:
    """Reserve what the run may cost from its project's budget. A repeat changes nothing.

    Raises Conflict, saying what to do, if the budget does not allow it. Two at once are decided one after the other:
    the account is written under its etag.
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
    """Why its project's budget would not let the run start now; None if it would. Reserves nothing."""
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
    """All prices that are known: the money file's own, over those that were refreshed, over those of the app."""
    refreshed = ports.memory.answer(PRICES, ports.clock(), ports.books.prices)
    return ports.money.prices.over(Prices(refreshed)).over(ports.money.shipped)


def price_of(ports: MoneyPorts, cluster: Cluster) -> Price | None:
    return prices(ports).find(cluster.vm_size, cluster.tier, ports.money.region)


def clusters(ports: MoneyPorts) -> dict[str, Cluster]:
    """The workspace's clusters as they were minutes ago, by name: for their sizes and projects.

    While Azure ML does not answer they are those that were known last. Raises Unavailable if none ever were.
    """
    all_clusters = ports.memory.answer(CLUSTERS, ports.clock(), ports.clusters.list)
    return {cluster.name: cluster for cluster in all_clusters}


def _cluster(ports: MoneyPorts, name: str) -> Cluster | None:
    """The cluster as it was minutes ago. One that was not there then may be new, and is looked for again."""
    if known := clusters(ports).get(name):
        return known
    recent = ports.memory.answer(replace(CLUSTERS, max_age=NEW_CLUSTER), ports.clock(), ports.clusters.list)
    return next((cluster for cluster in recent if cluster.name == name), None)


def newest_runs(ports: MoneyPorts) -> list[Run]:
    return ports.memory.answer(NEWEST_RUNS, ports.clock(), lambda: ports.runs.newest(RUNS_READ))


def seconds_before(ports: MoneyPorts, run: Run) -> list[float]:
    """How long the newest runs of this kind took: of the same experiment and route, on as many nodes."""
    newest = newest_runs(ports)
    kind = (run.asked.experiment, run.asked.route, run.asked.nodes)
    durations = [seconds_of(old) for old in newest if (old.asked.experiment, old.asked.route, old.asked.nodes) == kind]
    return [seconds for seconds in durations if seconds is not None][:RUNS_USED]
