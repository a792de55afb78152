"""The one place where settings become adapters. SDKs are imported on the first call, not while the app is indexed."""

from __future__ import annotations

import os
import secrets
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

from shared.jobs.routes_file import load
from shared.kernel.parallel import in_threads
from shared.kernel.settings import ROOT, Settings, routes_file

if TYPE_CHECKING:
    from shared.system import System

TRAINERS = ROOT / "trainers"


def check_routes() -> None:
    """Raise BadSetting for a broken routes file, when the app is indexed.

    The app does not start then, and its messages wait. Without this each would fail five times and be set aside.
    """
    load(routes_file(os.environ), TRAINERS)


@cache
def system() -> System:
    """The system of this process, made on the first call from os.environ. Raises BadSetting."""
    return build(Settings.from_env(os.environ))


def build(settings: Settings) -> System:
    """Wire the real adapters. No request is sent yet."""
    from shared.adapters import (
        asset_table,
        azureml,
        blobs,
        drop_table,
        eventgrid,
        lease_table,
        queues,
        run_table,
        sample_table,
        storage,
        sweep_table,
    )
    from shared.system import System

    clients, routes = storage.clients(settings.storage), load(settings.routes_file, TRAINERS)
    jobs = azureml.AzureMLJobs(settings.workspace, asset_table.TableAssets(clients.table), clients.account)
    return System(
        drops=drop_table.TableDrops(clients.table),
        runs=run_table.TableRuns(clients.table),
        queues=queues.StorageQueues(clients.queue),
        blobs=blobs.StorageBlobs(clients.blob),
        jobs=jobs,
        clusters=azureml.AzureMLClusters(settings.workspace),
        sweeps=sweep_table.TableSweepLog(clients.table),
        samples=sample_table.TableSamples(clients.table),
        leases=lease_table.TableLeases(clients.table),
        rules=settings.rules,
        each=in_threads,
        events=eventgrid.TopicEvents(settings.topic) if settings.topic else None,
        routes=routes.routes,
        limits=routes.limits,
        trainers=TRAINERS,
        clock=lambda: datetime.now(UTC),
        new_token=lambda: secrets.token_hex(8),
        batchai_account=settings.batchai_account or clients.account,
        rendezvous=settings.rendezvous or clients.table.url,
    )
