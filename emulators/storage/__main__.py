"""`python -m emulators.storage --config FILE.json`: serve the blobs, queues and tables of an account until stopped."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import socket
from pathlib import Path

from emulators import certs
from emulators.process import serve_until_stopped
from emulators.storage.blobs.service import BlobService
from emulators.storage.blobs.store import Blobs
from emulators.storage.common.account import Account
from emulators.storage.common.server import served
from emulators.storage.common.service import Service
from emulators.storage.config import Config, parse
from emulators.storage.queues.service import QueueService
from emulators.storage.queues.store import Queues
from emulators.storage.tables.service import TableService
from emulators.storage.tables.store import Tables


async def serve(config: Config) -> None:
    config.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    ports = _ports(config)
    async with contextlib.AsyncExitStack() as stack:
        blobs = stack.enter_context(contextlib.closing(Blobs(config.state / "blobs.sqlite", config.state / "blobs")))
        queues = stack.enter_context(contextlib.closing(Queues(config.state / "queues.sqlite")))
        tables = stack.enter_context(contextlib.closing(Tables(config.state / "tables.sqlite")))
        log, journal = (
            stack.enter_context(path.open("a", buffering=1)) if path else None
            for path in (config.access_log, config.blob_log)
        )
        services: dict[str, Service] = {
            "blob": BlobService(blobs, config.account, config.key, journal=journal),
            "queue": QueueService(queues, Account(config.account, config.key, "queue")),
            "table": TableService(tables, Account(config.account, config.key, "table", identities=config.identities)),
        }
        urls = {}
        for name, service in services.items():
            ports[name] = await stack.enter_async_context(served(service, config.host, ports[name], log))
            service.endpoint = urls[f"{name}_url"] = f"http://{config.host}:{ports[name]}/{config.account}"
        if config.certs:
            tls = certs.ensure(config.certs).server_context()
            served_at = served(services["table"], config.host, ports["table_tls"], log, tls)
            ports["table_tls"] = await stack.enter_async_context(served_at)
            urls["table_tls_url"] = f"https://{config.host}:{ports['table_tls']}/{config.account}"
        (config.state / "ports.json").write_text(json.dumps(ports))
        await serve_until_stopped(**urls)


def _ports(config: Config) -> dict[str, int]:
    """The configured ports; instead of 0 that of the last start if it is free, so that clients outlive a restart."""
    try:
        saved = json.loads((config.state / "ports.json").read_text())
    except (FileNotFoundError, ValueError):
        saved = {}
    wanted = {"blob": config.blob_port, "queue": config.queue_port, "table": config.table_port, "table_tls": 0}
    return {name: port or _if_free(config.host, saved.get(name, 0)) for name, port in wanted.items()}


def _if_free(host: str, port: int) -> int:
    try:
        with socket.create_server((host, port)):
            return port
    except OSError:
        return 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m emulators.storage", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="the services' configuration, a JSON file")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    asyncio.run(serve(parse(json.loads(arguments.config.read_text()))))


if __name__ == "__main__":
    main()
