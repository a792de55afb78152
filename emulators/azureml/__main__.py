"""`python -m emulators.azureml --config FILE.json`: serve an Azure ML control plane until stopped."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import shlex
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiohttp import web

from emulators import certs
from emulators.azureml import identity
from emulators.azureml.arm_routes import ArmRoutes
from emulators.azureml.asset_routes import AssetRoutes
from emulators.azureml.blobfront import BlobFront, open_front
from emulators.azureml.blobs import Blobs, Place, connect
from emulators.azureml.compute_routes import ComputeRoutes
from emulators.azureml.config import Config, parse
from emulators.azureml.control import ControlRoutes
from emulators.azureml.environments import Environments
from emulators.azureml.events import Publisher
from emulators.azureml.evictions import Evictions
from emulators.azureml.guard import Guard
from emulators.azureml.job_routes import JobRoutes
from emulators.azureml.models import TERMINAL
from emulators.azureml.mounts import Mounts
from emulators.azureml.needs import Needs
from emulators.azureml.operations import Operations
from emulators.azureml.places import Places
from emulators.azureml.recipes import Recipes
from emulators.azureml.registering import Register
from emulators.azureml.registry_folder import RegistryFolder
from emulators.azureml.registry_routes import RegistryRoutes
from emulators.azureml.scheduler import Scheduler
from emulators.azureml.server import Parts, Recorder, application
from emulators.azureml.site import Site
from emulators.azureml.sources import AssetRef
from emulators.azureml.store import Store
from emulators.azureml.tracking import Tracking
from emulators.azureml.tracking_routes import TrackingRoutes
from emulators.azureml.wire import Wire, tracking_path
from emulators.azureml.workspace import Workspace
from emulators.private import private_folder
from emulators.process import serve_until_stopped
from emulators.serving import Listener

STORAGE_SECONDS = 30.0  # that the storage account may take to start beside this part


class Wakes:
    """Wakes the scheduler and the publisher together; the workspace calls it after every change."""

    def __init__(self) -> None:
        self.scheduler = asyncio.Event()
        self.publisher: Publisher | None = None

    def __call__(self) -> None:
        self.scheduler.set()
        if self.publisher:
            self.publisher.wake.set()


async def serve(config: Config) -> None:
    """Serve until the process is told to stop. Jobs that still run then are stopped, and run again after a start."""
    tls = certs.ensure(config.certs)
    listener = listen(config)
    base = f"https://{config.host}:{listener.getsockname()[1]}"
    nodes = identity.NodeTokens(config.nodes)
    of_nodes = {**nodes.environment(base, tls.bundle), **config.node_environment}
    config = replace(config, node_environment=of_nodes)
    async with contextlib.AsyncExitStack() as stack:
        blobs = await stack.enter_async_context(connect(config.connection_string))
        front = await stack.enter_async_context(open_front(blobs.url))
        store = stack.enter_context(contextlib.closing(Store(config.state / "azureml.sqlite")))
        wakes = Wakes()
        workspace = Workspace(config, store, wakes)
        workspace.seed()
        workspace.recover()
        await blobs.reachable(STORAGE_SECONDS)
        for datastore in workspace.datastores.values():
            await blobs.create_container(datastore.container)
        guard = stack.enter_context(contextlib.closing(Guard()))
        places = Places(workspace, blobs.account)
        recipes = Recipes(workspace, blobs, places, config.made_of)
        site = _site(config, workspace, blobs, guard, base, places, recipes)
        stack.callback(site.environments.close)
        site.environments.tidy()
        registries = RegistryFolder(config.registries or config.state / "registries", blobs, workspace.registries)
        await registries.refresh()
        needs = Needs(recipes, places, site.environments, registries)
        scheduler = Scheduler(workspace, site, wakes.scheduler)
        if config.events:
            wakes.publisher = Publisher(store, config.events)
            await stack.enter_async_context(background(wakes.publisher.run()))
        wire = Wire(config, base, blobs.account)
        parts = Parts(config, workspace, scheduler, blobs, wire, Operations(), Recorder(config.record_bodies), needs)
        tracking = Tracking(workspace, config.state)
        stack.push_async_callback(tracking.close)
        evictions = Evictions(workspace, scheduler)
        stack.push_async_callback(evictions.stop)
        routes = [
            *TrackingRoutes(parts, tracking).table(),
            *RegistryRoutes(parts, registries).table(),
            *ControlRoutes(parts, evictions).table(),
            *evictions.table(),
        ]
        http = Listener(_application(parts, front, nodes, routes), listener, tls.server_context())
        await http.start()
        stack.push_async_callback(http.close)
        await stack.enter_async_context(background(scheduler.simulation.run()))
        await stack.enter_async_context(background(scheduler.run()))
        stack.push_async_callback(scheduler.stop)
        env = client_environment(config, base, tls.bundle)
        await serve_until_stopped(url=base, workspace_id=config.workspace_id, env=env)


def client_environment(config: Config, base: str, bundle: Path) -> dict[str, str]:
    """What makes the unmodified MLClient, DefaultAzureCredential and storage clients reach this control plane.

    The cloud's name holds the port: the SDK keeps what it learnt about a cloud for the life of the process.
    """
    addresses = ("resource_manager", "active_directory", "aml_resource_id", "registry_discovery_endpoint")
    metadata = {
        "azure_portal": "https://portal.local/",
        "storage_endpoint": "core.local",
        **dict.fromkeys(addresses, f"{base}/"),
    }
    kwargs = {"cloud": f"TrainyardLocal{base.rpartition(':')[2]}", "cloud_metadata": metadata}
    return {
        "AML_SUBSCRIPTION_ID": config.subscription_id,
        "AML_RESOURCE_GROUP": config.resource_group,
        "AML_WORKSPACE": config.workspace,
        "AML_CLIENT_KWARGS": json.dumps(kwargs),
        "REQUESTS_CA_BUNDLE": str(bundle.resolve()),
        "SSL_CERT_FILE": str(bundle.resolve()),
        "MLFLOW_TRACKING_URI": base + tracking_path(config.workspace_id),
        "MLFLOW_TRACKING_TOKEN": identity.token(base),
        "IDENTITY_ENDPOINT": f"{base}/msi/token",
        "IDENTITY_HEADER": identity.HEADER,
    }


def listen(config: Config) -> socket.socket:
    """Bind the configured port; for port 0 that of the last start if it is free, so that clients outlive a restart."""
    config.state.mkdir(parents=True, exist_ok=True)
    saved = config.state / "port"
    wanted = config.port or (int(saved.read_text()) if saved.exists() else 0)
    try:
        listener = socket.create_server((config.host, wanted))
    except OSError:
        if config.port:
            raise
        listener = socket.create_server((config.host, 0))
    saved.write_text(str(listener.getsockname()[1]))
    return listener


@contextlib.asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run `work` for the length of the block. If it breaks, the whole part ends: half a control plane helps nobody."""
    owner = asyncio.current_task()
    task = asyncio.create_task(work)

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and owner:
            logging.getLogger(__name__).critical("a background task broke", exc_info=task.exception())
            owner.cancel()

    task.add_done_callback(ended)
    try:
        yield
    finally:
        task.remove_done_callback(ended)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _application(
    parts: Parts, front: BlobFront, nodes: identity.NodeTokens, more: list[web.RouteDef]
) -> web.Application:
    created = parts.workspace.created
    routes = [
        web.get("/msi/token", identity.give_token),
        web.get(identity.NODES_PATH, nodes.give),
        *ArmRoutes(parts, created).table(),
        *AssetRoutes(parts).table(),
        *ComputeRoutes(parts).table(),
        *JobRoutes(parts).table(),
        *more,
        *front.table(),
    ]
    return application(parts, routes)


def _site(
    config: Config, workspace: Workspace, blobs: Blobs, guard: Guard, base: str, places: Places, recipes: Recipes
) -> Site:
    def code_place(code: AssetRef) -> Place:
        return blobs.place_of(workspace.find(code).properties["codeUri"])

    work = _work_folder(config.state, workspace)
    python = Path(config.python).absolute()
    return Site(
        config=config,
        blobs=blobs,
        guard=guard,
        environments=Environments((config.environments or config.state / "environments").resolve(), python),
        service_url=base,
        work=work,
        mounts=Mounts(work / ".mounts"),  # no job's name begins with a dot
        places=places,
        code_place=code_place,
        recipe=recipes.find,
        register=Register(workspace, places),
        own_mounts=lambda: workspace.faults.own_mounts,
    )


def _work_folder(state: Path, workspace: Workspace) -> Path:
    """Where jobs live on this machine, emptied of those that have ended. A shell must take its path as one word, as
    commands get paths in it unquoted."""
    work = state.resolve() / "work"
    if shlex.quote(work.as_posix()) != work.as_posix():
        work = Path(tempfile.gettempdir()) / f"trainyard-{workspace.config.workspace_guid}"
        if work.is_symlink():  # in a folder where all may write, somebody else may have laid it
            raise PermissionError(f"{work} is a link; remove it")
    private_folder(work)
    for folder in work.iterdir():
        job = workspace.jobs.get(folder.name)
        if job is None or job.status in TERMINAL:
            shutil.rmtree(folder, ignore_errors=True)
    return work


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m emulators.azureml", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="the part's configuration, a JSON file")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("azure").setLevel(logging.WARNING)
    asyncio.run(serve(parse(json.loads(arguments.config.read_text()))))


if __name__ == "__main__":
    main()
