"""Node usage on the command line: a line of `show`, a column of `runs`, and curves by node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cli.api import run_list
from cli.show import usage
from tests.cli.conftest import Server

SAMPLES = [
    {"time": 60.0 * minute, "node": node, "device": "", "cpu": [value, value], "memory": [100.0, 100.0]}
    for minute, (a, b) in enumerate([(10, 90), (20, 80)])
    for node, value in (("tvmps_b", b), ("tvmps_a", a))
] + [{"time": 0.0, "node": "tvmps_a", "device": device, "gpu": [10.0 * (1 + int(device)), 50.0]} for device in "01"]
ANSWER: dict[str, Any] = {
    "run": "mnist-1",
    "sentence": "2 nodes, processors 50 %",
    "summary": {"cpu": 50.0},
    "waited_for_data": None,
    "advice": "It used little: Standard_D2_v3 would do, for $0.10 an hour instead of $0.19.",
    "samples": SAMPLES,
}


def test_curves_are_by_node_over_the_minutes() -> None:
    """Nodes are numbered in the order of their names; the GPUs of a node are averaged."""
    found = usage.curves(SAMPLES, [])
    assert found["cpu"] == {"node 0": [(0, 10), (1, 20)], "node 1": [(0, 90), (1, 80)]}
    assert found["gpu"] == {"node 0": [(0, 15)]}
    assert found.keys() == {"cpu", "memory", "gpu"}
    assert usage.curves(SAMPLES, ["memory"]).keys() == {"memory"}
    assert usage.curves([], []) == {}


def test_metrics_draws_nodes(server: Server, run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence and the advice are below the curves; an unknown name is refused with the known names."""
    server.says("/api/runs/mnist-1/usage", ANSWER)
    assert run("metrics", "mnist-1", "--nodes", "--url", server.url) == 0
    out = capsys.readouterr().out
    assert "processors, percent   ━ node 0 20   ━ node 1 80" in out
    assert "minute 1" in out
    assert "Standard_D2_v3 would do" in out
    assert run("metrics", "mnist-1", "--nodes", "--name", "water", "--url", server.url) == 0
    seen = capsys.readouterr()
    assert "No water. There are: cpu, gpu, memory." in seen.out + seen.err


def test_runs_are_sorted_by_their_use() -> None:
    """Runs are sorted by GPU usage if there are GPUs, otherwise by processor usage; an unmeasured run comes last."""
    runs: list[dict[str, Any]] = [
        {"run": "none", "usage": None},
        {"run": "cpu", "usage": {"cpu": 40.0, "gpu": None}},
        {"run": "gpu", "usage": {"cpu": 90.0, "gpu": 3.0}},
    ]
    assert [run["run"] for run in run_list.ordered(runs, "used")] == ["gpu", "cpu", "none"]
    assert [run["run"] for run in run_list.ordered(runs, "-used")] == ["cpu", "gpu", "none"]
    assert [usage.brief(run) for run in runs] == ["", "cpu 40 %", "gpu 3 %"]


def test_show_says_it_in_a_line() -> None:
    """The advice follows below the line; an unmeasured run has neither."""
    assert {name: text.plain for name, text in usage.facts(ANSWER).items()} == {
        "nodes used": "2 nodes, processors 50 %",
        "advice": ANSWER["advice"],
    }
    assert usage.facts({**ANSWER, "sentence": ""}) == {}
    assert usage.facts(None) == {}
