"""The setting for another host also works with our host, started as an unknown command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emulator_tests.host.conftest import ours_alone
from emulator_tests.places import PROJECT, SOURCE, asked_for

START = f"env PYTHONPATH={SOURCE} {sys.executable} -m emulators.host --app . --port {{port}}"
TESTS = (
    "test_host_http.py::test_cookies_are_the_one_header_that_repeats",
    "test_host_events.py::test_admin_runs_any_function_but_an_http_one",
    "test_host_events.py::test_admin_takes_a_text",
    "test_host_queues.py::test_a_failing_message_is_tried_again_then_poison",
)


@ours_alone
@pytest.mark.skipif(os.name == "nt", reason="the command is one of a POSIX shell")
def test_the_tests_pass_on_a_host_that_a_command_starts(tmp_path: Path) -> None:
    """With EMULATORS_FUNCTIONS_HOST, or an embedding project's prefix, a few tests pass on a host that the command
    starts in a copy of the app's folder, whatever the PYTHONPATH of the tests."""
    (tmp_path / "function_app.py").write_text("raise RuntimeError('this is another app')\n")
    environment = {
        **os.environ,
        "SOME_FUNCTIONS_HOST": START,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(SOURCE)]),
    }
    tests = [str(PROJECT / "emulator_tests" / "host" / test) for test in TESTS]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(PROJECT / "pyproject.toml")]
    done = subprocess.run([*command, *tests], cwd=PROJECT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout.splitlines()[-1]


def test_the_own_name_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """EMULATORS_... takes precedence over another prefix. Without either, no setting is found."""
    for name in [name for name in os.environ if name.endswith("_FUNCTIONS_HOST")]:
        monkeypatch.delenv(name)
    assert asked_for("FUNCTIONS_HOST") == ""
    monkeypatch.setenv("A_FUNCTIONS_HOST", "one")
    assert asked_for("FUNCTIONS_HOST") == "one"
    monkeypatch.setenv("EMULATORS_FUNCTIONS_HOST", "two")
    assert asked_for("FUNCTIONS_HOST") == "two"
