"""What the timers ask of storage while nobody uses the system."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from emulators.testing import azurite
from functions import telemetry
from shared.adapters import transport
from shared.adapters.storage.account import clients as storage_clients
from shared.adapters.storage.blobs import StorageBlobs
from shared.adapters.storage.queues import StorageQueues
from shared.adapters.tables.drop_table import TableDrops
from shared.adapters.tables.lease_table import TableLeases
from shared.adapters.tables.money_table import TableBooks
from shared.adapters.tables.run_table import TableRuns
from shared.adapters.tables.sample_table import TableSamples
from shared.adapters.tables.schedule_table import TableSchedules
from shared.adapters.tables.sweep_table import TableSweepLog
from shared.clusters.auto_idle import set_idle_times
from shared.clusters.sweep import sweep
from shared.drops.model import Drop, DropState
from shared.kernel import places
from shared.kernel.drop_key import DropKey
from shared.kernel.settings import Storage
from shared.messages.declared import QUEUES
from shared.money.charge_costs import keep_books
from shared.reconcile import reconcile
from tests.contract.wire import Recording
from tests.fakes.world import PERIOD, ROUTE, World, trainers_folder

MOST = 25
ROUTES = ("bert", "cifar", "data", "detection", "mnist", "transfer")  # as many as routes.yaml has
DECLARED = [*QUEUES, *(f"{queue}-poison" for queue in QUEUES)]  # as infra/ makes them


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> Recording:
    recording = Recording()
    monkeypatch.setattr(transport, "transport", lambda **_: recording)
    return recording


@pytest.fixture
def timers(recording: Recording, account: azurite.Azurite, tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Both timers once, five minutes later, with records and blobs in a real account."""
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
            sweeps=TableSweepLog(made.table),
            samples=TableSamples(made.table),
            leases=TableLeases(made.table),
            books=TableBooks(made.table),
            queues=StorageQueues(made.queue),
            blobs=StorageBlobs(made.blob),
        )
        for route in ROUTES:
            real.blobs.write(places.DROPS_CONTAINER, f"{route}/first/1.bin", b"1", "")
            real.drops.insert(Drop(DropKey(route, "first"), DropState.SEALED, "", world.clock()))
        schedules = TableSchedules(made.table)

        def both() -> None:
            world.clock.advance(PERIOD)
            set_idle_times(real)
            sweep(real)
            keep_books(real)
            reconcile(real, schedules)
            telemetry.measure_queues(real)

        yield both
        for queue in DECLARED:
            made.queue.delete_queue(queue)


def test_a_pair_of_timers_asks_little_while_nothing_happens(
    timers: Callable[[], None], recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With telemetry and a drop in each route it is at most 25 requests, whichever routes and queues it asks this
    time."""
    monkeypatch.setattr(telemetry, "on", lambda: True)
    asked = []
    for _ in range(15):  # the last twelve are an hour, in which each turn of the routes meets each of the queues
        recording.requests.clear()
        timers()
        asked.append(len(recording.requests))
    *usual, hourly = sorted(asked[3:])  # one pair an hour charges anew
    assert usual[-1] <= MOST, recording.requests
    assert hourly <= MOST + 10
