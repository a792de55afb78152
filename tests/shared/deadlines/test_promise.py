"""A job is done by its date whatever the pool does, and it pays on average what the plan expects."""

from __future__ import annotations

import itertools
import random
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import fmean

import pytest

from benchmarks._spot import Window, bound, play
from benchmarks._spot_policies import dedicated_only, uniform_progress, until_the_last_moment
from benchmarks.deadline_worst import Job, played, repeats
from shared.deadlines.decide import choose, keeper_pays
from shared.deadlines.outlook import Plans
from shared.deadlines.plan import HOUR, NodeChoice, Plan, Terms, WorkLeft
from shared.deadlines.pool import ASSUMED, KINDS, Pool, PoolPeriod, kind_of_age, learn, moves

STEP = 600.0
Trace = Callable[[random.Random, int], list[bool]]


def bursts(dice: random.Random, steps: int) -> list[bool]:
    trace: list[bool] = []
    while len(trace) < steps:
        trace += [len(trace) % 2 == 0] * dice.randint(1, dice.choice((2, 8, 40)))
    return trace[:steps]


def noise(dice: random.Random, steps: int) -> list[bool]:
    share = dice.random()
    return [dice.random() < share for _ in range(steps)]


TRACES: dict[str, Trace] = {
    "never": lambda _, steps: [False] * steps,
    "always": lambda _, steps: [True] * steps,
    "every other step": lambda _, steps: [step % 2 == 0 for step in range(steps)],
    "until the last third": lambda _, steps: [step < steps * 2 // 3 for step in range(steps)],
    "bursts": bursts,
    "noise": noise,
}
SETTINGS = list(itertools.product((6, 9), (0, 0.3, 2), (1, 3, 12), (True, False)))


@pytest.mark.parametrize(("left", "slack", "change", "overlaps"), SETTINGS)
def test_it_is_never_late(left: float, slack: float, change: float, overlaps: bool) -> None:
    """Under any trace, a job is done by its date if dedicated nodes alone could have done it from the time of the
    request."""
    terms = Terms(0.97, 3.06, change * 60, STEP, reserve=change * 60, overlaps=overlaps)
    seconds, work = left * HOUR, (left - slack) * HOUR - terms.change
    plan = Plan(terms, Pool(), seconds, seconds - work)
    for name, trace in TRACES.items():
        for seed in range(6):
            window = Window(name, 0, trace(random.Random(seed), int(seconds // STEP)), ())
            outcome = play(lambda now: choose(plan, now), window, terms, seconds, work)
            assert outcome.spare >= -1e-6, f"late on {name}, seed {seed}"


@pytest.mark.parametrize("seconds_off", [1.0, 137.0, 599.0])
def test_a_date_off_the_grid_of_checks_is_kept_too(seconds_off: float) -> None:
    """The last check may be less than a step before the date: work that would end after the date is not started."""
    terms = Terms(0.97, 3.06, 180, STEP, reserve=180)
    seconds, work = 6 * HOUR + seconds_off, 5.9 * HOUR - 180
    plan = Plan(terms, Pool(), seconds, seconds - work)
    for policy in (partial(choose, plan), until_the_last_moment(terms), uniform_progress(terms, seconds, work)):
        for name, trace in TRACES.items():
            for seed in range(6):
                window = Window(name, 0, trace(random.Random(seed), int(seconds // STEP) + 1), ())
                assert play(policy, window, terms, seconds, work).spare >= -1e-6, f"late on {name}, seed {seed}"


def test_what_is_announced_is_never_exceeded() -> None:
    """The cost never exceeds the announced worst cost, on any pool, patterns and spite included. The first pool is
    up for three checks and down for one, and costs more than dedicated nodes alone (three hours of work in six,
    300 s per change)."""
    job = Job.of(6 * HOUR, 3 * HOUR, 300, overlaps=False)
    outcome = job.play(repeats(job.looks, 3, 1))
    assert job.alone < outcome.dollars <= job.plan.worst <= 1.2 * job.alone
    dice = random.Random(5)
    for drawn in (job, Job.of(9 * HOUR, 8 * HOUR, 720, overlaps=True), Job.of(4 * HOUR, HOUR, 60, overlaps=True)):
        for outcome in played(drawn, dice, 60):
            assert outcome.spare >= -1e-6
            assert outcome.dollars <= drawn.plan.worst + 1e-9


def test_plans_are_bytes_and_kept_up_to_a_limit() -> None:
    """A plan is little more than its tables, with one byte per choice. The least recently used plans are dropped."""
    terms = Terms(0.97, 3.06, 300, 300, reserve=900)
    tracemalloc.start()
    plan = Plan(terms, Pool(), 12 * HOUR, 4 * HOUR)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert plan.size < 144 * 42 * 100, "steps, states of the pool and of the run, cells of slack"
    assert used < 3 * plan.size
    plans = Plans(most_bytes=3 * plan.size)
    first, second, third, *_ = (plans.get(terms, Pool(), 12 * HOUR, hours * HOUR) for hours in (4.0, 3.9, 3.8))
    assert plans.get(terms, Pool(), 12 * HOUR, 4 * HOUR) is first
    plans.get(terms, Pool(), 12 * HOUR, 3.7 * HOUR)
    assert plans.size <= 3 * plan.size
    assert plans.get(terms, Pool(), 12 * HOUR, 4 * HOUR) is first
    assert plans.get(terms, Pool(), 12 * HOUR, 3.8 * HOUR) is third
    assert plans.get(terms, Pool(), 12 * HOUR, 3.9 * HOUR) is not second


def test_a_spiteful_pool_makes_it_dear_and_not_late() -> None:
    """A pool that always evicts the nodes in the step after they were chosen never makes the job late."""
    terms = Terms(0.97, 3.06, 720, STEP, reserve=720)
    seconds, work = 9 * HOUR, 7 * HOUR
    plan = Plan(terms, Pool(), seconds, seconds - work)
    trace = [True] * int(seconds // STEP)
    for step in range(1, len(trace)):
        chosen: list[NodeChoice] = []
        window = Window("spite", 0, trace[:step] + [True] * (len(trace) - step), ())
        play(lambda now, chosen=chosen: chosen.append(choose(plan, now)) or chosen[-1], window, terms, seconds, work)  # type: ignore[misc]
        trace[step] = len(chosen) >= step and chosen[step - 1] not in (NodeChoice.LOW, NodeChoice.BOTH)
    outcome = play(lambda now: choose(plan, now), Window("spite", 0, trace, ()), terms, seconds, work)
    assert outcome.spare >= 0
    assert outcome.dollars <= terms.dedicated * seconds / HOUR


@pytest.mark.parametrize("change", [180, 720])
def test_the_plan_knows_what_it_will_pay(change: float) -> None:
    """On a pool that behaves as the plan assumes, the average cost of 400 jobs is within four per cent of the
    plan's."""
    terms = Terms(0.97, 3.06, change, STEP, reserve=change)
    seconds, work = 10 * HOUR, 8 * HOUR
    pool = Pool()
    plan = Plan(terms, pool, seconds, seconds - work)
    dice = random.Random(7)
    costs = []
    for _ in range(400):
        state, states = KINDS, [KINDS]
        while len(states) < seconds // STEP:
            chance, sum_ = dice.random(), 0.0
            for likely, after in moves(pool, state, STEP):
                sum_ += likely
                if chance < sum_:
                    state = after
                    break
            states.append(state)
        window = Window("as believed", 0, [state >= KINDS for state in states], ())
        costs.append(play(lambda now: choose(plan, now), window, terms, seconds, work).dollars)
    expected = plan.cost(WorkLeft(seconds, work, NodeChoice.NONE, True, STEP))
    assert fmean(costs) == pytest.approx(expected, rel=0.04)


def test_it_is_cheaper_than_what_others_do() -> None:
    """On unseen traces, the plan costs less than dedicated nodes alone, waiting to the last moment, and UP."""
    terms = Terms(0.97, 3.06, 720, STEP, reserve=720)
    seconds, work = 12 * HOUR, 10 * HOUR
    windows = [Window("bursts", 0, bursts(random.Random(seed), 72), ()) for seed in range(60)]
    plan = Plan(terms, Pool(), seconds, seconds - work)

    def mean(policy: Callable[[WorkLeft], NodeChoice]) -> float:
        return fmean(
            play(policy, each, terms, seconds, work).dollars / bound(each, terms, seconds, work) for each in windows
        )

    ours = mean(lambda now: choose(plan, now))
    others = (dedicated_only, until_the_last_moment(terms), uniform_progress(terms, seconds, work))
    assert all(1 <= ours < mean(other) for other in others)


def test_a_pool_is_learnt_from_its_spells() -> None:
    """Many periods of one length raise the chance of an end at that age; a period that has not ended counts as no
    end."""
    flickers = learn([PoolPeriod(index % 2 == 0, 600.0) for index in range(400)])
    lasts = learn([PoolPeriod(True, 40 * HOUR, ended=False)])
    assert flickers.goes[0] > 2 * ASSUMED[1][0]
    assert lasts.goes[-1] < ASSUMED[1][-1]
    assert lasts.comes == pytest.approx(ASSUMED[0])
    assert [kind_of_age(hours * HOUR) for hours in (0, 1 / 6, 0.4, 9)] == [0, 0, 1, KINDS - 1]


def test_one_node_keeps_the_state_where_starting_over_costs_more() -> None:
    """A dedicated node that keeps the state pays off when restarting all nodes would cost more than that node until
    others are back. More nodes and longer losses favor the node; a pool that has long been away does not."""

    def pays(nodes: int, pause: float, age: float = 0.0) -> bool:
        return keeper_pays(Terms(nodes, 3.0 * nodes, 180, STEP, 180), Pool(), age, nodes, pause)

    assert [pays(nodes, 600) for nodes in (1, 4, 8, 64)] == [False, False, True, True]
    assert [pays(8, pause) for pause in (0, 60, 1800)] == [False, False, True]
    assert not pays(8, 600, age=9 * HOUR)


def test_work_stays_on_dedicated_nodes_beside_new_low_priority_ones() -> None:
    """Where changes are long and slack is scarce, the work stays on dedicated nodes while the low-priority nodes beside
    them are new. Low-priority nodes that have lasted replace them, and so do new ones if there is much slack."""
    terms = Terms(0.97, 3.06, 720, STEP, reserve=2040)

    def choices(slack: float) -> list[NodeChoice]:
        seconds = 24 * HOUR
        plan = Plan(terms, Pool(), seconds, slack)
        held = (WorkLeft(seconds, seconds - slack, NodeChoice.BOTH, True, hours * HOUR) for hours in (0.1, 3, 9))
        return [choose(plan, now) for now in held]

    assert choices(slack=1.4 * HOUR) == [NodeChoice.DEDICATED, NodeChoice.LOW, NodeChoice.LOW]
    assert choices(slack=6 * HOUR) == [NodeChoice.LOW] * 3
    assert not replace(terms, change=180).holds_both


def test_prices_decide() -> None:
    """When dedicated nodes are no more expensive, the job does not wait for low-priority nodes."""
    terms = Terms(3.0, 3.0, 180, STEP, reserve=180)
    plan = Plan(terms, Pool(), 6 * HOUR, 2 * HOUR)
    on_dedicated = WorkLeft(6 * HOUR, 4 * HOUR, NodeChoice.DEDICATED, True, STEP)
    assert choose(plan, on_dedicated) is NodeChoice.DEDICATED
    cheap = Plan(replace(terms, low=0.3), Pool(), 6 * HOUR, 2 * HOUR)
    assert choose(cheap, on_dedicated) in (NodeChoice.LOW, NodeChoice.BOTH)
