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

BEFORE = "c722ba49d1"  # the last one that went out
PATIENCE = 90.0
RUN = {"template": "noop", "data": "drops/noop/a"}
ENOUGH = 3  # new files make a scheduled run


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

    def _counted(self, name: str) -> Any:
        return next(one for one in self.api("GET", "schedules") if one["id"] == name)

    def firings(self, name: str) -> int:
        return len([one for one in self.api("GET", f"schedules/{name}/firings") if one["outcome"] == "started"])


@pytest.fixture
def yard(old_app: Path, tmp_path: Path) -> Iterator[Yard]:
    plan = Plan({"queued_seconds": 0.0, "running_seconds": 0.1}, reconcile="0 0 0 1 1 *")
    with running(tmp_path, plan) as cloud:
        yield Yard(cloud, old_app)


@pytest.mark.parametrize("first", ["this", "before"])
def test_a_schedule_of_new_files_fires_once_whichever_version_counts(yard: Yard, first: str) -> None:
    """Two files that came under either version are not enough, the third is, once; every drop is one run; and a pause
    that the other version ended names nobody."""
    versions = [REPOSITORY, yard.old] if first == "this" else [yard.old, REPOSITORY]
    yard.is_of(versions[0])
    yard.drop("a")
    made = yard.api("POST", "schedules", {"run": RUN, "route": "noop", "new_files": ENOUGH})["id"]
    other = yard.api("POST", "schedules", {"run": RUN, "cron": "0 0 1 1 *"})["id"]
    yard.api("POST", f"schedules/{other}/pause")
    for name, version in zip("bc", reversed(versions), strict=True):
        yard.is_of(version)
        yard.drop(name)
        yard.look(made)
        assert yard.firings(made) == 0, f"after {name}"
    yard.is_of(versions[1])
    yard.api("POST", f"schedules/{other}/resume")
    yard.drop("d")
    yard.look(made)
    yard.is_of(versions[0])
    yard.look(made)
    wait_for(lambda: yard.firings(made) == 1, PATIENCE, "the scheduled run", 0.3)
    assert sorted(run["drop"] for run in yard.runs() if run["drop"]) == sorted(yard.dropped)
    assert len([run for run in yard.runs() if not run["drop"]]) == 1
    assert not yard._counted(other).get("paused_by")
