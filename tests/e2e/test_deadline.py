"""A run with a deadline on the local cloud: two clusters of two tiers, preempted nodes, and the deadline met."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
import urllib.error
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks._spot import read_windows
from benchmarks._spot_picture import Moment, draw_moments
from benchmarks.deadline import TRACES
from emulators.process import wait_for
from local.cloud import Cloud, Options
from shared.elastic.model import DEDICATED_FROM
from tests.e2e.desk import ROOT, Desk
from tests.e2e.lab import Lab

CLUSTERS = """
clusters:
  cpu-cluster: {size: Standard_D2s_v3, max: 2, idle: 60}
  sure: {size: Standard_D2s_v3, max: 2, idle: 60, tier: dedicated}
"""
ROUTES = """
limits: {cluster: cpu-cluster, clusters: any, max_nodes: 2}
routes:
  mnist: {trainer: mnist, cluster: cpu-cluster}
  team: {trainer: cifar_elastic, cluster: cpu-cluster, nodes: {min: 1, max: 2}, clusters: [sure]}
"""
PRICES = {"cpu-cluster": 36.0, "sure": 108.0}
MONEY = f"""
region: eastus
prices:
- {{vm_size: Standard_D2s_v3, tier: low_priority, dollars: {PRICES["cpu-cluster"]:g}}}
- {{vm_size: Standard_D2s_v3, tier: dedicated, dollars: {PRICES["sure"]:g}}}
"""
WINDOW = ("us-west-2a_v100_8", 952, 393)  # nodes for 50 minutes, none for 90, again for 30, none for 10, then again
TEAM_SECONDS, SPARE_SECONDS = 170, 200  # work on both nodes, and extra time until the deadline
A_STEP = 16.0  # seconds for ten minutes of the trace
PICTURE = ROOT / ".trainyard" / "deadline" / "run.png"
NO_NODES = {"code": "AllocationFailed", "message": "There is no such capacity now."}
SECONDS = 30  # of work, one per step; each step is in the checkpoint before the next begins
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
# The same work by a team: each node does its share of each second, and the first node records it.
TEAM = """
import json, os, pathlib, sys, time
done, rows, last = pathlib.Path(sys.argv[1], 'done'), pathlib.Path(sys.argv[2], 'metrics.jsonl'), int(sys.argv[3])
step = int(done.read_text()) if done.exists() else 0
while step < last:
    time.sleep(2 / int(os.environ['WORLD_SIZE']))
    if os.environ['RANK'] == '0':
        step += 1
        with rows.open('a') as file:
            file.write(json.dumps({'time': time.time(), 'step': step - 1, 'done': step / last}) + chr(10))
        done.with_suffix('.new').write_text(str(step))
        done.with_suffix('.new').replace(done)
    else:
        step = int(done.read_text()) if done.exists() else 0
"""
PATIENCE = 500.0


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    tmp_path = tmp_path_factory.mktemp("desk")
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


def python(code: str) -> str:
    return f"python -c \"exec(bytes.fromhex('{code.encode().hex()}').decode())\""


def job(folder: Path, seconds: int) -> str:
    file = folder / f"work-{seconds}.json"
    words = {
        "command": f"{python(WORK)} ${{{{outputs.checkpoints}}}} ${{{{outputs.metrics}}}} {seconds}",
        "outputs": {name: {"type": "uri_folder"} for name in ("checkpoints", "metrics")},
        "environment": "azureml:trainyard@latest",
        "experiment_name": "work",
        "compute": "azureml:cpu-cluster",
    }
    file.write_text(json.dumps(words), "utf-8")
    return str(file)


def team_drop(lab: Lab, name: str, seconds: int, **tags: str) -> str:
    """Drop the data of an elastic run with this many seconds of work, and return the run's name."""
    launch = f"python -m elastic.launch --no-python {python(TEAM)}"
    command = f"{launch} ${{{{outputs.checkpoints}}}} ${{{{outputs.metrics}}}} {seconds}"
    lab.upload(
        f"team/{name}", {"data": name.encode(), "job.json": json.dumps({"command": command, "tags": tags}).encode()}
    )
    wait_for(lambda: lab.drop(f"team/{name}")["state"] in ("sealed", "rejected"), PATIENCE, f"team/{name} to close", 1)
    drop = lab.drop(f"team/{name}")
    assert drop["run"], drop
    return str(drop["run"])


@pytest.mark.timeout(900)
def test_the_date_is_kept_though_every_node_is_taken(desk: Desk, tmp_path: Path) -> None:
    """Low-priority nodes are preempted every few seconds. The run moves to dedicated nodes in time, resumes from
    its checkpoint, ends by its deadline, and costs what the books record for both clusters."""
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
    assert datetime.fromisoformat(ended) <= datetime.fromisoformat(run["date"]["done_by"])
    assert any("continues from its checkpoints on sure" in moment["why"] for moment in run["history"])
    steps = [step for step, _, _ in desk.ask("metrics", name)["series"]["done"]]
    assert steps == sorted(steps)
    assert steps[-1] == SECONDS - 1
    line = wait_for(lambda: settled(desk, name), PATIENCE, "the books to agree with the run's record", 2)
    assert date["best"] * 0.5 < line["training"] < 2 * date["worst"]


def settled(desk: Desk, name: str) -> dict[str, Any] | None:
    """The cost of the run in the books, once the run's record agrees."""
    lines: dict[str, dict[str, Any]] = {line["key"]: line for line in desk.ask("cost", "--by", "run")["lines"]}
    line, cost = lines.get(name), desk.ask("show", name)["cost"]
    same = line and cost and all(abs(line[kind] - cost[kind]) < 0.01 for kind in ("training", "allocation", "idle"))
    return line if same else None


def attempt(desk: Desk, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run a command that may fail."""
    command = [sys.executable, "-m", "cli", *argv]
    return subprocess.run(command, cwd=ROOT, env=desk.env, capture_output=True, encoding="utf-8", timeout=100)


def follow(desk: Desk, lab: Lab, name: str) -> dict[str, Any]:
    """Preempt each low-priority node of the run as soon as it has one, until the run is archived."""
    cluster = f"{desk.cloud.azureml}/control/clusters/cpu-cluster"

    def look() -> dict[str, Any] | None:
        for node in lab.control(cluster)["nodes"]:
            if node["job"] and node["job"].startswith(name):
                with contextlib.suppress(urllib.error.HTTPError):  # the node is already gone
                    lab.control(f"{cluster}/preempt", {"node": node["index"]})
        run: dict[str, Any] = lab.get(f"runs/{name}")
        return run if run["archived_at"] else None

    found: dict[str, Any] = wait_for(look, PATIENCE, f"run {name} to be archived", 2)
    return found


@pytest.mark.timeout(1200)
@pytest.mark.skipif(not TRACES.is_file(), reason=f"needs {TRACES.name} in ../shared, no part of this")
def test_an_elastic_run_keeps_its_date_on_both_tiers(desk: Desk, tmp_path: Path) -> None:
    """Spot nodes leave and return as in a real pool, many times as fast. Dedicated nodes stand in for them, and
    leave when the spot nodes are back. The run ends by its deadline, and the books agree with an observer of the
    nodes."""
    desk.type("clusters", "apply")
    lab = Lab(desk.cloud, tmp_path)
    usual = team_drop(lab, "usual", 3)
    wait_for(lambda: lab.get(f"runs/{usual}")["archived_at"], PATIENCE, "a run that shows what new nodes take", 1)
    date = {"within": f"{TEAM_SECONDS + SPARE_SECONDS}s", "takes": f"{TEAM_SECONDS + 60}s"}
    words = ("submit", "--job", job(tmp_path, 1), "--within", date["within"], "--takes", date["takes"], "--dry-run")
    wait_for(lambda: attempt(desk, *words).returncode == 0, PATIENCE, "a promise, once that run is among the newest", 3)
    name = team_drop(lab, "dated", TEAM_SECONDS, **date)
    seen = play_trace(lab, name, A_STEP)

    run = lab.get(f"runs/{name}")
    assert run["state"] == "completed", run["reason"]
    ended = next(moment["at"] for moment in run["history"] if moment["state"] == "completed")
    assert datetime.fromisoformat(ended) <= datetime.fromisoformat(run["date"]["done_by"])
    assert run["date"]["late_since"] is None, "what starting and starting over takes is not taken for larger work"
    tiers = [(bool(moment.low), bool(moment.dedicated)) for moment in seen]
    without = tiers.index((False, True))
    assert (True, False) in tiers[:without], "it began on low-priority nodes"
    assert (True, False) in tiers[without:], "and went back to them, from dedicated ones alone"
    shares = [moment.share for moment in seen]
    assert shares == sorted(shares)
    assert any(0 < share < 1 for share in shares), "its trainer tells how much is done"
    line = wait_for(lambda: settled(desk, name), PATIENCE, "the books to agree with the run's record", 2)
    booked = line["training"] + line["allocation"] + line["idle"]
    assert booked == pytest.approx(seen[-1].dollars, rel=0.3), "what was seen of the nodes, at their prices"
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    left = (datetime.fromisoformat(run["date"]["done_by"]) - datetime.fromisoformat(run["created_at"])).total_seconds()
    draw_moments(seen, left, run["date"]["takes_seconds"], PRICES["sure"] * 2, PICTURE)


def play_trace(lab: Lab, name: str, seconds: float) -> list[Moment]:
    """Add and preempt low-priority nodes as the trace says, one step per `seconds`, and observe until the run is
    archived and no node is left."""
    pool, start, skipped = WINDOW
    windows = read_windows(TRACES)[1][pool]
    trace = next(window for window in windows if window.start == start).steps[skipped:]
    began, seen = time.time(), list[Moment]()

    def look() -> bool:
        now = time.time() - began
        allow(lab, trace[min(int(now / seconds), len(trace) - 1)])
        nodes = {cluster: len(nodes_of(lab, cluster)) for cluster in PRICES}
        run = lab.get(f"runs/{name}")
        paid = seen[-1].dollars if seen else 0.0
        gone = now - seen[-1].seconds if seen else 0.0
        paid += gone * sum(PRICES[cluster] * count for cluster, count in nodes.items()) / 3600
        at_work = [m["member"] for m in run["elastic"]["members"] if m["state"] == "running"]
        dedicated = sum(member >= DEDICATED_FROM for member in at_work)
        seen.append(Moment(now, len(at_work) - dedicated, dedicated, run["date"]["done_share"], paid))
        return bool(run["archived_at"]) and not any(nodes.values())

    wait_for(look, PATIENCE, f"run {name} to be archived", 0.5)
    allow(lab, True)
    return seen


def nodes_of(lab: Lab, cluster: str) -> list[dict[str, Any]]:
    """The nodes of the cluster, in any state."""
    found: list[dict[str, Any]] = lab.control(f"{lab.cloud.azureml}/control/clusters/{cluster}")["nodes"]
    return found


def allow(lab: Lab, there_are: bool) -> None:
    """Let the low-priority pool provide nodes, or preempt all of its nodes and provide none."""
    faults = {} if there_are else {"allocations": {"cpu-cluster": NO_NODES}}
    lab.control(f"{lab.cloud.azureml}/control/faults", faults, "PUT")
    for node in [] if there_are else nodes_of(lab, "cpu-cluster"):
        with contextlib.suppress(urllib.error.HTTPError):  # the node is already gone
            lab.control(f"{lab.cloud.azureml}/control/clusters/cpu-cluster/preempt", {"node": node["id"]})
