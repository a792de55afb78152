"""`bench scale` stays runnable: its parts at the smallest size, and its one object of figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import scale
from benchmarks.scale import Size

NAMES = (
    "live_runs round_seconds arm_reads peak_rss_mib event_p95_seconds drops_per_minute accepted_p95_seconds "
    "million_blobs_seconds million_blobs_extra_mib million_rows_p95_ms first_job_seconds"
)
SMALL = Size(live_runs=20, hours=0.1, drops=60, minutes=0.05, blobs=6_000, rows=400, members=3, starts=1)


def test_the_last_line_is_one_object_of_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --json the only line of standard output is an object with exactly the agreed names."""
    monkeypatch.setattr(scale, "FULL", SMALL)
    scale.main(["--json", "--only", "blobs"])
    found = json.loads(capsys.readouterr().out)
    assert " ".join(found) == NAMES
    assert found["million_blobs_seconds"] > 0
    assert found["million_blobs_extra_mib"] < 10
    assert found["live_runs"] is None  # not measured


def test_the_newest_of_many_runs_cost_one_request(tmp_path: Path) -> None:
    """A page of the newest runs takes one request, a filter's page a constant number, and both are full."""
    asked = scale.PARTS["rows"](tmp_path, SMALL, False)["asked"]
    assert asked["newest"]["requests"] == 1
    assert asked["newest"]["found"] == 100
    assert (asked["tag"]["requests"], asked["tag"]["found"]) == (1, 8)


def test_live_runs_are_all_told_of_in_lists(tmp_path: Path) -> None:
    """A round finds every run whose end was missed, with fewer requests than there are runs."""
    found = scale.PARTS["live_runs"](tmp_path, SMALL, False)
    assert found["missed"] == 0
    assert found["throttled"] == 0
    assert found["arm_reads"] < 20 + 3 * found["events"]
    assert found["peak_rss_mib"] < 256
