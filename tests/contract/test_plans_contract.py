"""The store of plans, in memory and in tables."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.adapters.agents.stores import TablePlans
from shared.adapters.storage.account import StorageClients
from shared.agents.plans import KEPT, SubmissionPlan, SubmissionPlans
from tests.fakes.agents import FakePlans

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.fixture(params=["memory", "table"])
def plans(request: pytest.FixtureRequest) -> SubmissionPlans:
    if request.param == "memory":
        return FakePlans()
    clients: StorageClients = request.getfixturevalue("own_clients")
    return TablePlans(clients.table)


def a_plan(name: str, caller: str, made_at: datetime = NOON) -> SubmissionPlan:
    body = {"trainer": "mnist", "parameters": {"lr": 0.1}, "tags": {"a": "☃/#?"}}
    return SubmissionPlan(name, caller, "create_run", made_at, {"model": "digits"}, body, 0.25)


def test_only_its_maker_reads_a_plan(plans: SubmissionPlans) -> None:
    """A plan comes back as it was stored; another caller or another id finds no plan."""
    maker, other = f"keys {uuid.uuid4().hex}/#?", f"entra {uuid.uuid4().hex}"
    made = a_plan("plan-1", maker)
    assert plans.get(maker, "plan-1") is None
    plans.put(made)
    assert plans.get(maker, "plan-1") == made
    assert plans.get(other, "plan-1") is None
    assert plans.get(maker, "plan-2") is None
    submitted = replace(made, submitted_at=NOON, result={"run": "run-1", "state": "received"})
    plans.put(submitted)
    assert plans.get(maker, "plan-1") == submitted


def test_a_new_plan_removes_old_ones(plans: SubmissionPlans) -> None:
    """A caller's plans older than a day are deleted with the caller's next plan; other callers' plans stay."""
    maker, other = f"keys {uuid.uuid4().hex}", f"keys {uuid.uuid4().hex}"
    for caller in (maker, other):
        plans.put(a_plan("plan-old", caller))
    plans.put(a_plan("plan-day", maker, NOON + KEPT))
    assert plans.get(maker, "plan-old") is not None
    plans.put(a_plan("plan-new", maker, NOON + KEPT + timedelta(seconds=1)))
    assert plans.get(maker, "plan-old") is None
    assert plans.get(maker, "plan-day") is not None
    assert plans.get(other, "plan-old") is not None
