"""`idle: auto`: the rule, its bound for any gaps, and the benchmark that replays a trace."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import idle_policy
from shared.clusters.idle import REMEMBERED, IdleTime, auto_idle_seconds, cheapest, cost

B = 300.0


def replay(gaps: list[float], start: float = B) -> tuple[float, float]:
    """Return the cost of the learned idle times over these gaps, and the best cost in hindsight."""
    learnt, spent = IdleTime(start), 0.0
    for gap in gaps:
        assert 0 <= learnt.seconds <= start
        spent += cost(gap, learnt.seconds, start)
        learnt.see(gap)
    return spent, sum(min(gap, start) for gap in gaps)


def test_from_the_fifth_gap_on_a_cluster_learns() -> None:
    """After four gaps, a cluster uses the cheapest time for its own gaps; before that, a time learned from other
    clusters."""
    assert auto_idle_seconds([1e6] * 4, B) == 0
    assert auto_idle_seconds([20.0] * 4, B) == 20
    assert auto_idle_seconds([], B, others=[1e6] * 30) == 0
    assert auto_idle_seconds([1e6], B, others=[30.0] * 40) == 30
    assert auto_idle_seconds([], B, others=[1e6] * 29, name="a") == auto_idle_seconds([], B, name="a")


def test_the_first_gaps_of_a_cluster_that_nothing_teaches() -> None:
    """The drawn times depend only on the cluster and the gap, and cost about 1.6 times the best on average, for any
    gap length. Always waiting the longest time would cost twice the best."""
    drawn = [auto_idle_seconds([], B, name=name) for name in ("a", "b", "a")]
    assert drawn[0] == drawn[2] != drawn[1]
    for gap in (0.1 * B, 0.5 * B, B, 1e6):
        spent = sum(cost(gap, IdleTime(B, name=str(number)).seconds, B) for number in range(2000))
        assert spent <= 1.72 * 2000 * min(gap, B), gap


@pytest.mark.parametrize("gap", [B, 2 * B, 86_400.0])
def test_a_gap_of_the_same_length_each_night(gap: float) -> None:
    """Sixty nights of a hundred clusters cost at most 1.1 times the best."""
    spent = 0.0
    for name in range(100):
        learnt = IdleTime(B, name=str(name))
        for _ in range(60):
            spent += cost(gap, learnt.seconds, B)
            learnt.see(gap)
    assert spent <= 1.1 * 100 * 60 * B


def test_only_the_last_gaps_count() -> None:
    """A cluster's idle time is learned from its last 200 gaps only."""
    assert auto_idle_seconds([20.0] * 500 + [1e6] * REMEMBERED, B) == 0


@given(st.lists(st.floats(0, 3 * B), min_size=1, max_size=40))
@settings(max_examples=100)
def test_no_other_timeout_is_cheaper(gaps: list[float]) -> None:
    """The chosen timeout is the cheapest over the gaps, among all timeouts up to the cost of a start."""
    gaps = sorted(gaps)
    chosen = cheapest(gaps, B)
    assert 0 <= chosen <= B
    least = min(sum(cost(gap, t, B) for gap in gaps) for t in (0.0, B, *(g for g in gaps if g <= B), B / 2, B / 3))
    assert sum(cost(gap, chosen, B) for gap in gaps) <= least + 1e-6


@given(st.lists(st.one_of(st.floats(0, 2 * B), st.sampled_from([0.0, 1.0, B, B + 1, 1e6])), max_size=400))
@settings(max_examples=60)
def test_never_more_than_twice_hindsight_and_one_start(gaps: list[float]) -> None:
    """Any gaps cost at most twice the best in hindsight, plus one start."""
    spent, best = replay(gaps)
    assert spent <= 2 * best + B + 1e-6


def test_an_enemy_that_knows_the_rule_gains_no_more() -> None:
    """The bound also holds for gaps that end right after each timeout, the worst case for a rule that follows the
    past."""
    for seed in range(20):
        dice, learnt, spent, best = random.Random(seed), IdleTime(B), 0.0, 0.0
        for _ in range(600):
            gap = learnt.seconds + 0.01 if dice.random() < 0.9 else dice.choice([1.0, 1e6])
            spent, best = spent + cost(gap, learnt.seconds, B), best + min(gap, B)
            learnt.see(gap)
            assert spent <= 2 * best + B + 1e-6


def test_a_start_that_costs_nothing_is_refused() -> None:
    """A start cost of zero has no idle time and is refused."""
    with pytest.raises(ValueError, match="0 s"):
        IdleTime(0)


def test_gaps_of_nodes_and_of_the_pool(tmp_path: Path) -> None:
    """The node that was freed last is reused first; the pool is idle only while its cluster runs no job."""
    file = tmp_path / "jobs.csv"
    file.write_text("start,duration,nodes,cluster\n0,100,2,a\n100,50,1,a\n130,10,1,a\n400,10,2,a\n5,9000,1,b\n")
    first, second = sorted(idle_policy.by_cluster(idle_policy.read_jobs(file)), key=len, reverse=True)
    assert sorted(idle_policy.node_gaps(first)) == [0, 30, 250, 260]
    assert idle_policy.pool_gaps(first) == [250]
    assert idle_policy.node_gaps(second) == idle_policy.pool_gaps(second) == []


@pytest.mark.skipif(not idle_policy.PHILLY.is_file(), reason="the Philly trace is not on this machine")
def test_philly(capsys: pytest.CaptureFixture[str]) -> None:
    """On the Philly trace `auto` is within 1.2 of hindsight for nodes and 1.15 for pools, and beats each fixed time."""
    idle_policy.main(["--json"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(found) == {"node_gaps", "pool_gaps"}
    for kind, rows in found.items():
        assert list(rows) == ["180", "300", "600"]
        for row in rows.values():
            assert row["auto"] <= idle_policy.TARGETS[kind]
            assert kind != "node_gaps" or row["auto"] == min(row.values())
