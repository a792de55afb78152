"""Runs with a date: promised, moved between two clusters, and done in time whatever the pool does."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.clusters.model import Cluster
from shared.clusters.samples import sample_of
from shared.deadlines.intake import with_date
from shared.deadlines.messages import CheckPace
from shared.deadlines.model import Date
from shared.deadlines.pace import share_of_epochs
from shared.deadlines.plan import NodeChoice
from shared.elastic.model import Elastic, elastic_of
from shared.jobs.limits import Limits
from shared.jobs.readers.azureml import read_job
from shared.kernel.errors import Conflict, Impossible
from shared.money.charge_costs import keep_books
from shared.money.policy import Budget, Policy
from shared.money.prices import Price, Prices
from shared.notices.subscribe import SubscriptionSpec, subscribe
from shared.runs.features import Origin
from shared.runs.intake import create
from shared.runs.intake.dry_run import dry_run
from shared.runs.intake.from_job import run_of
from shared.runs.intake.request import RunRequest
from shared.runs.model import Run, RunState
from shared.runs.progress.workloads import workload, workloads
from tests.fakes.azureml import FakeJobs
from tests.fakes.world import ELASTIC, ROUTE, TEMPLATE, World, trainers_folder
from tests.shared.runs.test_kinds_of_runs import AT, JOBS

SIZE, LOW, OTHER, DEDICATED = "Standard_NC6s_v3", "cpu-cluster", "other-region", "sure"
HOUR, DATA = 3600, "azureml://datastores/workspaceblobstore/paths/p"
PLAIN = replace(ROUTE, clusters=frozenset({DEDICATED}), nodes=1, timeout_seconds=20 * HOUR)
MEMBERS = replace(PLAIN, template=read_job(ELASTIC), nodes=2, min_nodes=1)
START_SECONDS = 300.0
WITHOUT_DATE = [each.kind for each in workloads() if each.kind in {"pipeline", "sweep"}]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made(tmp_path)


def made(folder: Path, route: Any = PLAIN, **budgets: Budget) -> World:
    world = World(trainers_folder(folder), [route])
    world.jobs.clusters = {LOW, OTHER, DEDICATED}
    world.clusters.clusters = {
        name: Cluster(name, 0, 4, 120, tier=tier, vm_size=SIZE)
        for name, tier in ((LOW, "low_priority"), (OTHER, "low_priority"), (DEDICATED, "dedicated"))
    }
    prices = Prices(
        [Price(SIZE, "low_priority", "eastus", 1.0, "test"), Price(SIZE, "dedicated", "eastus", 3.0, "test")]
    )
    world.system = replace(world.system, money=Policy("eastus", budgets, prices))
    return world


def ask(world: World, **more: Any) -> Run:
    words: dict[str, Any] = {"within_seconds": 6 * HOUR, "takes_seconds": 4 * HOUR, **more}
    run = create.create_run(world.system, RunRequest(template="mnist", data=DATA, **words))
    world.run_until_idle()
    return world.runs.get(run.name).value


def date_of(run: Run) -> Date:
    its_date = run.feature(Date)
    assert its_date is not None
    return its_date


@dataclass
class Azure:
    """A fake of nodes that come and go, and of a training that works on the nodes that it has."""

    world: World
    run: str
    work: float  # seconds on all nodes
    nodes: int
    pool: Callable[[], int]  # the number of low-priority nodes available now
    done: float = 0.0
    since: dict[str, float] = field(default_factory=dict)  # seconds that each job has had its node
    ended: set[str] = field(default_factory=set)  # canceled jobs that Azure ML has reported
    took: dict[str, float] = field(default_factory=dict)  # node seconds of each cluster
    rows: bytes = b""  # the metrics
    checkpoint: float = 0.0  # seconds of work between two; newer work is lost with the last member
    lost: list[float] = field(default_factory=list)  # seconds of work lost, each time
    other_pool: Callable[[], int] = lambda: 0  # the pool of OTHER

    def minutes(self, most: int) -> None:
        for _ in range(most):
            if self.world.runs.get(self.run).value.progress.state in (RunState.COMPLETED, RunState.FAILED):
                return
            self._minute()

    def _minute(self) -> None:
        for name, job in self.world.jobs.jobs.items():
            if job.raw == "Canceled" and name not in self.ended:
                self.ended.add(name)
                self.world.job_goes(name, "Canceled")
        alive = [(n, j) for n, j in self.world.jobs.jobs.items() if j.raw in ("Queued", "Running")]
        free = {LOW: self.pool(), OTHER: self.other_pool(), DEDICATED: 99}
        for name, job in alive:
            cluster = job.spec["compute"].removeprefix("azureml:")
            if free[cluster] <= 0:
                self.since.pop(name, None)
                self._goes(name, "Queued")
                continue
            free[cluster] -= 1
            self.since[name] = self.since.get(name, 0.0) + 60
            self.took[cluster] = self.took.get(cluster, 0.0) + 60
            if self.since[name] > START_SECONDS:
                self._goes(name, "Running")
        working = sum(self.since[name] > START_SECONDS for name, _ in alive if name in self.since)
        if self.checkpoint and not working and (lost := self.done % self.checkpoint):
            self.lost.append(lost)
            self.done -= lost
        self.done += 60 * min(working, self.nodes) / self.nodes
        if self.done >= self.work:
            for name, _ in alive:
                self.world.job_goes(name, "Completed")
        else:
            self._told()
        self._count()
        self.world.clock.advance(60)
        self.world.deliver_all()
        self.world.run_until_idle()

    def _goes(self, name: str, raw: str) -> None:
        if self.world.jobs.jobs[name].raw != raw:
            self.world.job_goes(name, raw)

    def _told(self) -> None:
        row = {"time": self.world.clock().timestamp(), "step": int(self.done), "done": self.done / self.work}
        self.rows += json.dumps(row).encode() + b"\n"
        self.world.blobs.put("azureml-blobstore", f"trainyard/{self.run}/metrics/metrics.jsonl", self.rows)

    def _count(self) -> None:
        for name, cluster in self.world.clusters.clusters.items():
            count = sum(
                job.spec["compute"].endswith(name) and job.raw == "Running" for job in self.world.jobs.jobs.values()
            )
            self.world.samples.record(sample_of(replace(cluster, nodes=count, running_nodes=count), self.world.clock()))


def bursts(seed: int, nodes: int) -> Callable[[], int]:
    dice, state = random.Random(seed), {"left": 0, "free": 0}

    def pool() -> int:
        if not state["left"]:
            state["left"], state["free"] = dice.randint(1, dice.choice((10, 60, 240))), dice.choice((0, nodes))
        state["left"] -= 1
        return state["free"]

    return pool


POOLS: dict[str, Callable[[int], Callable[[], int]]] = {
    "never": lambda _: lambda: 0,
    "always": lambda nodes: lambda: nodes,
    **{f"bursts {seed}": (lambda nodes, seed=seed: bursts(seed, nodes)) for seed in range(4)},  # type: ignore[misc]
}


@pytest.mark.parametrize("route", [PLAIN, MEMBERS], ids=["plain", "elastic"])
@pytest.mark.parametrize("pool", POOLS)
def test_it_is_done_in_time(tmp_path: Path, route: Any, pool: str) -> None:
    """A run is done by its date whatever its pool does. On a good pool it uses no dedicated node, and the books
    show what each cluster's nodes cost."""
    world = made(tmp_path, route)
    run = ask(world)
    azure = Azure(world, run.name, 4 * HOUR, route.nodes, POOLS[pool](route.nodes))
    azure.minutes(7 * 60)
    run = world.runs.get(run.name).value
    assert run.progress.state is RunState.COMPLETED, run.progress.reason
    assert date_of(run).due.done_by
    assert run.progress.history[-1].at <= date_of(run).due.done_by
    assert date_of(run).pace.late_since is None
    assert bool(azure.took.get(DEDICATED)) == (pool != "always")
    if route is PLAIN and pool != "always":
        assert any(f"continues from its checkpoints on {DEDICATED}" in moment.why for moment in run.progress.history)
    keep_books(world.system)
    cost = world.runs.get(run.name).value.money.cost
    assert cost
    running = sum(job.spec["compute"].endswith(DEDICATED) for job in world.jobs.jobs.values())
    assert cost.training > 0
    if not running:
        assert cost.training == pytest.approx(4 * route.nodes, rel=0.1), "a dollar for each hour of each node"


@pytest.mark.parametrize("route", [PLAIN, MEMBERS], ids=["plain", "elastic"])
def test_it_goes_where_there_are_nodes(tmp_path: Path, route: Any) -> None:
    """While one low-priority cluster has no nodes, the run tries the next; the books charge each cluster's nodes."""
    world = made(tmp_path, replace(route, clusters=frozenset({OTHER, DEDICATED})))
    run = ask(world)
    assert date_of(run).due.low_clusters == (LOW, OTHER)
    azure = Azure(world, run.name, 4 * HOUR, route.nodes, lambda: 0, other_pool=lambda: route.nodes)
    azure.minutes(6 * 60)
    run = world.runs.get(run.name).value
    assert run.progress.state is RunState.COMPLETED, run.progress.reason
    assert set(azure.took) == {OTHER}
    assert run.feature(Elastic) is None or not elastic_of(run).losses, "who waited in vain lost nothing"
    used = {
        use.cluster: sum((spell.end - spell.begin).total_seconds() * spell.nodes for spell in use.ran)
        for use in workload(run).uses(run, world.clock())
    }
    assert used.pop(OTHER) == pytest.approx(4 * HOUR * route.nodes, rel=0.05)
    assert not any(used.values())
    keep_books(world.system)
    cost = world.runs.get(run.name).value.money.cost
    assert cost
    assert cost.training == pytest.approx(4 * route.nodes, rel=0.1), "at the price of low-priority nodes"


@pytest.mark.parametrize("route", [PLAIN, MEMBERS], ids=["plain", "elastic"])
def test_it_goes_back_to_low_priority_nodes(tmp_path: Path, route: Any) -> None:
    """A pool that is away for two hours costs dedicated nodes for that time only; then the run returns to the pool."""
    world = made(tmp_path, route)
    run = ask(world, within_seconds=9 * HOUR, takes_seconds=7 * HOUR)
    minutes = iter(range(10_000))

    def pool() -> int:
        there_are = not 60 <= next(minutes) < 210
        cluster = world.clusters.clusters[LOW]  # idle nodes that other jobs left are visible to a plain run
        world.clusters.clusters[LOW] = replace(cluster, idle_nodes=route.nodes if there_are else 0)
        return route.nodes if there_are else 0

    azure = Azure(world, run.name, 7 * HOUR, route.nodes, pool)
    azure.minutes(10 * 60)
    run = world.runs.get(run.name).value
    assert run.progress.state is RunState.COMPLETED, run.progress.reason
    assert run.progress.history[-1].at <= (date_of(run).due.done_by or run.created_at)
    assert 0 < azure.took[DEDICATED] < 3 * HOUR * route.nodes
    assert date_of(run).pace.change_measured == pytest.approx(START_SECONDS, rel=0.4)


def test_one_dedicated_member_keeps_the_state(tmp_path: Path) -> None:
    """Once a run has measured what a restart costs, it keeps a single dedicated member while its pool has no nodes."""
    world = made(tmp_path, replace(MEMBERS, nodes=4))
    run = ask(world, within_seconds=12 * HOUR, takes_seconds=7 * HOUR)
    minutes = iter(range(10_000))

    def pool() -> int:
        """An hour with nodes, a quarter of an hour with one, eight minutes with none."""
        minute = next(minutes) % 83
        return 4 if minute < 60 else 1 if minute < 75 else 0

    azure = Azure(world, run.name, 7 * HOUR, 4, pool, checkpoint=2200)
    most = 0
    for _ in range(13 * 60):
        azure.minutes(1)
        run = world.runs.get(run.name).value
        alone = date_of(run).pace.holds is NodeChoice.ONE
        most = max(most, elastic.dedicated) if alone and (elastic := run.feature(Elastic)) else most
    assert run.progress.state is RunState.COMPLETED, run.progress.reason
    assert run.progress.history[-1].at <= (date_of(run).due.done_by or run.created_at)
    assert len(azure.lost) == 1, "only before it knew what that costs"
    assert most == 1


def test_what_it_costs_is_said_before_it_starts(world: World) -> None:
    """A dry run and the record give the best, worst and expected cost; both clusters may be used."""
    request = RunRequest(template="mnist", data=DATA, within_seconds=6 * HOUR, takes_seconds=4 * HOUR)
    date = dry_run(world.system, request)["date"]
    assert date["best"] < date["expected"] < date["worst"]
    assert (date["best"], date["worst"]) == pytest.approx((4.08, 13.85), abs=0.01)
    assert date["clusters"] == [LOW, DEDICATED]
    run = ask(world)
    assert (date_of(run).due.cost_expected, run.money.greatest) == (date["expected"], date["worst"])
    assert dry_run(world.system, RunRequest(template="mnist", data=DATA))["date"] is None


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            {"within_seconds": 4 * HOUR},
            "too_soon",
            r"takes 4 h 00 min on 1 nodes.* The earliest date is 2026-\d\d-\d\d",
        ),
        ({"takes_seconds": None}, "unknown_work", "--takes 5h"),
        ({"takes_seconds": 25 * HOUR, "within_seconds": 40 * HOUR}, "over_time_limit", "its time limit is 20 h"),
        (
            {"takes_seconds": 8 * 24 * HOUR, "within_seconds": 12 * 24 * HOUR},
            "over_time_limit",
            "takes 192 h 00 min, and Azure ML ends a job on low-priority nodes after 7 days. Use more nodes",
        ),
        ({"done_by": "yesterday", "within_seconds": None}, "bad_date", "'yesterday'; write a date and time such as"),
        ({"done_by": "2020-01-01T18:00", "within_seconds": None}, "too_soon", "which has passed"),
        ({"done_by": "18:00"}, "bad_date", "both set the date"),
        ({"nodes": 5}, "nodes", ""),
    ],
)
def test_what_cannot_be_promised_is_refused(world: World, words: dict[str, Any], code: str, message: str) -> None:
    """A date that is too early is refused with the earliest possible date; an unknown or unreadable value is
    refused too."""
    if code == "nodes":
        world.clusters.clusters[DEDICATED] = replace(world.clusters.clusters[DEDICATED], max_nodes=1)
        code, words, message = "one_tier", {"nodes": 2}, "has fewer than 2 nodes"
    with pytest.raises(Impossible, match=message) as refused:
        ask(world, **words)
    assert refused.value.code == code


def test_a_job_file_and_a_route_may_name_the_date(tmp_path: Path) -> None:
    """The tags `within` and `takes` of a drop's job file set a date, and override those of the route."""
    world = made(tmp_path, replace(PLAIN, within_seconds=9 * HOUR, takes_seconds=HOUR))
    world.complete("1.bin")
    run = world.only_run()
    assert date_of(run).due.done_by == run.created_at + timedelta(hours=9)
    world = made(tmp_path, replace(PLAIN, within_seconds=9 * HOUR, takes_seconds=HOUR))
    world.complete("1.bin", job_file='tags: {within: 3h, takes: "90m"}')
    run = world.only_run()
    assert date_of(run).due.done_by == run.created_at + timedelta(hours=3)
    assert date_of(run).due.takes_seconds == 5400
    assert read_job(TEMPLATE)


def test_a_budget_binds_it(tmp_path: Path) -> None:
    """The worst cost is reserved; a budget with less money left refuses the run. A warning before the start says
    when the run's own limit may come before its date."""
    world = made(tmp_path, replace(PLAIN, project="vision"), vision=Budget(month=12))
    with pytest.raises(Conflict, match="12"):
        ask(world)
    assert ask(world, takes_seconds=3 * HOUR).money.project == "vision"
    world = made(tmp_path, replace(PLAIN, project="vision"), vision=Budget(month=100, run=10))
    request = RunRequest(template="mnist", data=DATA, within_seconds=6 * HOUR, takes_seconds=4 * HOUR)
    assert "Its budget ends it at $10.00, even before its date." in dry_run(world.system, request)["date"]["why"]
    assert ask(world).money.allowed == 10


def test_larger_work_than_was_said_is_told_at_once(world: World) -> None:
    """As soon as the metrics show that the work takes longer than stated, the run moves to dedicated nodes and says
    when it will be done."""
    subscribe(world.system, world.post, SubscriptionSpec(["late"], "https://example.org/hook"))
    run = ask(world)
    azure = Azure(world, run.name, 7 * HOUR, 1, lambda: 1)
    azure.minutes(3 * 60)
    run = world.runs.get(run.name).value
    late_since = date_of(run).pace.late_since
    assert late_since
    assert late_since - run.created_at < timedelta(hours=1.2)
    assert "larger than stated" in date_of(run).pace.holds_why
    world.run_until_idle()
    (told,) = (json.loads(body)["data"]["title"] for _, body, _ in world.sender.posts)
    assert "will be late: The work is larger than stated" in told
    assert run.on_cluster == DEDICATED


def test_starting_over_is_no_larger_work(tmp_path: Path) -> None:
    """Work lost with the nodes does not count as more work: a run that restarts twice early on is not reported as
    late while it is on time."""
    world = made(tmp_path, MEMBERS)
    run = ask(world, within_seconds=9 * HOUR)
    minutes = iter(range(10_000))
    azure = Azure(world, run.name, 4 * HOUR, 2, lambda: 0 if next(minutes) in (48, 90) else 2, checkpoint=2400)
    azure.minutes(150)
    pace = date_of(world.runs.get(run.name).value).pace
    assert len(azure.lost) == 2
    assert pace.lost_seconds == pytest.approx(sum(azure.lost), abs=400)
    assert pace.done_at
    late = pace.done_at - world.clock() - timedelta(seconds=4 * HOUR * (1 - pace.done_share))
    assert late < timedelta(minutes=6), "the rest takes what was said"


def test_epochs_tell_how_much_is_done() -> None:
    """Without the metric `done`, progress is the epoch of the last step divided by the parameter `epochs`."""
    points = [(float(step), float(step // 100), None) for step in range(0, 251, 10)]
    assert share_of_epochs(points, 5) == pytest.approx(0.5)
    assert share_of_epochs(points[:5], 5) is None


def test_repeated_messages_make_no_second_chain(world: World) -> None:
    """A check whose token differs from the row's does nothing, so repeated messages never start a second chain of
    checks."""
    run = ask(world)
    before = len(world.queues.messages["checks"])
    for token in ("", "old"):
        world.queues.send(CheckPace(run.name, token))
    world.run_until_idle()
    assert len(world.queues.messages["checks"]) == before
    assert isinstance(world.jobs, FakeJobs)


@pytest.mark.parametrize("kind", WITHOUT_DATE)
def test_no_other_kind_may_have_a_date(kind: str, tmp_path: Path) -> None:
    """A run that can't change its nodes is refused a date, before the run is recorded."""
    world = World(trainers_folder(tmp_path))
    run = run_of("r", replace(JOBS[kind], tags={"within": "1h"}), (0, 0), AT)
    with pytest.raises(Impossible, match=f"A {kind} can't have a date") as caught:
        with_date(world.system, run, Origin(None, None, Limits()))
    assert caught.value.code == "bad_date"
