"""Choose the adapter behind each port of the System. Importing this module imports Azure's SDKs; see bootstrap.py."""

from __future__ import annotations

import secrets
from typing import Any

from shared.adapters.azureml import jobs as azureml
from shared.adapters.azureml import models as azureml_models
from shared.adapters.keys import signing
from shared.adapters.outgoing import eventgrid, retail_prices, sending
from shared.adapters.storage import account, blobs, queues
from shared.adapters.tables import (
    asset_table,
    decision_table,
    drop_table,
    lease_table,
    model_table,
    money_table,
    notice_table,
    removal_table,
    run_table,
    sample_table,
    schedule_table,
)
from shared.features import modules
from shared.jobs.batchai.reader import BatchAIJobs
from shared.jobs.ports import Readers
from shared.jobs.readers.command_job import CommandJobs
from shared.jobs.routes_file import load
from shared.kernel.clock import SystemClock
from shared.kernel.index_settings import TRAINERS
from shared.kernel.parallel import in_threads
from shared.kernel.settings import Settings, Workspace
from shared.money import money_file as money
from shared.money.budgets import AccountBudgets
from shared.notices.ports import Post
from shared.system import System


def build(settings: Settings) -> System:
    """Build the System with the real adapters. Sends no request."""
    now = SystemClock()
    clients, routes = account.clients(settings.storage), load(settings.routes_file, TRAINERS, settings.allow)
    files = blobs.StorageBlobs(clients.blob)
    notices = notice_table.TableNotices(clients.table)
    books, policy = money_table.TableBooks(clients.table), money.load(settings.money_file, settings.region)
    return System(
        drops=drop_table.TableDrops(clients.table),
        runs=run_table.TableRuns(clients.table),
        queues=queues.StorageQueues(clients.queue),
        blobs=files,
        jobs=azureml.AzureMLJobs(settings.workspace, asset_table.TableAssets(clients.table), files, clients.account),
        clusters=azureml.AzureMLClusters(settings.workspace),
        decisions=decision_table.TableDecisions(clients.table),
        samples=sample_table.TableSamples(clients.table),
        leases=lease_table.TableLeases(clients.table),
        rules=settings.rules,
        given_settings=settings.given,
        books=books,
        models=model_table.TableModels(clients.table),
        signer=signing.signer_of(settings.signing_key),
        registry=azureml_models.AzureMLModels(settings.workspace),
        money=policy,
        retail=retail_prices.AzureRetailPrices(settings.prices_url, now) if settings.prices_url else None,
        budgets=AccountBudgets(books, policy, now),
        each=in_threads,
        audience=notices,
        post=Post(notices, sending.NoticeSender(settings.mail, settings.notices_inside)),
        schedules=schedule_table.TableSchedules(clients.table),
        removals=removal_table.TableRemovals(clients.table),
        features=_stores_of_features(clients, settings.workspace),
        events=eventgrid.TopicEvents(settings.topic) if settings.topic else None,
        routes=routes.routes,
        limits=routes.limits,
        trainers=TRAINERS,
        clock=now,
        new_token=lambda: secrets.token_hex(8),
        reader=Readers((BatchAIJobs(settings.batchai_account or clients.account), CommandJobs())),
        rendezvous=settings.rendezvous or clients.table.url,
    )


def _stores_of_features(clients: account.StorageClients, workspace: Workspace) -> dict[str, Any]:
    """Return the features' own stores, by name, from the folders of adapters that have a feature's name."""
    found = (module.stores(clients, workspace) for module in modules("stores", "shared.adapters"))
    return {name: store for stores in found for name, store in stores.items()}
