"""Money on the local cloud: a run's greatest and actual cost, a budget that refuses, a budget that cancels, and the
report."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import pytest

from emulators.process import wait_for
from local.cloud import Cloud, Options
from tests.e2e.desk import Desk

MONEY = """
region: eastus
prices:
- {vm_size: Standard_D2s_v3, tier: low_priority, dollars: 720}  # 0.20 a second
budgets:
  small: {month: 50}
  steady: {month: 10000, run: 3, grace_seconds: 0}
standing: {registry: 5}
"""
TALK = "import time; [print('second', i, flush=True) or time.sleep(1) for i in range(600)]"
PATIENCE = 150.0


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("desk")
    (folder / "money.yaml").write_text(MONEY)
    options = Options(node_start_seconds=6, app_env={"TRAINYARD_MONEY": str(folder / "money.yaml")})
    with Cloud.start(folder / "cloud", options) as cloud:
        yield Desk(cloud, folder)


@pytest.fixture(scope="module")
def ended(desk: Desk) -> dict[str, Any]:
    """A run that exceeds its project's limit per run, after its end and after its nodes are gone."""
    run = desk.ask("submit", "--job", desk.job("talk.json", TALK), "--project", "steady", "--timeout", "10m")["run"]

    def look() -> Any:
        found = desk.ask("show", run)
        nodes = sum(cluster["nodes"] for cluster in desk.ask("clusters"))
        return found if found["state"] == "canceled" and found["cost"] and nodes == 0 else None

    wait_for(look, PATIENCE, f"run {run} to be canceled by its budget", 2)
    found: dict[str, Any] = desk.ask("show", run)
    return found


def test_a_submission_says_what_it_may_cost(desk: Desk) -> None:
    """Before anything starts, a dry run shows the greatest cost in words and as JSON, and the budget that pays."""
    job = desk.job("talk.json", TALK)
    summary = desk.type("submit", "--job", job, "--project", "small", "--timeout", "1m", "--dry-run", expect=1).stdout
    told = " ".join(summary.split())
    assert "cost of project small at most $372.00" in told
    assert "not now: The run may cost $372.00. Project small has $50.00 left" in told
    plan = desk.ask("submit", "--job", job, "--timeout", "1m", "--dry-run")
    assert plan["cost"]["greatest"] == pytest.approx((60 + 1800) * 0.2)


def test_a_budget_refuses(desk: Desk) -> None:
    """A run whose greatest cost exceeds the budget is refused with the reason; an unknown project is refused with
    the known ones."""
    job = desk.job("talk.json", TALK)
    refused = desk.type("submit", "--job", job, "--project", "small", "--timeout", "1m", expect=1)
    assert "The run may cost $372.00. Project small has $50.00 left" in refused.stderr
    assert (
        "no project 'smal'. Did you mean 'small'?"
        in desk.type("submit", "--job", job, "--project", "smal", expect=1).stderr
    )


def test_a_budget_cancels(ended: dict[str, Any]) -> None:
    """A run that reaches its project's limit per run is canceled and records that reason."""
    assert "all of its $3.00" in ended["reason"]
    assert ended["greatest_cost"] == pytest.approx((600 + 1800) * 0.2)


def test_the_run_s_cost_is_split(desk: Desk, ended: dict[str, Any]) -> None:
    """After its nodes are gone, a run shows the cost of training, start and idle tail; the report agrees."""

    def settled() -> Any:
        lines = {line["key"]: line for line in desk.ask("cost", "--by", "run", "--since", "1d")["lines"]}
        line, cost = lines[ended["run"]], desk.ask("show", ended["run"])["cost"]
        same = all(abs(line[kind] - cost[kind]) < 0.01 for kind in ("training", "allocation", "idle"))
        return line if same else None

    line = wait_for(settled, PATIENCE, "the run's record to have all that it cost", 1)
    assert line["training"] >= 1.0
    assert line["allocation"] > 0, "its node starts for six seconds: all of them, or what is left of them after a count"
    parts = line["training"] + line["allocation"] + line["idle"]
    assert parts == pytest.approx(line["spent"], abs=0.01)
    assert ": training $" in desk.type("show", ended["run"]).stdout


def test_the_report(desk: Desk, ended: dict[str, Any]) -> None:
    """`cost` groups by any key, draws, writes CSV, and shows the budgets and the idle cost."""
    totals = [desk.ask("cost", "--by", by)["total"]["spent"] for by in ("run", "cluster", "project", "owner")]
    assert max(totals) - min(totals) < 0.4  # a sweep may run between the calls
    told = desk.type("cost", "--png", "days.png").stdout
    assert "Budget of small: $0.00 of $50.00 this month." in told
    assert "registry: $" in told
    assert (desk.folder / "days.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(io.StringIO(desk.type("cost", "--by", "project", "--csv").stdout)))
    assert {row["project"] for row in rows} >= {"steady"}
    assert float(next(row for row in rows if row["project"] == "steady")["spent"]) >= 3
    assert ended["project"] == "steady"
