"""The forecast of when waiting runs start."""

from __future__ import annotations

import pytest

from shared.clusters.forecast import Claim, Forecast, forecast, usual_start
from shared.clusters.model import Cluster


def works(run: str, nodes: int, seconds: float | None) -> Claim:
    return Claim(run, nodes, begun=True, seconds=seconds)


def waits(run: str, nodes: int, seconds: float | None = 60.0, waited: float = 0.0) -> Claim:
    return Claim(run, nodes, begun=False, seconds=seconds, waited=waited)


def cluster(busy: int = 0, idle: int = 0) -> Cluster:
    return Cluster("c", 0, 4, 120, busy_nodes=busy, idle_nodes=idle)


@pytest.mark.parametrize(
    ("now", "claims", "start", "expected"),
    [
        pytest.param(cluster(), [waits("a", 2)], 30.0, {"a": 30.0}, id="new nodes take as long as they mostly do"),
        pytest.param(cluster(), [waits("a", 2, waited=40)], 30.0, {"a": -10.0}, id="what is late stays where it was"),
        pytest.param(cluster(), [waits("a", 2)], None, {}, id="nobody has seen new nodes"),
        pytest.param(cluster(idle=2), [waits("a", 2)], None, {"a": 0.0}, id="idle nodes are there"),
        pytest.param(
            cluster(busy=4),
            [works("a", 4, 100.0), waits("b", 3), waits("c", 2), waits("d", 4, None)],
            30.0,
            {"b": 100.0, "c": 160.0, "d": 220.0},
            id="one after the other",
        ),
        pytest.param(
            cluster(busy=3),
            [works("a", 3, 100.0), waits("b", 2), waits("c", 1)],
            30.0,
            {"b": 100.0, "c": 100.0},
            id="in their order, though a smaller one would fit",
        ),
        pytest.param(cluster(busy=4), [works("a", 4, None), waits("b", 1)], 30.0, {}, id="of unknown length"),
        pytest.param(cluster(busy=3), [works("a", 1, 50.0), waits("b", 2)], 30.0, {"b": 80.0}, id="a stranger's nodes"),
        pytest.param(cluster(busy=4), [works("a", 1, 50.0), waits("b", 2)], 30.0, {}, id="too many of a stranger"),
    ],
)
def test_a_waiting_run_begins_when_those_before_it_are_done(
    now: Cluster, claims: list[Claim], start: float | None, expected: dict[str, float]
) -> None:
    """Runs start in order as nodes become free; there is no forecast without the facts for it."""
    assert forecast(now, claims, start).seconds == expected


def test_a_run_behind_runs_of_unknown_length_begins_after_them() -> None:
    """Where no time is known because running or earlier runs have an unknown length, the forecast names these runs for
    each run that needs their nodes; it names none while nodes are free, or where the nodes work for no run."""
    behind = [works("a", 2, None), works("b", 2, None), waits("c", 3), waits("d", 1)]
    assert forecast(cluster(busy=4), behind, 30.0) == Forecast({}, {"c": ("a", "b"), "d": ("a", "b")})
    first = [works("a", 2, 100.0), waits("b", 4, None), waits("c", 1)]
    assert forecast(cluster(busy=2), first, 30.0) == Forecast({"b": 130.0}, {"c": ("b",)})
    assert forecast(cluster(), [works("a", 1, None), waits("b", 2)], None) == Forecast({}, {})
    assert forecast(cluster(busy=4), [waits("b", 2)], 30.0) == Forecast({}, {})


def test_what_new_nodes_take_is_learnt_from_waits_that_were_no_queue() -> None:
    """The start time of new nodes is the first quartile of the newest waits, because longer waits were mostly
    queueing."""
    assert usual_start([200.0, 100.0, 5.0, 4.0]) == 5.0
    assert usual_start([]) is None
