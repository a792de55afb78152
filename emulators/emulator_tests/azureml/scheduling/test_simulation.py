"""Simulated clusters, and lists of many jobs: by property, by page, in time proportional to the page."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator_tests.azureml.clouds import Cloud
from emulator_tests.azureml.conftest import Receiver
from emulators.azureml.kernel.models import Job, Status
from emulators.azureml.workspace.jobs import PROPERTY, TAG, Jobs, Label, Listing
from emulators.azureml.workspace.store import Store
from emulators.process import wait_for

CLUSTERS = [
    {"name": "quick", "simulated": {"queued_seconds": 0.1, "running_seconds": 0.2}},
    {"name": "broken", "simulated": {"running_seconds": 0, "end": "Failed"}},
    {"name": "patient", "simulated": {}},
    {"name": "waiting", "simulated": {"queued_seconds": 3600}},
]
LIFE = ["NotStarted", "Queued", "Preparing", "Running", "Finalizing", "Completed"]


def statuses(receiver: Receiver, run: str) -> list[str]:
    return [e["data"]["runStatus"] for e in receiver.of(run) if e["eventType"].endswith("RunStatusChanged")]


def test_a_simulated_life(own_cloud: Callable[..., Cloud], receiver: Receiver, tmp_path: Path) -> None:
    """Jobs pass through all statuses by the clock or on request, publish an event for each, and leave no process
    and no folder."""
    cloud = own_cloud(clusters=CLUSTERS, events={"url": receiver.url})
    for cluster in ("quick", "broken", "patient", "waiting"):
        cloud.submit(f"s-{cluster}", cluster, "exit 1")
    assert cloud.wait("s-quick")["status"] == "Completed"
    assert cloud.wait("s-broken")["status"] == "Failed"
    assert "told to" in cloud.details("s-broken")["error"]["error"]["message"]
    cloud.wait("s-patient", "Running")
    assert cloud.job("s-waiting")["status"] == "Queued"
    assert cloud.call("POST", "/control/jobs/s-patient/end", {"status": "Completed"}).ok
    assert cloud.call("POST", "/control/jobs/s-patient/end", {"status": "Completed"}).status_code == 400
    wait_for(lambda: statuses(receiver, "s-patient") == LIFE, 60, "the events of a whole life")
    assert statuses(receiver, "s-quick") == LIFE
    assert statuses(receiver, "s-broken") == [*LIFE[:4], "Failed"]
    cloud.arm("POST", "jobs/s-waiting/cancel")
    assert cloud.wait("s-waiting")["status"] == "Canceled"
    assert not list((tmp_path / "azureml-0/state/work").iterdir())


def test_simulated_jobs_survive_a_restart(own_cloud: Callable[..., Cloud]) -> None:
    """After a restart running jobs are queued and run again, queued jobs still wait, and ended jobs are unchanged."""
    cloud = own_cloud(clusters=CLUSTERS)
    for cluster in ("quick", "patient", "waiting"):
        cloud.submit(f"r-{cluster}", cluster, "exit 1")
    cloud.wait("r-quick")
    cloud.wait("r-patient", "Running")
    cloud.restart()
    assert cloud.job("r-quick")["status"] == "Completed"
    assert cloud.wait("r-patient", "Running")["status"] == "Running"
    assert cloud.job("r-waiting")["status"] == "Queued"
    assert {job["name"] for job in cloud.arm("GET", "jobs")["value"]} == {"r-quick", "r-patient", "r-waiting"}


def test_listing_by_properties(own_cloud: Callable[..., Cloud]) -> None:
    """User properties are stored and returned. A list can be filtered by property names and values, separated by
    commas."""
    cloud = own_cloud(clusters=CLUSTERS)
    for number in range(60):
        properties = {"batch": str(number % 2), **({"seven": "yes"} if number % 7 == 0 else {})}
        cloud.submit(f"p{number:02d}", "waiting", "x", properties=properties, tags={"of": str(number % 3)})

    def names(query: str) -> list[str]:
        path, found = f"{cloud.workspace}/jobs?{query}", list[str]()
        while path:
            answer: Any = cloud.call("GET", path).json()
            found += [job["name"] for job in answer["value"]]
            path = answer.get("nextLink", "").removeprefix(cloud.url)
        return found

    def expected(wanted: Callable[[int], bool]) -> list[str]:
        return [f"p{number:02d}" for number in reversed(range(60)) if wanted(number)]

    assert cloud.job("p07")["properties"] == {"batch": "1", "seven": "yes"}
    assert names("") == expected(lambda _: True)  # two pages
    assert names("properties=batch=1") == expected(lambda n: n % 2 == 1)
    assert names("properties=seven,batch=0") == expected(lambda n: n % 14 == 0)
    assert names("properties=batch&tag=of=2") == expected(lambda n: n % 3 == 2)
    assert names("properties=none") == names("properties=batch=7") == names("jobType=Sweep") == []
    cloud.call("PATCH", f"/history/v1.0{cloud.workspace}/experiments/Default/runs/p07", {"hidden": True})
    assert names("listViewType=ArchivedOnly&properties=seven") == ["p07"]
    assert "p07" not in names("properties=seven")
    assert names("listViewType=All&properties=seven") == expected(lambda n: n % 7 == 0)


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(Store(tmp_path / "azureml.sqlite"))


def job(number: int, **properties: Any) -> Job:
    body = {"computeId": "/computes/c", "experimentName": "e", "tags": {}, "properties": {}, **properties}
    return Job(f"j{number}", number, body, "2026-01-01T00:00:00Z", Status.QUEUED)


def test_a_page_reads_a_page(tmp_path: Path) -> None:
    """Listing a page of 2,000 jobs reads about as many rows as it returns, counted by SQLite."""
    store = Store(tmp_path / "azureml.sqlite")
    jobs = Jobs(store)
    for number in range(1, 2001):
        jobs.save(job(number, tags={"a": str(number % 100)}, properties={"b": "1"}), labels=True)
    steps = [0]

    def count() -> int:
        steps[0] += 1
        return 0

    def cost(wanted: Listing) -> int:
        steps[0] = 0
        store._db.set_progress_handler(count, 10)
        assert len(jobs.page(wanted, 10)) == 10
        store._db.set_progress_handler(None, 0)
        return steps[0]

    for wanted in (
        Listing(),
        Listing(before=1000),
        Listing(None, (Label(PROPERTY, "b", "1"),), 1000),
        Listing(False, (Label(TAG, "a", "7"), Label(PROPERTY, "b", None))),
    ):
        assert cost(wanted) < 100  # times ten instructions; reading all 2,000 takes over 1,500


def test_an_ended_job_leaves_the_memory(jobs: Jobs) -> None:
    """An ended job leaves the memory, and every request about it is answered from the store."""
    one, two = job(1, tags={"a": "1"}), job(2)
    for each in (one, two):
        jobs.save(each, labels=True)
    jobs.move(one, Status.FAILED)
    jobs.save(one)
    assert list(jobs.live()) == [two]
    assert jobs.on_cluster("c", frozenset(Status)) == [two]
    found = jobs.get("j1")
    assert found is not None
    assert found is not one
    assert dataclasses.asdict(found) == dataclasses.asdict(one)
    assert [each.name for each in jobs.page(Listing(), 5)] == ["j2", "j1"]
    assert [each.name for each in jobs.page(Listing(labels=(Label(TAG, "a", None),)), 5)] == ["j1"]
