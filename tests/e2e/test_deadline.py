"""A run with a date on the local cloud: two clusters of two tiers, nodes that are taken away, and the date kept."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.error
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from emulators.process import wait_for
from local.cloud import Cloud, Options
from tests.e2e.desk import ROOT, Desk
from tests.e2e.lab import Lab

CLUSTERS = """
clusters:
  cpu-cluster: {size: Standard_D2s_v3, max: 2, idle: 60}
  sure: {size: Standard_D2s_v3, max: 2, idle: 60, tier: dedicated}
"""
ROUTES = """
limits: {cluster: cpu-cluster, clusters: any, max_nodes: 2}
routes: {mnist: {trainer: mnist, cluster: cpu-cluster}}
"""
MONEY = """
region: eastus
prices:
- {vm_size: Standard_D2s_v3, tier: low_priority, dollars: 36}
- {vm_size: Standard_D2s_v3, tier: dedicated, dollars: 108}
"""
SECONDS = 30  # of work, one a step; each is in the checkpoint before the next begins
WORK = """
import json, pathlib, sys, time
done, rows = pathlib.Path(sys.argv[1], 'done'), pathlib.Path(sys.argv[2], 'metrics.jsonl')
first = int(done.read_text()) if done.exists() else 0
for step in range(first, int(sys.argv[3])):
    time.sleep(1)
    with rows.open('a') as file:
        file.write(json.dumps({'time': time.time(), 'step': step, 'done': (step + 1) / int(sys.argv[3])}) + chr(10))
    done.write_text(str(step + 1))
"""
PATIENCE = 400.0


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    for name, text in (("clusters", CLUSTERS), ("routes", ROUTES), ("money", MONEY)):
        (tmp_path / f"{name}.yaml").write_text(text)
    options = Options(
        routes=tmp_path / "routes.yaml",
        node_start_seconds=2,
        preemption_grace_seconds=0.1,
        app_env={"TRAINYARD_MONEY": str(tmp_path / "money.yaml")},
    )
    with Cloud.start(tmp_path / "cloud", options) as cloud:
        yield Desk(cloud, tmp_path)


def job(folder: Path, seconds: int) -> str:
    python = f"python -c \"exec(bytes.fromhex('{WORK.encode().hex()}').decode())\""
    file = folder / f"work-{seconds}.json"
    words = {
        "command": f"{python} ${{{{outputs.checkpoints}}}} ${{{{outputs.metrics}}}} {seconds}",
        "outputs": {name: {"type": "uri_folder"} for name in ("checkpoints", "metrics")},
        "environment": "azureml:trainyard@latest",
        "experiment_name": "work",
        "compute": "azureml:cpu-cluster",
    }
    file.write_text(json.dumps(words), "utf-8")
    return str(file)


@pytest.mark.timeout(900)
def test_the_date_is_kept_though_every_node_is_taken(desk: Desk, tmp_path: Path) -> None:
    """Low-priority nodes are taken every few seconds; the run moves to dedicated ones in time, goes on from its
    checkpoint, is done by its date, and costs what the books say of both clusters."""
    desk.type("clusters", "apply")
    first = desk.ask("submit", "--job", job(tmp_path, 1))["run"]
    wait_for(lambda: desk.ask("show", first)["archived_at"], PATIENCE, "a run that shows what new nodes take", 1)
    asked = ("submit", "--job", job(tmp_path, SECONDS), "--takes", "45s", "--within")

    refused = desk.type(*asked, "30s", expect=1)
    assert "The earliest date is" in refused.stderr

    def promised() -> dict[str, Any] | None:
        told = attempt(desk, *asked, "110s", "--dry-run", "--json")
        return json.loads(told.stdout)["date"] if told.returncode == 0 else None

    date = wait_for(promised, PATIENCE, "a promise, once the first run is among the newest", 3)
    assert date["best"] < date["expected"] < date["worst"]
    name = desk.ask(*asked, "110s")["run"]
    run = follow(desk, Lab(desk.cloud, tmp_path), name)

    assert run["state"] == "completed", run["reason"]
    ended = next(moment["at"] for moment in run["history"] if moment["state"] == "completed")
    assert datetime.fromisoformat(ended) <= datetime.fromisoformat(run["done_by"])
    assert any("goes on from its checkpoints on sure" in moment["why"] for moment in run["history"])
    steps = [step for step, _, _ in desk.ask("metrics", name)["series"]["done"]]
    assert steps == sorted(steps)
    assert steps[-1] == SECONDS - 1
    line = wait_for(lambda: settled(desk, name), PATIENCE, "the books to agree with the run's record", 2)
    assert date["best"] * 0.5 < line["training"] < 2 * date["worst"]


def settled(desk: Desk, name: str) -> dict[str, Any] | None:
    """What the books say that the run cost, once its record says the same."""
    lines: dict[str, dict[str, Any]] = {line["key"]: line for line in desk.ask("cost", "--by", "run")["lines"]}
    line, cost = lines.get(name), desk.ask("show", name)["cost"]
    same = line and cost and all(abs(line[kind] - cost[kind]) < 0.01 for kind in ("training", "allocation", "idle"))
    return line if same else None


def attempt(desk: Desk, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run a command that may fail."""
    command = [sys.executable, "-m", "cli", *argv]
    return subprocess.run(command, cwd=ROOT, env=desk.env, capture_output=True, encoding="utf-8", timeout=100)


def follow(desk: Desk, lab: Lab, name: str) -> dict[str, Any]:
    """Take each low-priority node of the run as soon as it has one, until the run is archived."""
    cluster = f"{desk.cloud.azureml}/control/clusters/cpu-cluster"

    def look() -> dict[str, Any] | None:
        for node in lab.control(cluster)["nodes"]:
            if node["job"] and node["job"].startswith(name):
                with contextlib.suppress(urllib.error.HTTPError):  # it has gone by itself
                    lab.control(f"{cluster}/preempt", {"node": node["index"], "job": "queued", "notice": 0})
        run: dict[str, Any] = lab.get(f"runs/{name}")
        return run if run["archived_at"] else None

    found: dict[str, Any] = wait_for(look, PATIENCE, f"run {name} to be archived", 2)
    return found
