"""On SIGTERM running work is finished, unfinishable work is returned to its queue, and nothing is left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests

from emulator_tests.host.conftest import SampleHost, StartHost
from emulators.process import wait_for


def test_running_invocations_are_finished(start_host: StartHost) -> None:
    """A running message and a running request end normally, and the message is deleted."""
    host = start_host()
    host.send('{"seconds": 1.5}')
    host.wait_for_records("work", 1)
    answers: list[int] = []
    caller = threading.Thread(target=lambda: answers.append(host.call("/api/sleep/1.5").status_code))
    caller.start()
    host.wait_for_records("sleep", 1)
    assert host.part.stop() == 0
    caller.join(5)
    assert answers == [200]
    assert host.count() == 0


def test_what_does_not_end_in_time_is_given_back(start_host: StartHost) -> None:
    """After drain_seconds the host ends with status 0, and the message is visible to the next host at once."""
    host = start_host(drain_seconds=0.5)
    host.send('{"seconds": 60}')
    host.wait_for_records("work", 1)
    begin = time.monotonic()
    assert host.part.stop() == 0
    assert time.monotonic() - begin < 60
    with host.client() as client:
        assert len(list(client.receive_messages())) == 1


def test_a_blocked_event_loop_does_not_hold_the_stop(start_host: StartHost) -> None:
    """The process ends even if a coroutine blocks the event loop."""
    host = start_host(drain_seconds=0.5)
    caller = threading.Thread(target=lambda: _quietly(host), daemon=True)
    caller.start()
    host.wait_for_records("block", 1)
    assert host.part.stop(grace=4) == 0
    caller.join(5)


def _quietly(host: SampleHost) -> None:
    try:
        host.call("/api/block/30")
    except OSError:  # requests' errors are: the connection ends with the host
        return


PARENT = """
import json, os, sys
from pathlib import Path
from emulators import process
part = process.start("host", json.loads(sys.argv[1]), log=Path(sys.argv[2]))
print(part.info["url"], flush=True)
os._exit(1)
"""


def test_the_host_ends_with_its_parent(sample_copy: Callable[[dict[str, Any]], Path], tmp_path: Path) -> None:
    """The host ends when its parent process ends."""
    (tmp_path / "config.json").write_text(json.dumps({"app": str(sample_copy({}))}))
    argv = [sys.executable, "-m", "emulators.host", "--config", str(tmp_path / "config.json")]
    settings = {"AzureWebJobsStorage": "UseDevelopmentStorage=true", "SAMPLE_SCHEDULE": "0 0 0 1 1 *"}
    parent = subprocess.run(
        [sys.executable, "-c", PARENT, json.dumps(argv), str(tmp_path / "log")],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **settings, "SAMPLE_QUEUE": "q-parent"},
    )
    assert parent.returncode == 1, parent.stderr
    wait_for(lambda: not _answers(parent.stdout.strip()), 60, "the host to end")


def _answers(url: str) -> bool:
    try:
        requests.get(url, timeout=5)
    except requests.ConnectionError:
        return False
    return True
