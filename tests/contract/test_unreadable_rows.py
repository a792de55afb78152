"""Unreadable rows in every table that timers and lists read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from shared.adapters.storage.account import StorageClients
from shared.adapters.tables.decision_table import TableDecisions
from shared.adapters.tables.lease_table import TableLeases
from shared.adapters.tables.money_table import TableBooks
from shared.adapters.tables.removal_table import TableRemovals
from shared.adapters.tables.sample_table import TableSamples
from shared.clusters.lease_model import Lease
from shared.clusters.model import Decision
from shared.clusters.samples import Sample
from shared.money.model import Day, Row
from shared.money.prices import Price
from shared.removals.model import Removal, RemovalKind

NOW = datetime(2026, 1, 31, 23, 50, 5, tzinfo=UTC)
Read = Callable[[], int]


def leases(tables: StorageClients) -> tuple[str, Read]:
    kept = TableLeases(tables.table)
    for name in ("a", "b"):
        kept.insert(Lease(f"20260131T235005-{name}", "c", 1, "ada", "why", NOW, NOW + timedelta(hours=1)))
    return "nodes", lambda: len(kept.open()) + len(list(kept.made_between(NOW, NOW + timedelta(seconds=1))))


def removals(tables: StorageClients) -> tuple[str, Read]:
    kept = TableRemovals(tables.table)
    for name in ("a", "b"):
        kept.put(Removal(RemovalKind.RUN, name, NOW))
    return "asked_at", lambda: len(kept.newest())


def samples(tables: StorageClients) -> tuple[str, Read]:
    kept = TableSamples(tables.table)
    for second in range(2):
        kept.record(Sample("c", NOW + timedelta(seconds=second)))
    return "idle", lambda: len(list(kept.between("c", NOW, NOW + timedelta(minutes=1))))


def prices(tables: StorageClients) -> tuple[str, Read]:
    kept = TableBooks(tables.table)
    kept.keep_prices([Price("Standard_A", "dedicated", "r", 1.0, "x"), Price("Standard_B", "dedicated", "r", 2.0, "x")])
    return "dollars", lambda: len(kept.prices())


def decisions(tables: StorageClients) -> tuple[str, Read]:
    kept = TableDecisions(tables.table)
    for second in range(2):
        kept.record(Decision("c", "keep", f"code{second}", "why", NOW + timedelta(seconds=second)), None)
    return "at", lambda: len(kept.history("c")) + (kept.latest("c") is not None)


@pytest.mark.parametrize(
    ("made", "name", "whole"),
    [
        (leases, "leases", 4),
        (removals, "removals", 2),
        (samples, "samples", 2),
        (prices, "money", 2),
        (decisions, "sweeps", 3),
    ],
)
def test_a_row_that_can_not_be_read_stops_nobody(
    tables: StorageClients, made: Callable[[StorageClients], tuple[str, Read]], name: str, whole: int
) -> None:
    """Lists skip an unreadable row and return all others: a sweep, the books and people's queries continue."""
    column, read = made(tables)
    assert read() == whole
    table = tables.table.get_table_client(name)
    for broken, row in enumerate([row for row in table.query_entities("") if column in row], 1):
        table.update_entity({"PartitionKey": row["PartitionKey"], "RowKey": row["RowKey"], column: "[["})
        assert read() == whole - broken
    assert read() == 0


def test_a_closed_day_that_can_not_be_read_is_there_with_its_problem(tables: StorageClients) -> None:
    """Money is never dropped silently: the cluster's day stays, without charges, and reports its problem."""
    kept = TableBooks(tables.table)
    kept.close_day("20260131", [Day("gpu", "20260131", (Row("idle", "", "", "", 60.0, 1.0),)), Day("cpu", "20260131")])
    row = {"PartitionKey": "day!20260131", "RowKey": "gpu", "rows": "[["}
    tables.table.get_table_client("money").update_entity(row)
    cpu, gpu = kept.day("20260131") or []
    assert (cpu.cluster, cpu.problem) == ("cpu", "")
    assert (gpu.cluster, gpu.day, gpu.rows) == ("gpu", "20260131", ())
    assert gpu.problem.startswith("Column rows can't be read")
