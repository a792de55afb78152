"""The contract of shared.clusters.ports.SweepLog, tested on the fake and on Azure Table Storage, and the table of
assets."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.adapters.storage.account import StorageClients
from shared.adapters.tables.asset_table import TableAssets
from shared.adapters.tables.decision_table import TableDecisions
from shared.clusters.model import Decision
from shared.clusters.ports import DecisionLog
from tests.fakes.ports import FakeAssets, FakeDecisions

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@pytest.fixture(params=["fake", "tables", "own_tables"])
def sweeps(request: pytest.FixtureRequest) -> DecisionLog:
    if request.param == "fake":
        return FakeDecisions()
    tables: StorageClients = request.getfixturevalue(request.param)
    return TableDecisions(tables.table)


@pytest.fixture(params=["fake", "tables", "own_tables"])
def assets(request: pytest.FixtureRequest) -> TableAssets | FakeAssets:
    if request.param == "fake":
        return FakeAssets()
    tables: StorageClients = request.getfixturevalue(request.param)
    return TableAssets(tables.table)


def decision(code: str, minutes: float, cluster: str = "cpu-cluster", action: str = "keep") -> Decision:
    at = NOW + timedelta(minutes=minutes)
    return Decision(cluster, action, code, f"because {code}", at, at - timedelta(minutes=1) if code == "idle" else None)


def test_nothing_is_known_of_a_cluster_that_was_never_swept(sweeps: DecisionLog) -> None:
    """`latest` is None and `history` is empty, before the first record and for another cluster."""
    assert sweeps.latest("cpu-cluster") is None
    assert sweeps.history("cpu-cluster") == []
    sweeps.record(decision("busy", 0), None)
    assert sweeps.latest("gpu") is None


def test_latest_is_the_last_one_and_history_holds_what_changed(sweeps: DecisionLog) -> None:
    """Every decision becomes the latest; a decision with the previous action and code is not added to the history."""
    decisions = [decision("busy", 0), decision("busy", 5), decision("idle", 10), decision("idle", 15)]
    for one in decisions:
        sweeps.record(one, sweeps.latest("cpu-cluster"))
    assert sweeps.latest("cpu-cluster") == decisions[-1]
    assert sweeps.history("cpu-cluster") == [decisions[2], decisions[0]]
    changed = decision("idle", 20, action="to-zero")
    sweeps.record(changed, decisions[-1])
    assert sweeps.history("cpu-cluster") == [changed, decisions[2], decisions[0]]
    assert sweeps.history("cpu-cluster", limit=2) == [changed, decisions[2]]


def test_clusters_have_logs_of_their_own(sweeps: DecisionLog) -> None:
    """A decision about one cluster is not in another's log, also if one name is a prefix of the other."""
    sweeps.record(decision("busy", 0, "cpu"), None)
    sweeps.record(decision("idle", 0, "cpu-2"), None)
    assert [d.code for d in sweeps.history("cpu")] == ["busy"]
    assert sweeps.latest("cpu-2") == decision("idle", 0, "cpu-2")


def test_an_asset_is_found_by_kind_and_digest(assets: TableAssets | FakeAssets) -> None:
    """`get` returns the last value that `put` wrote for this kind and digest only; putting twice is putting once."""
    assert assets.get("code", "0" * 64) is None
    assets.put("code", "0" * 64, "azureml:trainyard-0:1")
    assets.put("code", "0" * 64, "azureml:trainyard-0:1")
    assert assets.get("code", "0" * 64) == "azureml:trainyard-0:1"
    assert assets.get("environment", "0" * 64) is None


def test_a_decision_comes_back_whole(sweeps: DecisionLog) -> None:
    """Findings, the new and the old minimum, and the mark of a dry run are kept, also if absent."""
    full = replace(
        decision("idle", 0, action="to-zero"), min_nodes=0, replaces=2, findings=("a", 'b "c"'), dry_run=True
    )
    for one in (full, decision("busy", 5)):
        sweeps.record(one, None)
        assert sweeps.latest("cpu-cluster") == one


def test_one_look_is_claimed_at_a_time(sweeps: DecisionLog) -> None:
    """A check of a cluster is claimed once within its seconds, independent of other clusters; the claim does not
    show in other reads."""
    assert sweeps.claim_check("cpu-cluster", NOW, 5)
    assert not sweeps.claim_check("cpu-cluster", NOW + timedelta(seconds=4.9), 5)
    assert sweeps.claim_check("gpu", NOW, 5)
    assert sweeps.claim_check("cpu-cluster", NOW + timedelta(seconds=5), 5)
    assert sweeps.latest("cpu-cluster") is None
    assert sweeps.history("cpu-cluster") == []
