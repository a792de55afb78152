"""The deployed package under Microsoft's own Python worker, which a host reaches by gRPC."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.functions import indexed
from tests.infra.invocations import TABLE, settings, unpacked

WORKER = "TRAINYARD_FUNCTIONS_WORKER"
ABSENT = (
    "MICROSOFT'S PYTHON WORKER: PyPI's newest is of 2020 and knows only function.json. The Functions Core Tools have "
    f"a newer one: set {WORKER} to their workers/python/<version>/LINUX/X64/worker.py, of the Python that runs this"
)


def test_microsofts_worker_runs_the_package(tmp_path: Path) -> None:
    """The worker indexes and loads every function of the package, and runs one function for each kind of trigger."""
    if not (worker := os.environ.get(WORKER)):
        pytest.skip(ABSENT)
    app = unpacked(tmp_path)
    (tmp_path / "table.json").write_text(json.dumps(TABLE))
    with settings(tmp_path) as given:
        # The worker keeps its own packages apart from the app's; here both come from this environment.
        env = {**os.environ, **given, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        host = Path(__file__).with_name("worker_host.py")
        argv = [sys.executable, str(host), worker, str(app), str(tmp_path / "table.json")]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["functions"] == sorted(function.get_function_name() for function in indexed.functions())
    assert [outcome["error"] for outcome in told["outcomes"] if not outcome["ok"]] == []
    answer = told["outcomes"][-1]
    assert answer["status"] == "200"
    assert {drop["drop"] for drop in json.loads(answer["body"])} == {"mnist/a", "mnist/b"}
