"""`python -m emulators.azureml --config FILE.json`: serve an Azure ML control plane until stopped."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import socket
from collections.abc import AsyncIterator, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from emulators import certs
from emulators.azureml.bodies.responses import tracking_path
from emulators.azureml.composition import Wakes, assembled, kept_routes, own_routes, sampler_of, stored_workspace
from emulators.azureml.kernel import identity
from emulators.azureml.kernel.config import Config, parse
from emulators.azureml.running import certificates
from emulators.azureml.service.server import application
from emulators.azureml.service.web_proxy import WebProxy
from emulators.azureml.storage.blobfront import open_front
from emulators.azureml.storage.blobs import connect
from emulators.azureml.storage.web_folder import WebFolder
from emulators.azureml.workspace.events import Publisher
from emulators.azureml.workspace.store import Store
from emulators.process import serve_until_stopped
from emulators.serving import Listener


async def serve(config: Config) -> None:
    """Serve until the process is stopped. The stop ends running jobs, and the next start runs them again."""
    tls, listener = certs.ensure(config.certs), listen(config)
    base = f"https://{config.host}:{listener.getsockname()[1]}"
    nodes = identity.NodeTokens(config.nodes)
    async with contextlib.AsyncExitStack() as stack:
        reach = await way_to_the_web(stack, config, tls.bundle)
        of_nodes = {**reach, **nodes.environment(base, Path(reach["SSL_CERT_FILE"])), **config.node_environment}
        config = replace(config, node_environment=of_nodes)
        blobs = await stack.enter_async_context(connect(config.connection_string))
        front = await stack.enter_async_context(open_front(blobs.url))
        store = stack.enter_context(contextlib.closing(Store(config.state / "azureml.sqlite")))
        wakes = Wakes()
        workspace = await stored_workspace(config, store, wakes, blobs)
        parts, registries, tracking = await assembled(stack, workspace, blobs, base, wakes)
        if config.events:
            wakes.publisher = Publisher(store, config.events)
            await stack.enter_async_context(background(wakes.publisher.run()))
        sampler = sampler_of(stack, parts)
        kept = kept_routes(stack, parts, registries, tracking, sampler)
        routes = [*own_routes(parts, nodes), *kept, *front.table()]
        http = Listener(application(parts, routes), listener, tls.server_context())
        await http.start()
        stack.push_async_callback(http.close)
        await stack.enter_async_context(background(parts.scheduler.simulation.run()))
        await stack.enter_async_context(background(parts.scheduler.run()))
        await stack.enter_async_context(background(sampler.run()))
        stack.push_async_callback(parts.scheduler.stop)
        env = client_environment(config, base, tls.bundle)
        await serve_until_stopped(url=base, workspace_id=config.workspace_id, env=env)


async def way_to_the_web(stack: contextlib.AsyncExitStack, config: Config, bundle: Path) -> dict[str, str]:
    """Return the variables with which a job reaches the web: this machine's own, or those of the web folder's
    proxy."""
    machine = dict(os.environ)
    if not config.web_folder.is_dir():
        return certificates.of_jobs(config.state, bundle, machine)
    upstream = machine.get("HTTPS_PROXY") or machine.get("https_proxy") or ""
    proxy = WebProxy(WebFolder(config.web_folder), upstream)
    await stack.enter_async_context(proxy.running())
    machine |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), proxy.url)
    return certificates.of_jobs(config.state, bundle, machine, proxy.authority)


def client_environment(config: Config, base: str, bundle: Path) -> dict[str, str]:
    """Return the environment variables with which the unmodified MLClient, DefaultAzureCredential and storage clients
    reach this control plane.

    The cloud's name contains the port, because the SDK caches what it knows about a cloud until its process ends.
    """
    addresses = ("resource_manager", "active_directory", "aml_resource_id", "registry_discovery_endpoint")
    metadata = {
        "azure_portal": "https://portal.local/",
        "storage_endpoint": "core.local",
        **dict.fromkeys(addresses, f"{base}/"),
    }
    kwargs = {"cloud": f"AzureEmulators{base.rpartition(':')[2]}", "cloud_metadata": metadata}
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
    """Bind the configured port. Port 0 means the port of the last start if it is free, so that clients survive a
    restart."""
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
    """Run `work` during the block. If it fails, the whole part ends, because half a control plane is of no use."""
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m emulators.azureml", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="the part's configuration, a JSON file")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("azure").setLevel(logging.WARNING)
    asyncio.run(serve(parse(json.loads(arguments.config.read_text()))))


if __name__ == "__main__":
    main()
