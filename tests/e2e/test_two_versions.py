"""A deployment: the previous and the current version work on the same storage in turn, forwards and back."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from azure.storage.blob import ContainerClient

from benchmarks.scaling.cloud import Plan, ScaleCloud, running
from emulators.process import wait_for
from local.record import REPOSITORY
from shared.kernel.message import encode
from shared.schedules.messages import CheckSchedule

BEFORE = "f61e8b74"  # counts new files from the contents of all drops, and writes no rows of closings
PATIENCE = 90.0
RUN = {"template": "noop", "data": "drops/noop/a"}
ENOUGH = 6  # new files make a scheduled run: three drops of one file and a marker


@pytest.fixture(scope="module")
def old_app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The previous version of the app, from this repository's history."""
    made = subprocess.run(["git", "-C", str(REPOSITORY), "archive", BEFORE], capture_output=True)
    if made.returncode:
        pytest.skip(f"this clone has no history back to {BEFORE}: git fetch --unshallow")
    folder = tmp_path_factory.mktemp("before")
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


class Yard:
    """A cloud whose host runs either version."""

    def __init__(self, cloud: ScaleCloud, old: Path) -> None:
        self.cloud, self.old, self.dropped = cloud, old, list[str]()
        self._is_old = False

    def is_of(self, app: Path) -> None:
        self.cloud._parts["host"].config["app"] = str(app)
        self._is_old = app == self.old
        self.cloud.restart_host()

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """Call the API as a client does, with retries while it is briefly unavailable."""

        def answered() -> bool:
            self._answer = httpx.request(method, f"{self.cloud.api}/{path}", json=body, timeout=60)
            return self._answer.status_code != 503

        wait_for(answered, PATIENCE, f"an answer to {method} {path}", 1.0)
        assert self._answer.is_success, self._answer.text
        return self._answer.json()

    def drop(self, name: str) -> None:
        """A drop of one file, which becomes an archived run."""
        with ContainerClient.from_connection_string(self.cloud.connection_string, "drops") as drops:
            drops.upload_blob(f"noop/{name}/1.bin", name.encode())
            drops.upload_blob(f"noop/{name}/_SUCCESS", b"")
        self.dropped.append(f"noop/{name}")
        wait_for(lambda: f"noop/{name}" in self._archived(), PATIENCE, f"the archive of {name}", 0.3)

    def _archived(self) -> list[str]:
        return [run["drop"] for run in self.runs() if run.get("archived_at")]

    def runs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.api("GET", "runs")["runs"]
        return found

    def look(self, schedule: str) -> None:
        """Make the running version check the schedule; the old version has a queue for that."""
        queues = self.cloud.system().queues
        name = "schedule-looks" if self._is_old else CheckSchedule.queue
        wait_for(lambda: not queues.counts([name])[name], PATIENCE, "the other messages of that queue", 0.3)
        queues.put(name, encode(CheckSchedule(schedule)))
        wait_for(lambda: not queues.counts([name])[name], PATIENCE, "a look at the schedule", 0.3)

    def schedule(self, name: str) -> Any:
        return next(one for one in self.api("GET", "schedules") if one["id"] == name)

    def fired(self, schedules: list[str]) -> list[int]:
        """The number of runs that each schedule has made, after a check."""
        for name in schedules:
            self.look(name)
        told = [self.api("GET", f"schedules/{name}/firings") for name in schedules]
        return [len([one for one in firings if one["outcome"] == "started"]) for firings in told]


@pytest.fixture
def yard(old_app: Path, tmp_path: Path) -> Iterator[Yard]:
    plan = Plan({"queued_seconds": 0.0, "running_seconds": 0.1}, reconcile="0 0 0 1 1 *")
    with running(tmp_path, plan) as cloud:
        yield Yard(cloud, old_app)


def test_a_schedule_of_new_files_fires_once_whichever_version_counts(yard: Yard) -> None:
    """Whichever version made the schedule, both versions count files that arrived under either: too few make no
    run, enough make one. Every drop is one run, and a schedule that the other version resumed has no
    `paused_by`."""
    this, before = REPOSITORY, yard.old
    wish = {"run": RUN, "route": "noop", "new_files": ENOUGH}
    yard.is_of(before)
    yard.drop("a")
    made = [yard.api("POST", "schedules", wish)["id"]]
    yard.is_of(this)
    made.append(yard.api("POST", "schedules", wish)["id"])
    for one in made:
        yard.api("POST", f"schedules/{one}/pause")
    yard.is_of(before)
    for one in made:
        yard.api("POST", f"schedules/{one}/resume")
    yard.drop("b")
    assert yard.fired(made) == [0, 0]
    yard.is_of(this)
    assert not any(yard.schedule(one).get("paused_by") for one in made)
    yard.drop("c")
    assert yard.fired(made) == [0, 0]
    yard.is_of(before)
    assert yard.fired(made) == [0, 0]
    yard.drop("d")
    assert yard.fired(made) == [1, 1]
    yard.is_of(this)
    assert yard.fired(made) == [1, 1]
    scheduled = "noop/a"  # the drop that their runs train on
    assert sorted(run["drop"] for run in yard.runs()) == sorted([*yard.dropped, scheduled, scheduled])
