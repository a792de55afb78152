"""The services of one account on their ports."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from emulators import certs
from emulators.storage.blobs.access import BlobAccount
from emulators.storage.blobs.service import BlobService
from emulators.storage.blobs.store import Blobs
from emulators.storage.common.account import Account
from emulators.storage.common.identities import Identities
from emulators.storage.common.reserve import Reserve
from emulators.storage.common.server import served
from emulators.storage.common.service import Service
from emulators.storage.common.unsigned import Unsigned
from emulators.storage.config import Config
from emulators.storage.queues.service import QueueService
from emulators.storage.queues.store import Queues
from emulators.storage.tables.service import TableService
from emulators.storage.tables.store import Tables


@contextlib.asynccontextmanager
async def serving(config: Config, clock: Callable[[], float] = time.time) -> AsyncIterator[dict[str, str]]:
    """Serve during the block, and yield the addresses: `blob_url` and so on."""
    config.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    ports = _ports(config)
    async with contextlib.AsyncExitStack() as stack:
        folder = config.state
        blobs = stack.enter_context(
            contextlib.closing(Blobs(folder / "blobs.sqlite", folder / "blobs", clock, config.versioning))
        )
        queues = stack.enter_context(contextlib.closing(Queues(folder / "queues.sqlite", clock)))
        tables = stack.enter_context(contextlib.closing(Tables(folder / "tables.sqlite", clock)))
        log, journal = (
            stack.enter_context(path.open("a", buffering=1)) if path else None
            for path in (config.access_log, config.blob_log)
        )

        facts = (config.account, config.key)
        who = {name: _identities(config, name, clock) for name in ("blob", "queue", "table")}
        services: dict[str, Service[Any]] = {
            "blob": BlobService(
                blobs,
                BlobAccount(*facts, "blob", clock, who["blob"], allows_public=config.public_access),
                journal=journal,
                web_sources=config.web_sources,
            ),
            "queue": QueueService(queues, Account(*facts, "queue", clock, who["queue"])),
            "table": TableService(tables, Account(*facts, "table", clock, who["table"])),
        }
        urls = {}
        reserve = Reserve(folder)
        for name, service in services.items():
            service.reserve = reserve
            ports[name] = await stack.enter_async_context(served(service, config.host, ports[name], log))
            service.endpoint = urls[f"{name}_url"] = f"http://{config.host}:{ports[name]}/{config.account}"
        tls = certs.ensure(config.certs).server_context() if config.certs else None
        for name, service in services.items() if tls else ():
            served_at = served(service, config.host, ports[f"{name}_tls"], log, tls)
            ports[f"{name}_tls"] = await stack.enter_async_context(served_at)
            urls[f"{name}_tls_url"] = f"https://{config.host}:{ports[f'{name}_tls']}/{config.account}"
        (config.state / "ports.json").write_text(json.dumps(ports))
        yield urls


def _identities(config: Config, service: str, clock: Callable[[], float]) -> Identities | None:
    return Unsigned(config.account, service, clock) if config.oauth else config.identities


def _ports(config: Config) -> dict[str, int]:
    """Return the configured ports. Port 0 means the port of the last start if it is free, so that clients survive a
    restart."""
    try:
        saved = json.loads((config.state / "ports.json").read_text())
    except (FileNotFoundError, ValueError):
        saved = {}
    wanted = {"blob": config.blob_port, "queue": config.queue_port, "table": config.table_port}
    wanted |= {f"{name}_tls": 0 for name in ("blob", "queue", "table")}
    return {name: port or _if_free(config.host, saved.get(name, 0)) for name, port in wanted.items()}


def _if_free(host: str, port: int) -> int:
    try:
        with socket.create_server((host, port)):
            return port
    except OSError:
        return 0
