"""Several pools: how likely each has nodes, where a run asks for nodes, and what a run knows of each pool."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.clusters.model import AllocationCode, AllocationError, Cluster
from shared.deadlines.changes_of_nodes import next_cluster
from shared.deadlines.holding import NodeRequest
from shared.deadlines.model import Date, DeadlineTerms
from shared.deadlines.pool import PERIOD, Pool, PoolPeriod, learn
from shared.deadlines.pools import Sighting, as_one, best_pool, prospect, seen
from shared.deadlines.sightings import with_sightings, words_of

HOUR, CHANGE = 3600.0, 720.0
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
HERE, THERE, THIRD = "here", "there", "third"


def dated(**sightings: Sighting) -> Date:
    due = DeadlineTerms(NOW + timedelta(hours=9), HOUR, HERE, (THERE, THIRD), "sure", change_seconds=300)
    date = Date(due)
    return replace(date, pace=replace(date.pace, sightings=sightings))


def at(minutes_ago: float, available: bool, lasted: float = 60.0) -> Sighting:
    end = NOW.timestamp() - minutes_ago * 60
    return Sighting(available, end - lasted * 60, end)


def test_a_sighting_loses_its_worth_with_time() -> None:
    """A pool just seen with nodes surely has them, and a pool seen without surely has none. A day later, both are
    nearly as likely as a pool that was never seen."""
    for available in (True, False):
        chances = [prospect(Pool(), at(ago, available), NOW.timestamp(), CHANGE).chance for ago in (0, 30, 180, 2880)]
        assert chances[0] == pytest.approx(float(available))
        assert chances == sorted(chances, reverse=available)
        never = prospect(Pool(), None, NOW.timestamp(), CHANGE).chance
        assert chances[-1] == pytest.approx(never, abs=0.05)
    assert 0.5 < never < 0.8


def test_nodes_that_lasted_are_worth_more() -> None:
    """Of two pools with nodes, the one that has had them longer is asked; an old spell without nodes is asked last."""
    pools = dict.fromkeys((HERE, THERE, THIRD), Pool())
    sightings = {HERE: at(0, True, 5), THERE: at(0, True, 300), THIRD: at(0, False, 300)}
    ranked = []
    while pools:
        best = best_pool(pools, sightings, NOW.timestamp(), CHANGE, PERIOD)
        ranked.append(best)
        pools.pop(best)
    assert ranked == [THERE, HERE, THIRD]


def test_the_history_of_a_pool_decides_between_unseen_ones() -> None:
    """A pool whose nodes come and go often is asked after one whose nodes last."""
    flickers = learn([PoolPeriod(index % 2 == 0, PERIOD) for index in range(400)])
    lasts = learn([PoolPeriod(True, 90 * HOUR, ended=False)])
    assert best_pool({HERE: flickers, THERE: lasts}, {}, 0.0, CHANGE, PERIOD) == THERE


def test_several_pools_are_one_that_comes_back_sooner() -> None:
    """The pool that the plan assumes for three clusters has nodes again sooner than each of them. One pool stays as it
    is."""
    one = as_one([Pool()] * 3, CHANGE)
    assert as_one([Pool()], CHANGE) == Pool()
    assert all(several > alone for several, alone in zip(one.comes[:4], Pool().comes[:4], strict=True))
    assert as_one([Pool()] * 3, CHANGE) == one, "the same for the same models"


def test_the_next_cluster_is_the_most_promising() -> None:
    """After a wait in vain, a run asks the cluster that others saw with nodes, not the next in the list. It leaves a
    cluster at once if Azure refused nodes there, and stays while neither is so."""
    date = dated(there=at(30, False), third=at(30, True))
    asked = NOW - timedelta(minutes=10)
    assert next_cluster(date, HERE, asked, NOW) == THIRD
    assert next_cluster(date, HERE, NOW - timedelta(minutes=4), NOW) == HERE
    refused = dated(here=at(0, False, 0))
    assert next_cluster(refused, HERE, NOW - timedelta(minutes=4), NOW) == THERE
    assert next_cluster(dated(here=at(60, False)), HERE, NOW - timedelta(minutes=4), NOW) == HERE, (
        "seen before the request"
    )
    everywhere = dated(here=at(0, False), there=at(5, False), third=at(200, False))
    assert next_cluster(everywhere, HERE, asked, NOW) == THIRD, "the one whose refusal is oldest"


NODES = Cluster(HERE, 0, 4, 120, nodes=1, running_nodes=1)
FULL = replace(NODES, nodes=4, running_nodes=4)
REFUSES = replace(NODES, nodes=0, running_nodes=0, errors=(AllocationError("none", AllocationCode.CAPACITY),))
OVER_QUOTA = replace(REFUSES, errors=(AllocationError("too many", AllocationCode.QUOTA),))


@pytest.mark.parametrize(
    ("cluster", "requests", "expected"),
    [
        (NODES, (), True),
        (FULL, (), None),
        (replace(FULL, running_nodes=3, idle_nodes=1), (), True),
        (REFUSES, (), False),
        (OVER_QUOTA, (), None),
        (FULL, (NodeRequest(HERE, NOW, answered=True),), True),
        (FULL, (NodeRequest(HERE, NOW - timedelta(minutes=2), answered=False),), None),
        (FULL, (NodeRequest(HERE, NOW - timedelta(minutes=10), answered=False),), False),
        (FULL, (NodeRequest(HERE, NOW, answered=False, lost=True),), False),
        (NODES, (NodeRequest(HERE, NOW, answered=False, lost=True),), True),
    ],
)
def test_what_a_check_sees(cluster: Cluster, requests: tuple[NodeRequest, ...], expected: bool | None) -> None:
    """Nodes of anybody show that a cluster gives nodes, unless it is full. A refusal for lack of capacity, a lost node
    and a long wait show that it gives none; a quota shows nothing of the pool."""
    sighting = with_sightings(dated(), {HERE: cluster}, requests, NOW).pace.sightings.get(HERE)
    assert (sighting.available if sighting else None) is expected


def test_a_spell_lasts_while_it_is_seen() -> None:
    """Repeated sightings of the same kind keep the begin of the spell; another kind begins a new one."""
    first = seen(None, True, 100.0)
    assert seen(first, True, 400.0) == Sighting(True, 100.0, 400.0)
    assert seen(first, False, 400.0) == Sighting(False, 400.0, 400.0)


def test_the_reason_says_what_is_known_of_the_cluster() -> None:
    assert words_of(None, THERE, NOW) == "No run has tried there yet."
    assert words_of(at(20, True), THERE, NOW) == "there had nodes when last seen, 20 min ago."
    assert words_of(at(0, False), THERE, NOW) == "there had none when last seen, now."
