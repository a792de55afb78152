"""A deployment: the version before and this one work on the same storage, one after the other and back."""

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
from shared.kernel import places

BEFORE = "f61e8b74"  # it counts new files by what all drops hold, and leaves no rows of closings
PATIENCE = 90.0
RUN = {"template": "noop", "data": "drops/noop/a"}
ENOUGH = 6  # new files make a scheduled run: three drops of one file and a marker


@pytest.fixture(scope="module")
def old_app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The app as it was, out of this repository's history."""
    made = subprocess.run(["git", "-C", str(REPOSITORY), "archive", BEFORE], capture_output=True)
    if made.returncode:
        pytest.skip(f"this clone has no history back to {BEFORE}: git fetch --unshallow")
    folder = tmp_path_factory.mktemp("before")
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


class Yard:
    """A cloud whose host runs one version or the other."""

    def __init__(self, cloud: ScaleCloud, old: Path) -> None:
        self.cloud, self.old, self.dropped = cloud, old, list[str]()

    def is_of(self, app: Path) -> None:
        self.cloud._parts["host"].config["app"] = str(app)
        self.cloud.restart_host()

    def api(self, method: str, path: str, body: Any = None) -> Any:
        answer = httpx.request(method, f"{self.cloud.api}/{path}", json=body, timeout=60)
        assert answer.is_success, answer.text
        return answer.json()

    def drop(self, name: str) -> None:
        """A drop of one file, which becomes a run that is archived."""
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
        """The version that is at work looks at the schedule."""
        queues = self.cloud.system().queues
        before = queues.counts([places.SCHEDULE_LOOKS])
        queues.send(places.SCHEDULE_LOOKS, {"schedule": schedule, "meant": ""})
        wait_for(lambda: queues.counts([places.SCHEDULE_LOOKS]) == before, PATIENCE, "a look at the schedule", 0.3)

    def schedule(self, name: str) -> Any:
        return next(one for one in self.api("GET", "schedules") if one["id"] == name)

    def firings(self, name: str) -> int:
        return len([one for one in self.api("GET", f"schedules/{name}/firings") if one["outcome"] == "started"])


@pytest.fixture
def yard(old_app: Path, tmp_path: Path) -> Iterator[Yard]:
    plan = Plan({"queued_seconds": 0.0, "running_seconds": 0.1}, reconcile="0 0 0 1 1 *")
    with running(tmp_path, plan) as cloud:
        yield Yard(cloud, old_app)


@pytest.mark.parametrize("made_by", ["this", "before"])
def test_a_schedule_of_new_files_fires_once_whichever_version_counts(yard: Yard, made_by: str) -> None:
    """Files that came under either version are counted by both: too few make no run, enough make one; every drop is
    one run; and a pause that the other version ended names nobody."""
    this, before = REPOSITORY, yard.old
    yard.is_of(this if made_by == "this" else before)
    yard.drop("a")
    made = yard.api("POST", "schedules", {"run": RUN, "route": "noop", "new_files": ENOUGH})["id"]
    yard.api("POST", f"schedules/{made}/pause")
    yard.is_of(before if made_by == "this" else this)
    yard.api("POST", f"schedules/{made}/resume")
    yard.drop("b")
    yard.look(made)
    yard.is_of(this)
    assert not yard.schedule(made).get("paused_by")
    yard.drop("c")
    yard.look(made)
    assert yard.firings(made) == 0
    yard.is_of(before)
    yard.look(made)
    assert yard.firings(made) == 0
    yard.drop("d")
    yard.look(made)
    assert yard.firings(made) == 1
    yard.is_of(this)
    yard.look(made)
    assert yard.firings(made) == 1
    scheduled = "noop/a"  # what its run trains on
    assert sorted(run["drop"] for run in yard.runs()) == sorted([*yard.dropped, scheduled])
