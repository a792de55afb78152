"""The parts of `bench chaos` that can be tested without a cloud: its clock, its jobs, and its oracle."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks import _clock
from benchmarks._callers import BODIES, LOGGED, STEPS
from benchmarks._oracle import MEASURED, Verdict, judge_metrics
from shared.jobs.readers.azureml import read_job

BEGIN = datetime(2026, 1, 31, 23, 58, tzinfo=UTC)


def test_the_clock_of_a_process_is_moved_by_the_difference() -> None:
    """An already preloaded library stays."""
    env = _clock.environment({"LD_PRELOAD": "a.so"}, Path("f.so"), BEGIN, BEGIN - timedelta(days=2))
    assert env == {"LD_PRELOAD": "f.so a.so", "OFFSET_SECONDS": "172800"}
    assert _clock.environment({}, Path("f.so"), BEGIN, BEGIN + timedelta(hours=1))["OFFSET_SECONDS"] == "-3600"


def test_a_time_needs_a_zone() -> None:
    assert _clock.moment("2026-01-31T23:58:00Z") == BEGIN
    with pytest.raises(ValueError, match="has no zone"):
        _clock.moment("2026-01-31T23:58:00")


def test_without_a_compiler_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmark says so, and does not measure with another clock than the requested one."""
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert _clock.with_clock(BEGIN, "benchmarks.chaos", []) == 2


def test_a_process_reads_the_time_that_was_set(tmp_path: Path) -> None:
    """The pauses of the process and of its threads keep their length."""
    if not (library := _clock.compiled(tmp_path)):
        pytest.skip("There is no C compiler, or this is not Linux.")
    program = """
import datetime, queue, time
begin = time.monotonic()
time.sleep(0.05)
try:
    queue.Queue().get(timeout=0.05)
except queue.Empty:
    pass
assert time.monotonic() - begin < 60
assert abs(time.time() - datetime.datetime.now().timestamp()) < 60
print(datetime.datetime.now(datetime.timezone.utc).isoformat())
"""
    env = _clock.environment(os.environ, library, BEGIN, datetime.now(UTC))
    told = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True).stdout
    assert abs(datetime.fromisoformat(told.strip()) - BEGIN) < timedelta(minutes=2)


@pytest.mark.parametrize("kind", BODIES)
def test_the_jobs_of_all_kinds_can_be_read(kind: str) -> None:
    """Each body has a job that the app can read; the elastic job is elastic."""
    assert read_job(BODIES[kind]["job"]).is_elastic == (kind == "elastic")


def test_the_steps_of_an_elastic_run_go_on_where_they_ended(tmp_path: Path) -> None:
    """The script makes each step once, even after a loss, and its last accuracy is the one that the oracle expects."""
    (tmp_path / "steps.py").write_text(STEPS.replace("sleep(0.1)", "sleep(0)"))
    (tmp_path / "metrics.jsonl").write_text('{"step": 0, "accuracy": 0.0}\n')
    env = {**os.environ, "RANK": "0"}
    subprocess.run([sys.executable, str(tmp_path / "steps.py"), str(tmp_path)], env=env, check=True)
    rows = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert len(rows) == 20
    assert f'"accuracy": {MEASURED["elastic"]}' in rows[-1]
    assert MEASURED["mlflow"] == LOGGED


@pytest.mark.parametrize(("accuracy", "wrong"), [(0.75, 0), (0.5, 1), (None, 1)])
def test_the_oracle_sees_a_metric_that_is_lost_or_wrong(accuracy: float | None, wrong: int) -> None:
    """The oracle expects of a completed job the metrics that the job logged to MLflow."""
    run = {"run": "r", "state": "completed", "metrics": {"last": {} if accuracy is None else {"accuracy": accuracy}}}
    verdict = Verdict()
    judge_metrics("chaos-3-mlflow", run, verdict)
    assert verdict.counts["metrics untrue"] == wrong
