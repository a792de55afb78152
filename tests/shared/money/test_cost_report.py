"""The books on fakes: closed days, and the cost report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from shared.clusters.lease_model import Lease
from shared.clusters.samples import Sample
from shared.kernel.errors import Impossible
from shared.kernel.memory import Memory
from shared.money.api import CostsQuery, get_costs
from shared.money.charge_costs import keep_books
from shared.money.model import Day, Row
from shared.money.policy import Policy
from shared.money.report import report
from shared.runs.intake import create
from tests.fakes.world import World
from tests.shared.money.spending import goes, nodes, now, paying_world, request, started, wait


@pytest.fixture
def world(tmp_path: Path) -> World:
    return paying_world(tmp_path)


def test_days_are_closed_once_and_add_up(world: World) -> None:
    """Past days come from the books as they were closed, and every report's month is the sum of its days."""
    run = started(world)
    wait(world, 30 * 60, 2)
    goes(world, run, "Completed")
    keep_books(world.system)
    before = get_costs(world.system, CostsQuery())["total"]["spent"]
    assert sorted(world.books.closed) == ["20260110"] or "20260110" in world.books.closed
    assert before == pytest.approx((30 * 60 + 5) * 60 * 2 * 0.001)
    found = get_costs(world.system, CostsQuery(by="project"))
    assert [line["key"] for line in found["lines"]] == ["vision"]
    assert sum(day["training"] for day in found["days"]) == pytest.approx(found["total"]["training"])
    assert [day["day"] for day in found["days"]] == ["2026-01-10", "2026-01-11"]


def test_a_report_says_up_to_when_it_counts(world: World) -> None:
    """Charges are cached for ten seconds. Until then `until` stays, and the dollars are those of that time."""
    started(world)
    wait(world, 30, 2)
    first = get_costs(world.system, CostsQuery())
    seconds = []
    for _ in range(3):
        world.clock.advance(5)
        again = get_costs(world.system, CostsQuery())
        seconds.append((datetime.fromisoformat(again["until"]) - datetime.fromisoformat(first["until"])).seconds)
        assert again["total"]["spent"] - first["total"]["spent"] == pytest.approx(seconds[-1] * 2 * 0.001)
    assert seconds == [0, 10, 10]


def test_the_books_read_each_day_of_a_cluster_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a run that ended within the last day and a day to close, one pass reads no day of samples twice."""
    run = started(world)
    wait(world, 30 * 60, 2)
    goes(world, run, "Completed")
    read, between = Counter[tuple[str, datetime]](), world.samples.between

    def counted(cluster: str, since: datetime, until: datetime) -> Iterator[Sample]:
        read[cluster, since] += 1
        return between(cluster, since, until)

    monkeypatch.setattr(world.samples, "between", counted)
    keep_books(world.system)
    assert world.books.closed
    assert set(read.values()) == {1}


def test_the_report_by_all_that_it_knows(world: World) -> None:
    """Every grouping has the same total; a lease belongs to its owner; savings are known per cluster and in total."""
    run = started(world)
    wait(world, 10, 2)
    goes(world, run, "Completed")
    wait(world, 60, 2)
    lease = Lease("l", "cpu-cluster", 2, "ann", "tuning", world.clock(), world.clock() + timedelta(hours=1))
    lease = replace(lease, owner_id="0a1b")
    world.leases.insert(lease)
    wait(world, 30, 2)
    nodes(world, 0)
    totals = set()
    for by in ("run", "cluster", "project", "owner"):
        found = get_costs(world.system, CostsQuery(by=by))
        totals.add(round(sum(line["spent"] for line in found["lines"]), 6))
        assert sum(line["spent"] for line in found["lines"]) == pytest.approx(found["total"]["spent"])
    assert totals == {round(105 * 60 * 2 * 0.001, 6)}
    owners = {line["key"]: line for line in get_costs(world.system, CostsQuery(by="owner"))["lines"]}
    assert owners["0a1b"]["name"] == "ann"
    assert owners["0a1b"]["lease"] == pytest.approx(30 * 60 * 2 * 0.001)
    (cluster,) = get_costs(world.system, CostsQuery(by="cluster"))["lines"]
    assert cluster["unexplained"] == pytest.approx(30 * 60 * 2 * 0.001)
    assert cluster["saved_default"] == pytest.approx((15 + 2) * 60 * 2 * 0.001 - cluster["spent"])
    assert cluster["saved_always_on"] == pytest.approx(2 * 105 * 60 * 0.001 - cluster["spent"]), "since its first node"
    assert cluster["idle_share"] == pytest.approx(90 / 105)


def test_an_owner_is_an_object_id(world: World) -> None:
    """Two owners of the same name are two lines. A renamed owner is one line with the latest name. A name without
    an id is its own line, even if the name equals someone's object id."""
    paid = [
        ("20260111", "anna", "0a1b"), ("20260110", "ann", "0a1b"), ("20260110", "ann", "2c3d"),
        ("20260110", "ann", ""), ("20260110", "0a1b", ""),
    ]  # fmt: skip
    days = [Day("c", day, (Row("training", "r", name, "", 60.0, 1.0, its),)) for day, name, its in paid]
    lines = [(line.key, line.name, line.spent) for line in report(days, "owner", world.clock()).lines]
    assert sorted(lines) == [("0a1b", "", 1.0), ("0a1b", "anna", 2.0), ("2c3d", "ann", 1.0), ("ann", "", 1.0)]
    assert [(line.key, line.name) for line in report(days, "run", world.clock()).lines] == [("r", "")]


def test_without_a_price_hours_are_shown_and_no_dollars(world: World) -> None:
    """Nodes without a known price are reported as hours, and the report says that the dollars omit them."""
    world.system = replace(world.system, money=Policy("eastus"))
    nodes(world, 3)
    wait(world, 20, 3)
    total = get_costs(world.system, CostsQuery())["total"]
    assert (total["spent"], total["unpriced_hours"], total["saved_default"]) == (0, pytest.approx(1), None)


def test_a_time_in_which_nobody_counted_is_unknown_and_costs_nothing(world: World) -> None:
    """With two nodes before and none after three days without the app, five minutes of two nodes are charged. The
    rest is unknown, up to the cluster's maximum of four, also once the days are closed."""
    nodes(world, 2)
    world.clock.advance(3 * 86_400)
    nodes(world, 0)
    wait(world, 10, 0)
    unknown = 4 * (3 * 24 - 5 / 60)
    for _ in range(2):
        total = get_costs(world.system, CostsQuery())["total"]
        assert total["spent"] == pytest.approx(5 * 60 * 2 * 0.001)
        assert total["unknown_hours"] == pytest.approx(unknown)
        (line,) = get_costs(world.system, CostsQuery(by="cluster"))["lines"]
        assert line["unknown_hours"] == pytest.approx(unknown)
        keep_books(world.system)
    assert {"20260110", "20260111", "20260112"} <= world.books.closed.keys()


def test_a_report_of_the_future_is_refused(world: World) -> None:
    """`since` is a time within the last year."""
    for since in ("2030-01-01", "2020-01-01", "yesterday"):
        with pytest.raises(Impossible, match="since is"):
            get_costs(world.system, CostsQuery(since=since))


def test_a_run_that_waited_for_days_is_found(world: World) -> None:
    """A run that waited longer than any time limit still pays for its training, and keeps its reservation."""
    run = create.create_run(world.system, request())
    world.run_until_idle()
    nodes(world, 0)
    world.clock.advance(9 * 86_400)
    keep_books(world.system)
    stored = world.books.account("vision")
    assert stored is not None
    assert stored.value.committed == pytest.approx(10.8)
    nodes(world, 2)
    goes(world, run, "Running")
    wait(world, 10, 2)
    goes(world, run, "Completed")
    nodes(world, 0)
    keep_books(world.system)
    cost = now(world, run).money.cost
    assert cost is not None
    assert cost.training == pytest.approx(1.2)


def test_a_day_whose_record_can_not_be_read_is_told(world: World) -> None:
    """The report names the day and the remedy instead of silently omitting the day; after the remedy the day is
    back at once."""
    nodes(world, 2)
    wait(world, 30, 2)
    nodes(world, 0)
    world.clock.advance(2 * 86_400)
    keep_books(world.system)
    (kept,) = world.books.closed["20260110"]
    whole = get_costs(world.system, CostsQuery())
    assert (whole["missing"], whole["total"]["spent"] > 0) == ([], True)

    world.books.closed["20260110"] = [Day("cpu-cluster", "20260110", problem="Column rows can't be read.")]
    world.system = replace(world.system, memory=Memory())  # another process, because this one has cached the day
    (gap,) = get_costs(world.system, CostsQuery())["missing"]
    assert (gap["day"], gap["cluster"]) == ("2026-01-10", "cpu-cluster")
    assert gap["why"] == "Column rows can't be read."
    assert "Delete the row '!closed' of the partition 'day!20260110' in the table 'money'" in gap["advice"]
    del world.books.closed["20260110"]  # as the advice says
    assert get_costs(world.system, CostsQuery())["total"] == whole["total"]
    keep_books(world.system)
    assert world.books.closed["20260110"] == [kept]

    world.books.closed["20260110"] = [Day("cpu-cluster", "20260110", problem="Column rows can't be read.")]
    world.clock.advance(35 * 86_400)
    world.system = replace(world.system, memory=Memory())
    (gap,) = get_costs(world.system, CostsQuery(since="2026-01-09"))["missing"]
    assert gap["advice"].startswith("Restore its row from a backup")
