"""What survives a stop, a kill, and an outage of the event topic."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

from emulator_tests.azureml.clouds import PROBE, Cloud, gone, launch, told
from emulator_tests.azureml.conftest import Receiver
from emulators.azureml.running.process_guard import GRACE_SECONDS
from emulators.process import wait_for

Begin = Callable[..., Cloud]


def test_a_running_job_runs_again_after_a_restart(own_cloud: Begin, tmp_path: Path) -> None:
    """A stop ends the job's processes. The next start runs the job from the beginning, with the same log and
    address. A job whose old state is unreadable fails with a reason, and the other jobs run."""
    cloud = own_cloud(workspace="restarted")
    cloud.submit("before", "cpu-cluster", "echo finished")
    cloud.submit("across", "cpu-cluster", f"python '{PROBE}' --gate {tmp_path}/go")
    wait_for(lambda: "WAITING" in cloud.log("across"), 60, "the job to run")
    cloud.wait("before")
    pid, url = int(told(cloud.log("across"), "ENV")["pid"]), cloud.url
    cloud.submit("odd", "cpu-cluster", "true", resources={"instanceCount": 9})  # waits for more nodes than the maximum
    assert cloud.part.stop() == 0
    with contextlib.closing(sqlite3.connect(cloud.config.parent / "state" / "azureml.sqlite")) as db, db:
        (body,) = db.execute("SELECT body FROM jobs WHERE name = 'odd'").fetchone()
        stored = json.loads(body)
        stored["properties"]["inputs"] = {"../odd": {"jobInputType": "literal", "value": "x"}}
        db.execute("UPDATE jobs SET body = ? WHERE name = 'odd'", (json.dumps(stored),))
    cloud.part = launch(cloud.config)
    assert gone(pid)
    assert cloud.url == url
    assert cloud.job("before")["status"] == "Completed"
    assert cloud.log("before") == "finished\n"
    (tmp_path / "go").touch()
    assert cloud.wait("across")["status"] == "Completed"
    log = cloud.log("across")
    assert "[azureml] attempt 2 runs the command again: the control plane was restarted" in log
    assert (log.count("got SIGTERM"), log.count("DONE")) == (1, 1)
    assert cloud.wait("odd")["status"] == "Failed"
    assert "The name of inputs '../odd'" in cloud.details("odd")["error"]["error"]["message"]


def test_a_killed_control_plane_leaves_no_process_and_no_job_behind(own_cloud: Begin, tmp_path: Path) -> None:
    """After SIGKILL the jobs' processes end, even if they ignore SIGTERM. The next start runs the job again; a job
    that was being canceled is Canceled."""
    cloud = own_cloud(workspace="killed", preemption_grace_seconds=60)
    for name in ("orphan", "unwanted"):
        cloud.submit(name, "cpu-cluster", f"python '{PROBE}' --stubborn --gate {tmp_path}/go")
    for name in ("orphan", "unwanted"):
        wait_for(lambda: "WAITING" in cloud.log(name), 60, f"{name} to run")  # noqa: B023 (called at once)
    pids = [int(told(cloud.log(name), "ENV")["pid"]) for name in ("orphan", "unwanted")]
    cloud.arm("POST", "jobs/unwanted/cancel")
    assert cloud.job("unwanted")["status"] == "CancelRequested"
    os.kill(cloud.part.process.pid, signal.SIGKILL)
    wait_for(lambda: all(map(gone, pids)), GRACE_SECONDS + 10, "the processes to be gone")
    cloud.part.stop()
    cloud.part = launch(cloud.config)
    (tmp_path / "go").touch()
    assert cloud.job("unwanted")["status"] == "Canceled"
    assert cloud.wait("orphan")["status"] == "Completed"
    assert "attempt 2" in cloud.log("orphan")


def test_events_wait_for_a_topic_that_is_down(own_cloud: Begin, receiver: Receiver) -> None:
    """Events that the topic refuses survive a restart, and are delivered when the topic is back."""
    receiver.status = 503
    cloud = own_cloud(workspace="unheard", events={"url": receiver.url})
    cloud.submit("unheard", "cpu-cluster", "true")
    cloud.wait("unheard")
    wait_for(lambda: receiver.refused, 60, "a refused event")
    cloud.restart()
    assert receiver.of("unheard") == []
    receiver.status = 200
    wait_for(lambda: len(receiver.of("unheard")) >= 7, 60, "all events")
    statuses = {e["data"].get("runStatus") for e in receiver.of("unheard")}
    assert statuses == {None, "NotStarted", "Queued", "Preparing", "Running", "Finalizing", "Completed"}
