"""The one place where settings become adapters. SDKs are imported on the first call, not while the app is indexed."""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

from shared.jobs.routes_file import load
from shared.kernel.index_settings import ROOT, money_file, routes_file
from shared.kernel.parallel import in_threads
from shared.money import money_file as money

if TYPE_CHECKING:
    from shared.adapters.tables.notice_table import TableNotices
    from shared.kernel.settings import Settings
    from shared.notices.deliver import Post
    from shared.removals.ports import Removals
    from shared.schedules.ports import Schedules
    from shared.sweeps.ports import Studies
    from shared.system import System

TRAINERS = ROOT / "trainers"


def check_routes() -> None:
    """Raise BadSetting for a broken routes file, when the app is indexed.

    The app does not start then, and its messages wait. Without this each would fail five times and be set aside.
    """
    load(routes_file(os.environ), TRAINERS)
    money.load(money_file(os.environ))


def _settings() -> Settings:
    from shared.kernel.settings import Settings

    return Settings.from_env(os.environ)


@cache
def system() -> System:
    """The system of this process, made on the first call from os.environ. Raises BadSetting."""
    return replace(build(_settings()), audience=_notices())


@cache
def post() -> Post:
    """How notices are kept and sent, made on the first call from os.environ. Raises BadSetting."""
    from shared.adapters.outgoing import sending
    from shared.notices.deliver import Post

    settings = _settings()
    sender = sending.NoticeSender(settings.mail, settings.notices_inside)
    return Post(_notices(), sender)


@cache
def _notices() -> TableNotices:
    from shared.adapters.storage import account
    from shared.adapters.tables import notice_table

    return notice_table.TableNotices(account.clients(_settings().storage).table)


@cache
def schedules() -> Schedules:
    """Where schedules are kept, made on the first call from os.environ. Raises BadSetting."""
    from shared.adapters.storage import account
    from shared.adapters.tables import schedule_table

    return schedule_table.TableSchedules(account.clients(_settings().storage).table)


@cache
def studies() -> Studies:
    """Where sweeps keep what they learned, made on the first call from os.environ. Raises BadSetting."""
    from shared.adapters.storage import account
    from shared.adapters.studies import JournalStudies
    from shared.adapters.tables.study_table import TableJournal

    tables = account.clients(_settings().storage).table
    return JournalStudies(lambda name: TableJournal(lambda: tables, name))


@cache
def removals() -> Removals:
    """Where removals are recorded, made on the first call from os.environ. Raises BadSetting."""
    from shared.adapters.storage import account
    from shared.adapters.tables import removal_table

    return removal_table.TableRemovals(account.clients(_settings().storage).table)


def now() -> datetime:
    return datetime.now(UTC)


def build(settings: Settings) -> System:
    """Wire the real adapters. No request is sent yet."""
    from shared.adapters.azureml import jobs as azureml
    from shared.adapters.azureml import models as azureml_models
    from shared.adapters.keys import signing
    from shared.adapters.outgoing import eventgrid, retail_prices
    from shared.adapters.storage import account, blobs, queues
    from shared.adapters.tables import (
        asset_table,
        drop_table,
        lease_table,
        model_table,
        money_table,
        run_table,
        sample_table,
        sweep_table,
    )
    from shared.jobs.batchai.reader import BatchAIJobs
    from shared.jobs.ports import Readers
    from shared.jobs.readers.command_job import CommandJobs
    from shared.money.budgets import AccountBudgets
    from shared.system import System

    clients, routes = account.clients(settings.storage), load(settings.routes_file, TRAINERS)
    files = blobs.StorageBlobs(clients.blob)
    jobs = azureml.AzureMLJobs(settings.workspace, asset_table.TableAssets(clients.table), files, clients.account)
    books, policy = money_table.TableBooks(clients.table), money.load(settings.money_file, settings.region)
    return System(
        drops=drop_table.TableDrops(clients.table),
        runs=run_table.TableRuns(clients.table),
        queues=queues.StorageQueues(clients.queue),
        blobs=files,
        jobs=jobs,
        clusters=azureml.AzureMLClusters(settings.workspace),
        sweeps=sweep_table.TableSweepLog(clients.table),
        samples=sample_table.TableSamples(clients.table),
        leases=lease_table.TableLeases(clients.table),
        rules=settings.rules,
        books=books,
        models=model_table.TableModels(clients.table),
        signer=signing.signer_of(settings.signing_key),
        registry=azureml_models.AzureMLModels(settings.workspace),
        money=policy,
        retail=retail_prices.AzureRetailPrices(settings.prices_url, now) if settings.prices_url else None,
        budgets=AccountBudgets(books, policy, now),
        each=in_threads,
        events=eventgrid.TopicEvents(settings.topic) if settings.topic else None,
        routes=routes.routes,
        limits=routes.limits,
        trainers=TRAINERS,
        clock=now,
        new_token=lambda: secrets.token_hex(8),
        reader=Readers((BatchAIJobs(settings.batchai_account or clients.account), CommandJobs())),
        rendezvous=settings.rendezvous or clients.table.url,
    )
