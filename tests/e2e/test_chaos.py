"""The short form of `bench chaos`: every part of the local cloud is killed while drops arrive and train."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
@pytest.mark.timeout(420)
def test_kills_cost_time_and_nothing_else() -> None:
    """No drop is lost, trained twice or stuck, every manifest is correct, and the stored data became the right
    model."""
    argv = [sys.executable, "-m", "benchmarks.chaos", "--quick", "--seed", "2", "--json"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=400)
    assert done.stdout, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    never = (
        "lost",
        "double",
        "stuck",
        "wrong content",
        "archive untrue",
        "archive without a model",
        "jobs without a run",
        "failed",
        "drops that lost files",
        "models lost by the storage",
        "archives lost by the storage",
    )
    wrong = {kind: told[kind] for kind in never if told.get(kind)}
    assert not wrong, told["findings"]
    assert told["kills"] >= 8
    # A node that can't reach the storage for too long fails with that reason (other failures are counted above).
    assert told["right"] + told.get("failed for the storage", 0) >= told["drops"], told["findings"]
