"""Advice about a run that hangs names the run's processes on this machine."""

from __future__ import annotations

import os
import subprocess
import sys

from cli.show.processes import stack_commands


def test_the_python_processes_of_a_run_on_this_machine_are_named() -> None:
    """A run of another machine has none, and a process that only starts workers is left out."""
    waits = [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"]
    job = {**os.environ, "AZUREML_RUN_ID": "run-0123456789abcdef-m1"}
    with (
        subprocess.Popen(waits, env=job, stdin=subprocess.PIPE) as starter,
        subprocess.Popen(waits, env={**job, "RANK": "1"}, stdin=subprocess.PIPE) as worker,
    ):
        assert stack_commands("run-0123456789abcdef") == [
            f"See where process {worker.pid} waits: uvx py-spy dump --pid {worker.pid}"
        ]
        assert stack_commands("run-fedcba9876543210") == []
        for each in (starter, worker):
            each.communicate()
