"""Elastic runs on the command line: a range of nodes, members, merged logs, and evicted nodes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from cli.api.client import Api
from cli.api.follow import MembersReader
from cli.commands import values
from cli.nodes.preemption_trace import Moment, Replay, Trace

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]
AT = "2026-01-01T00:00:00+00:00"


def elastic(*states: str, state: str = "running") -> dict[str, Any]:
    """A run of 1 to 3 nodes, whose members are in these states."""
    members = [
        {"member": n, "job": f"r-m{n}-1", "attempt": 1, "state": s, "at": AT, "why": ""} for n, s in enumerate(states)
    ]
    budget = {"min_nodes": 1, "resubmitted": 2, "resubmissions": 10, "deadline": AT}
    sizes = [{"at": AT, "nodes": 1}, {"at": AT, "nodes": 3}]
    return {
        **{"run": "r", "state": state, "drop": "", "experiment": "e", "cluster": "c", "nodes": 3, "created_at": AT},
        **{"attempts": 1, "history": [], "elastic": {**budget, "members": members, "sizes": sizes}},
    }


@pytest.mark.parametrize(("text", "nodes"), [("", None), ("4", 4), ("1:4", {"min": 1, "max": 4})])
def test_nodes_are_a_number_or_a_range(text: str, nodes: object) -> None:
    """`4` is a number, `1:4` a range."""
    assert values.nodes(text) == nodes


def test_bad_nodes_are_refused_with_an_example(run: Run, capsys: Capture) -> None:
    """Any other value ends with status 2 and shows the syntax."""
    assert run("submit", "mnist", "--nodes", "1-4", "--url", "http://127.0.0.1:1/api") == 2
    assert "1:4" in capsys.readouterr().err


def test_show_tells_members_budget_and_size(server: Any, run: Run, capsys: Capture) -> None:
    """`show` prints each member's job and state, the resubmissions used, the deadline and the nodes over time."""
    server.says("/api/runs/r", elastic("running", "queued"))
    assert run("show", "r", "--url", server.url) == 0
    said = capsys.readouterr().out
    for part in ("1 to 3 nodes", "m0-1", "m1-1", "queued", "2 of 10 resubmissions used", "deadline", "nodes over time"):
        assert part in said


def test_show_tells_what_was_lost_and_who_asked(server: Any, run: Run, capsys: Capture) -> None:
    """The history has each loss, and each eviction with its requester, in order, and members have their cost."""
    record = elastic("running", "completed")
    record["history"] = [{"state": "running", "at": "2026-01-01T00:00:00+00:00", "why": ""}]
    asked = {"what": "evicted member 1 (r-m1-1)", "by": "ann", "by_id": "", "at": "2026-01-01T00:01:00+00:00"}
    record["audit"] = [asked | {"deed": "evicted"}]
    record["from_run"] = "base-0123456789abcdef"
    lost = {"job": "r-m1-1", "at": "2026-01-01T00:02:00+00:00", "why": "Its job was canceled."}
    record["elastic"] |= {"losses": [lost]}
    record["elastic"]["members"][0] |= {"seconds": 90.0, "cost": 1.5}
    server.says("/api/runs/r", record)
    assert run("show", "r", "--url", server.url) == 0
    said = capsys.readouterr().out
    history = said[said.index("History") :].splitlines()
    for words, line in zip(("running", "ann", "m1-1: Its job was canceled."), history[1:4], strict=True):
        assert words in line
    assert "$1.50" in said
    assert "the model of base-0123456789abcdef" in said
    assert "What people did" not in said


def test_evict_names_the_job(server: Any, run: Run, capsys: Capture) -> None:
    """In a deployment, evict ends a member's job over the API: the named job, or the running one."""
    server.says("/api/runs/r", elastic("queued", "running"))
    server.says("/api/runs/r/members/1/evict", {"run": "r", "job": "r-m1-1"})
    assert run("evict", "r", "--json", "--url", server.url) == 0
    assert json.loads(capsys.readouterr().out) == {"run": "r", "job": "r-m1-1", "node": 1}
    assert server.asked[-1][0] == "/api/runs/r/members/1/evict"


def test_evict_follows_a_trace(server: Any, run: Run, capsys: Capture, tmp_path: Path) -> None:
    """Where the trace has fewer nodes than the run, exactly the surplus is evicted."""
    trace = tmp_path / "trace.json"
    trace.write_text('[{"time": 0, "nodes": 2}, {"time": 1, "nodes": 1}]')
    server.says("/api/runs/r", elastic("running", "running"))
    server.says("/api/runs/r/members/1/evict", {"run": "r", "job": "r-m1-1"})
    assert run("evict", "r", "--trace", str(trace), "--speed", "10", "--json", "--url", server.url) == 0
    assert json.loads(capsys.readouterr().out) == {"run": "r", "job": "r-m1-1", "node": 1}
    assert [path for path, *_ in server.asked if path.endswith("/evict")] == ["/api/runs/r/members/1/evict"]


def test_a_replay_has_a_picture(server: Any, run: Run, capsys: Capture, tmp_path: Path) -> None:
    """--png draws the nodes of the trace, the working nodes and the loss over the seconds of the replay; for a run
    without metrics it draws only the trace."""
    trace, now = tmp_path / "trace.json", time.time()
    trace.write_text('[{"time": 0, "nodes": 2}, {"time": 1, "nodes": 1}]')
    server.says("/api/runs/r", elastic("running", "running"))
    server.says("/api/runs/r/members/1/evict", {"run": "r", "job": "r-m1-1"})
    rows = {"train_loss": [[1, 2.0, now + 0.01], [2, 1.0, now + 0.05]], "world_size": [[1, 2, now + 0.01]]}
    for name, series in (("with", rows), ("without", {})):
        server.says("/api/runs/r/metrics", {"series": series})
        file = tmp_path / f"{name}.png"
        assert run("evict", "r", "--trace", str(trace), "--speed", "10", "--png", str(file), "--url", server.url) == 0
        assert str(file) in capsys.readouterr().out.replace("\n", "")
        with Image.open(file) as image:
            assert image.size == (1440, 960)
    assert run("evict", "r", "--png", "x.png", "--url", server.url) == 1
    assert "also give --trace FILE" in capsys.readouterr().err


def test_curves_of_a_replay_are_over_its_seconds() -> None:
    """Nodes keep each value until the next; measurements before the replay are left out."""
    replay = Replay("r", Trace("t", [Moment(0, 8), Moment(20, 7)], 10), time.time() - 5)
    before, after = replay.began - 1, replay.began + 3
    curves = replay.curves(
        {"train_loss": [[1, 9.0, before], [2, 2.0, after], [3, 1.0, None]], "other": [[1, 1, after]]}
    )
    assert curves["in the trace"][:3] == [(0, 8), (2, 8), (2, 7)]
    assert curves["in the trace"][3][1] == 7
    [(at, loss)] = curves["train_loss"]
    assert (at, loss) == pytest.approx((3, 2))
    assert curves.keys() == {"in the trace", "train_loss"}


@pytest.mark.parametrize("text", ["no JSON", "[1]", '[{"time": 1}]', '[{"time": -1, "nodes": 2}]'])
def test_a_bad_trace_is_refused(run: Run, capsys: Capture, tmp_path: Path, text: str) -> None:
    """A file that is no trace gives an error with the file's name."""
    (tmp_path / "trace.json").write_text(text)
    assert (
        run(
            "evict",
            "cifar-0123456789abcdef",
            "--trace",
            str(tmp_path / "trace.json"),
            "--url",
            "http://127.0.0.1:1/api",
        )
        == 1
    )
    assert "trace.json" in capsys.readouterr().err


def test_evict_from_a_run_that_is_over(server: Any, run: Run, capsys: Capture) -> None:
    """An ended run has no nodes: evict ends with status 1 and prints the state."""
    server.says("/api/runs/r", elastic("completed", state="completed"))
    assert run("evict", "r", "--url", server.url) == 1
    assert "is completed" in capsys.readouterr().err


def test_the_logs_of_all_jobs_are_read_as_one(server: Any) -> None:
    """The merged log has whole lines, each prefixed with its job's name, from later jobs too; it is complete when
    every job's log is."""
    ranks = {"x_ranks": "0,4"}
    server.says("/api/runs/r/logs?rank=0&offset=0", b"one\ntw", x_next_offset="6", x_log_complete="false", **ranks)
    server.says("/api/runs/r/logs?rank=0&offset=6", b"o\n", x_next_offset="8", x_log_complete="true", **ranks)
    server.says("/api/runs/r/logs?rank=4&offset=0", b"end", x_next_offset="3", x_log_complete="true", **ranks)
    reader = MembersReader(Api(server.url, None), "r", members=3)
    assert (reader.read(), reader.complete) == ("m0-1 | one\nm1-2 | end\n", False)
    assert (reader.read(), reader.complete) == ("m0-1 | two\n", True)
    assert reader.offset == 11


def test_logs_of_an_elastic_run_are_those_of_whoever_speaks(server: Any, run: Run, capsys: Capture) -> None:
    """Without --rank all jobs' logs are printed, even if the first is empty; with --rank only that rank's log is."""
    server.says("/api/runs/r", elastic("running", "running"))
    ranks = {"x_ranks": "0,1", "x_log_complete": "true"}
    server.says("/api/runs/r/logs?rank=0&offset=0", b"", x_next_offset="0", **ranks)
    server.says("/api/runs/r/logs?rank=1&offset=0", b"epoch 1\n", x_next_offset="8", **ranks)
    for words, printed in (((), "m1-1 | epoch 1\n"), (("--rank", "1"), "epoch 1\n"), (("--rank", "0"), "")):
        assert run("logs", "r", *words, "--url", server.url) == 0
        assert capsys.readouterr().out == printed


def test_only_the_local_cloud_announces(server: Any, run: Run, capsys: Capture) -> None:
    """A deployment's nodes are Azure's own, so actions that only the stand-in supports are refused, and nothing is
    evicted."""
    assert run("evict", "r", "--notice", "30s", "--url", server.url) == 1
    assert "Only the local cloud announces an eviction" in capsys.readouterr().err
    assert not [path for path, *_ in server.asked if path.endswith("/evict")]
