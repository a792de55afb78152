"""Assembles the control plane from its parts."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import tempfile
from pathlib import Path

from aiohttp import web

from emulators.azureml.bodies.responses import Wire
from emulators.azureml.environments.builder import Environments
from emulators.azureml.kernel import identity
from emulators.azureml.kernel.config import Config
from emulators.azureml.kernel.models import TERMINAL
from emulators.azureml.kernel.sources import AssetRef
from emulators.azureml.metrics.sampler import Sampler, Samples
from emulators.azureml.running.context import Site
from emulators.azureml.running.mounts import Mounts
from emulators.azureml.running.process_guard import Guard
from emulators.azureml.scheduling.evictions import Evictions
from emulators.azureml.scheduling.scheduler import Scheduler
from emulators.azureml.service.arm_routes import ArmRoutes
from emulators.azureml.service.asset_routes import AssetRoutes
from emulators.azureml.service.compute_routes import ComputeRoutes
from emulators.azureml.service.control_routes import ControlRoutes
from emulators.azureml.service.history_routes import HistoryRoutes
from emulators.azureml.service.job_routes import JobRoutes
from emulators.azureml.service.metrics_routes import MetricsRoutes
from emulators.azureml.service.operations import Operations
from emulators.azureml.service.preflight import Needs
from emulators.azureml.service.registry_routes import RegistryRoutes
from emulators.azureml.service.server import Parts, Recorder
from emulators.azureml.storage.blobs import Blobs, Place
from emulators.azureml.storage.web_folder import WebFolder
from emulators.azureml.tracking.tracking import Tracking
from emulators.azureml.tracking.tracking_routes import TrackingRoutes
from emulators.azureml.workspace.events import Publisher
from emulators.azureml.workspace.places import Places
from emulators.azureml.workspace.recipes import Recipes
from emulators.azureml.workspace.registering import Register
from emulators.azureml.workspace.registry_folder import RegistryFolder
from emulators.azureml.workspace.store import Store
from emulators.azureml.workspace.workspace import Workspace
from emulators.private import private_folder, remove_folder

STORAGE_SECONDS = 30.0  # for the storage account to start beside this part


class Wakes:
    """Wakes both the scheduler and the publisher. The workspace calls it after every change."""

    def __init__(self) -> None:
        self.scheduler = asyncio.Event()
        self.publisher: Publisher | None = None

    def __call__(self) -> None:
        self.scheduler.set()
        if self.publisher:
            self.publisher.wake.set()


async def stored_workspace(config: Config, store: Store, wakes: Wakes, blobs: Blobs) -> Workspace:
    """Return the stored workspace, with the required datastores and clusters, and with a container for each
    datastore.
    """
    workspace = Workspace(config, store, wakes)
    workspace.seed()
    workspace.recover()
    await blobs.reachable(STORAGE_SECONDS)
    for datastore in workspace.datastores.values():
        await blobs.create_container(datastore.container)
    return workspace


async def assembled(
    stack: contextlib.AsyncExitStack, workspace: Workspace, blobs: Blobs, base: str, wakes: Wakes
) -> tuple[Parts, RegistryFolder, Tracking]:
    """Create all objects that the routes use. Closing the stack ends running processes."""
    config = workspace.config
    guard = stack.enter_context(contextlib.closing(Guard()))
    places = Places(workspace, blobs.account)
    recipes = Recipes(workspace, blobs, places, config.made_of)
    site = _site(workspace, blobs, guard, base, recipes)
    stack.callback(site.environments.close)
    site.environments.tidy()
    registries = RegistryFolder(config.registries or config.state / "registries", blobs, workspace.registries)
    await registries.refresh()
    needs = Needs(recipes, places, site.environments, registries, WebFolder(config.web_folder), blobs)
    tracking = Tracking(workspace, config.state)
    stack.push_async_callback(tracking.close)
    scheduler = Scheduler(workspace, site, wakes.scheduler, tracking.metric)
    wire, recorder = Wire(config, base, blobs.account), Recorder(config.record_bodies)
    return Parts(config, workspace, scheduler, blobs, wire, Operations(), recorder, needs), registries, tracking


def own_routes(parts: Parts, nodes: identity.NodeTokens) -> list[web.RouteDef]:
    """Return the routes for everything that the workspace itself stores, and for tokens."""
    return [
        web.get("/msi/token", identity.give_token),
        web.get(identity.NODES_PATH, nodes.give),
        *ArmRoutes(parts, parts.workspace.created).table(),
        *AssetRoutes(parts).table(),
        *ComputeRoutes(parts).table(),
        *JobRoutes(parts).table(),
        *HistoryRoutes(parts).table(),
    ]


def sampler_of(stack: contextlib.AsyncExitStack, parts: Parts) -> Sampler:
    """Return the meter of the nodes, with its file. The stack closes the file."""
    samples = stack.enter_context(contextlib.closing(Samples(parts.config.state / "metrics.sqlite")))
    return Sampler(parts.workspace, parts.scheduler, samples)


def kept_routes(
    stack: contextlib.AsyncExitStack, parts: Parts, registries: RegistryFolder, tracking: Tracking, sampler: Sampler
) -> list[web.RouteDef]:
    """Return the routes of registries, of metrics, and of services that start processes. The processes end with the
    stack."""
    evictions = Evictions(parts.workspace, parts.scheduler)
    stack.push_async_callback(evictions.stop)
    return [
        *TrackingRoutes(parts, tracking).table(),
        *RegistryRoutes(parts, registries).table(),
        *MetricsRoutes(parts, sampler).table(),
        *ControlRoutes(parts, evictions).table(),
        *evictions.table(),
    ]


def _site(workspace: Workspace, blobs: Blobs, guard: Guard, base: str, recipes: Recipes) -> Site:
    config, places = workspace.config, Places(workspace, blobs.account)

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
    """Return the folder of the jobs' files on this machine, after removing the folders of ended jobs. Its path
    needs no quoting in a shell, because commands contain it unquoted."""
    work = state.resolve() / "work"
    if shlex.quote(work.as_posix()) != work.as_posix():
        work = Path(tempfile.gettempdir()) / f"emulators-{workspace.config.workspace_guid}"
        if work.is_symlink():  # another user may have created it in a shared folder
            raise PermissionError(f"{work} is a link; remove it")
    private_folder(work)
    for folder in work.iterdir():
        job = workspace.jobs.get(folder.name)
        if job is None or job.status in TERMINAL:
            remove_folder(folder)
    return work
