"""The storage requests of the timers while the system is unused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from emulators.testing import azurite
from functions import telemetry
from shared.adapters import transport
from shared.adapters.storage.account import clients as storage_clients
from shared.adapters.storage.blobs import StorageBlobs
from shared.adapters.storage.queues import StorageQueues
from shared.adapters.tables.decision_table import TableDecisions
from shared.adapters.tables.drop_table import TableDrops
from shared.adapters.tables.lease_table import TableLeases
from shared.adapters.tables.money_table import TableBooks
from shared.adapters.tables.run_table import TableRuns
from shared.adapters.tables.sample_table import TableSamples
from shared.adapters.tables.schedule_table import TableSchedules
from shared.clusters.auto_idle import set_idle_times
from shared.clusters.samples import Sample
from shared.clusters.scaling import scale_clusters
from shared.drops.model import Drop, DropState
from shared.kernel import places
from shared.kernel.drop_key import DropKey
from shared.kernel.settings import Storage
from shared.messages.declared import QUEUES
from shared.money.charge_costs import keep_books
from shared.reconcile import reconcile
from shared.runs.model import Moment, RunState
from shared.system import System
from tests.contract.some_runs import NOW
from tests.contract.some_runs import run as some_run
from tests.contract.wire import Recording
from tests.fakes.world import PERIOD, ROUTE, World, trainers_folder

MOST = 25
ROUTES = ("bert", "cifar", "data", "detection", "mnist", "transfer")  # as many routes as routes.yaml has
DECLARED = [*QUEUES, *(f"{queue}-poison" for queue in QUEUES)]  # the queues that infra/ creates


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> Recording:
    recording = Recording()
    monkeypatch.setattr(transport, "transport", lambda **_: recording)
    return recording


@dataclass
class Timers:
    """Both timers, with records and blobs in a real account."""

    world: World
    system: System
    schedules: TableSchedules
    recording: Recording

    def requests(self) -> list[str]:
        """The requests of both timers, run once, five minutes later."""
        self.recording.requests.clear()
        self.world.clock.advance(PERIOD)
        set_idle_times(self.system)
        scale_clusters(self.system)
        keep_books(self.system)
        reconcile(self.system, self.schedules)
        telemetry.measure_queues(self.system)
        return list(self.recording.requests)


@pytest.fixture
def timers(recording: Recording, account: azurite.Azurite, tmp_path: Path) -> Iterator[Timers]:
    made = storage_clients(Storage(connection_string=account.connection_string))
    with closing(made.blob), closing(made.queue), closing(made.table):
        for table in made.table.list_tables():
            made.table.delete_table(table.name)
        for queue in DECLARED:
            made.queue.create_queue(queue)
        world = World(trainers_folder(tmp_path), [replace(ROUTE, name=route) for route in ROUTES])
        real = replace(
            world.system,
            drops=TableDrops(made.table),
            runs=TableRuns(made.table),
            decisions=TableDecisions(made.table),
            samples=TableSamples(made.table),
            leases=TableLeases(made.table),
            books=TableBooks(made.table),
            queues=StorageQueues(made.queue),
            blobs=StorageBlobs(made.blob),
        )
        for route in ROUTES:
            real.blobs.write(places.DROPS_CONTAINER, f"{route}/first/1.bin", b"1", "")
            real.drops.insert(Drop(DropKey(route, "first"), DropState.SEALED, "", world.clock()))
        yield Timers(world, real, TableSchedules(made.table), recording)
        for queue in DECLARED:
            made.queue.delete_queue(queue)


def test_a_pair_of_timers_asks_little_while_nothing_happens(timers: Timers, monkeypatch: pytest.MonkeyPatch) -> None:
    """With telemetry and a drop in each route, a pair of timers makes at most 25 requests, whichever routes and
    queues are checked this time."""
    monkeypatch.setattr(telemetry, "on", lambda: True)
    asked = [timers.requests() for _ in range(15)]
    # the last twelve cover an hour, in which each turn of the routes is combined with each of the queues
    *usual, hourly = sorted(asked[3:], key=len)  # one pair per hour charges the cluster anew
    assert len(usual[-1]) <= MOST, usual[-1]
    assert len(hourly) <= MOST + 10


def test_a_pair_of_timers_asks_little_after_a_run(timers: Timers, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a quarter of an hour after a cluster had nodes, and then once an hour, the cluster is charged anew, which
    reads each day of its samples once. Otherwise only the check of the run's hour is added."""
    monkeypatch.setattr(telemetry, "on", lambda: True)
    timers.world.clock.advance(timedelta(days=5, hours=12).total_seconds())
    began, ended = timers.world.clock() - timedelta(hours=1, minutes=5), timers.world.clock() - timedelta(minutes=5)
    history = (Moment(RunState.RUNNING, began), Moment(RunState.COMPLETED, ended))
    facts: dict[str, Any] = {"state": RunState.COMPLETED, "history": history, "job": "mnist-0", "archived_at": ended}
    timers.system.runs.insert(some_run("mnist-0", (began - NOW).total_seconds(), **facts))
    for minutes in range(0, 60, 5):
        timers.system.samples.record(Sample("cpu-cluster", began + timedelta(minutes=minutes), running=1))
    asked = [timers.requests() for _ in range(15)]
    for requests in asked:
        days = Counter(each for each in requests if each.startswith("GET") and "/samples()" in each)
        assert set(days.values()) == {1}
    *usual, hourly = sorted(asked[4:], key=len)
    assert len(max(*asked[2:4], hourly, key=len)) <= MOST + 7
    assert len(usual[-1]) <= MOST + 3
