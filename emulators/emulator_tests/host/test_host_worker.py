"""The worker is a separate process. These tests end it."""

from __future__ import annotations

import os
import signal

import pytest

from emulator_tests.host.conftest import SampleHost, StartHost, ours_alone
from emulators.process import wait_for


def worker(host: SampleHost) -> int:
    return int(host.call("/api/process").text)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_killed_worker_is_replaced(start_host: StartHost) -> None:
    """Running work fails, and the message is retried in another worker."""
    host = start_host()
    host.send('{"seconds": 60, "text": "held"}')
    host.wait_for_records("work", 1, text="held")
    first = worker(host)
    os.kill(first, signal.SIGKILL)
    host.wait_for_records("work", 2, text="held")
    assert worker(host) != first
    assert host.part.alive()


def test_a_function_past_its_time_takes_along_what_runs_beside_it(start_host: StartHost) -> None:
    """The worker is replaced. Another message in the old worker ends at its own time limit and is retried."""
    host = start_host()
    host.send('{"seconds": 60, "text": "beside"}')
    host.wait_for_records("work", 1, text="beside")
    assert host.call("/api/sleep/60").status_code == 500
    host.wait_for_records("work", 2, text="beside")


@ours_alone  # another one's own count of deaths differs
def test_too_many_deaths_end_the_host(start_host: StartHost) -> None:
    """After the third death of a worker within half an hour the host ends with status 1."""
    host = start_host()
    for _ in range(3):
        wait_for(lambda: host.call("/api/process").status_code == 200, 60, "a worker")
        assert host.call("/api/quits").status_code == 500
    assert host.part.process.wait(60) == 1
