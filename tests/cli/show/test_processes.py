"""Advice about a run that hangs names the run's processes on this machine."""

from __future__ import annotations

import os
import subprocess
import sys

from cli.show.processes import stack_commands


def test_the_python_processes_of_a_run_on_this_machine_are_named() -> None:
    """A run of another machine has none, and a process that only starts workers is left out."""
    waits = [sys.executable, "-S", "-c", "import sys; print(flush=True); sys.stdin.read()"]
    job = {**os.environ, "AZUREML_RUN_ID": "run-0123456789abcdef-m1"}
    with (
        _start(waits, job) as starter,
        _start(waits, {**job, "RANK": "1"}) as worker,
    ):
        assert stack_commands("run-0123456789abcdef") == [
            f"See where process {worker.pid} waits: uvx py-spy dump --pid {worker.pid}"
        ]
        assert stack_commands("run-fedcba9876543210") == []
        for each in (starter, worker):
            each.communicate()


def _start(command: list[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start the command, and return when it has written a line, because only then /proc has its variables."""
    started = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert started.stdout
    started.stdout.readline()
    return started
