"""The demo's output."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from local.demo.claims import Archive, Claim
from local.demo.phases import CLOUD, Seen
from local.demo.summary import as_json, as_table
from local.demo.view import PlainView, Screen, open_view, picture

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def done_run() -> dict[str, Any]:
    states = {"received": 4, "submitted": 6, "running": 9, "completed": 20}
    return {
        "run": "mnist-1",
        "state": "completed",
        "nodes": 2,
        "cluster": "cpu-cluster",
        "output": "output/mnist/mnist-1",
        "created_at": at(4).isoformat(),
        "archived_at": at(22).isoformat(),
        "history": [{"state": s, "at": at(t).isoformat(), "why": f"why {s}"} for s, t in states.items()],
    }


@pytest.fixture
def screen() -> Screen:
    cluster = {"name": "cpu-cluster", "nodes": 2, "busy_nodes": 1, "max_nodes": 4}
    seen = Seen(START, at(2), at(3), {"sealed_at": at(4).isoformat(), "why": "marked"}, done_run(), cluster)
    return Screen("Trainyard: a drop", seen, notes={CLOUD: "http://here"})


def text_of(thing: Any) -> str:
    console = Console(width=120, record=True, file=None)
    with console.capture() as capture:
        console.print(thing)
    return capture.get()


def test_plain_lines_come_once(screen: Screen) -> None:
    """Without a terminal each finished phase and each log line is printed once, a late one at the end of the block."""
    lines: list[str] = []
    with PlainView(screen, lines.append) as view:
        screen.log.add("epoch 1/2\n")
        view.update()
        view.update()
        screen.seen.at_zero = at(25)
        screen.log.add("epoch 2/2\n")
    assert lines[0] == "Trainyard: a drop"
    assert [line for line in lines if line.startswith("  | ")] == ["  | epoch 1/2", "  | epoch 2/2"]
    assert len(lines) == 1 + 2 + 8
    assert lines[-1].split()[:5] == ["cluster", "to", "zero", "3.0", "s"]


def test_the_picture_has_phases_nodes_and_log(screen: Screen) -> None:
    """On a terminal all phases with their times, a square per node, and the end of the log are shown."""
    for number in range(30):
        screen.log.add(f"line {number}\n")
    shown = text_of(picture(screen, at(23)))
    for part in ("starting the cloud", "2.0 s", "http://here", "mnist-1", "■■□□", "2 of 4 nodes, 1 busy", "line 29"):
        assert part in shown
    assert "line 21" not in shown


def test_the_bar_follows_the_log(screen: Screen) -> None:
    """During training, the share of completed epochs is shown beside the phase."""
    screen.seen.run["state"], screen.seen.run["history"] = "running", screen.seen.run["history"][:3]
    screen.seen.run["archived_at"] = None
    screen.log.add("epoch 1/4 test\n")
    assert "25%" in text_of(picture(screen, at(12)))


def test_the_view_fits_the_place(screen: Screen) -> None:
    """A terminal gets the live view, a pipe plain lines."""
    assert isinstance(open_view(Console(force_terminal=False), screen), PlainView)
    assert not isinstance(open_view(Console(force_terminal=True), screen), PlainView)


def test_the_summary_tells_everything(screen: Screen) -> None:
    """The table has claims with their findings, accuracy, places and history; the JSON object has its keys."""
    screen.seen.at_zero = at(25)
    archive = Archive("mnist/mnist-1", {"models/m.pt": 9, "manifest.json": 1}, {}, [{"test_accuracy": 0.9876}])
    shown = text_of(
        as_table(screen.seen, archive, [Claim("it holds", True, "yes"), Claim("it fails", False, "oh")], None)
    )
    for part in (
        "✓ it holds  yes",
        "✗ it fails\n    oh",
        "98.76%",
        "output/mnist/mnist-1/models/m.pt",
        "why completed",
    ):
        assert part in shown
    told = as_json(screen.seen, archive, None)
    assert told["output"] == ["mnist/mnist-1/manifest.json", "mnist/mnist-1/models/m.pt"]
    assert told["phases"]["train"] == 11.0
    assert set(told) == {
        "run",
        "state",
        "nodes",
        "world_size",
        "test_accuracy",
        "phases",
        "output",
        "plot",
        "cluster",
    }
