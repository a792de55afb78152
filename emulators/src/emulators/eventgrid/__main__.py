"""python -m emulators.eventgrid --config FILE.json: serve until stopped. The package's docstring has the
description."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import aiohttp
from aiohttp import web

from emulators import certs
from emulators.eventgrid import accesslog, config
from emulators.eventgrid.accesslog import Tail
from emulators.eventgrid.broker import Broker
from emulators.eventgrid.config import Config, QueueTarget, Subscription
from emulators.eventgrid.destinations import Destination, Queue, Webhook
from emulators.eventgrid.server import Server
from emulators.eventgrid.source import BlobSource
from emulators.eventgrid.storage import Storage, account
from emulators.eventgrid.store import Store
from emulators.process import serve_until_stopped
from emulators.serving import Listener

STORAGE_SECONDS, AGAIN_SECONDS = 30.0, 0.05  # the account starts at the same time as this part
MADE = (201, 204, 409)  # created, or already existing

log = logging.getLogger(__name__)
MakeDestination = Callable[[Subscription], Destination]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m emulators.eventgrid", description="A local Azure Event Grid.")
    parser.add_argument("--config", type=Path, required=True, help="JSON file")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    asyncio.run(serve(config.read(json.loads(arguments.config.read_text()))))


async def serve(settings: Config) -> None:
    """Run Event Grid: bind the port, print the ready line, deliver until stopped, and save the state."""
    certificates = certs.ensure(settings.certs)
    listener = socket.create_server((settings.host, settings.port))
    url = f"https://{settings.host}:{listener.getsockname()[1]}"
    async with contextlib.AsyncExitStack() as stack:
        store = stack.enter_context(contextlib.closing(Store(settings.state / "eventgrid.sqlite")))
        storage = Storage(account(settings.connection_string))
        stack.push_async_callback(storage.close)
        broker = Broker(settings.subscriptions, _destinations(settings, storage, certificates, url), storage, store)
        for lane in broker.lanes.values():
            stack.push_async_callback(lane.destination.close)
        source = _source(settings, storage, broker, store)
        app = Server({topic.name: topic for topic in settings.topics}, broker, source).application()
        await stack.enter_async_context(_listening(app, listener, certificates))
        if settings.make_destinations:
            await _made(settings, storage)
        await _work(broker, source, url)


async def _made(settings: Config, storage: Storage) -> None:
    """Create the destination queues and containers of the subscriptions, once the account answers."""
    targets = [one.target for one in settings.subscriptions]
    queues = {("queue", target.queue) for target in targets if isinstance(target, QueueTarget)}
    letters = {("container", one.dead_letter_container) for one in settings.subscriptions if one.dead_letter_container}
    for kind, name in sorted(queues | letters):
        status = await _answered(partial(storage.make, **{kind: name}))
        if status not in MADE:
            log.warning("the %s %s could not be made: storage answered %d", kind, name, status)


async def _answered(ask: Callable[[], Awaitable[int]]) -> int:
    """Return the status of the answer. Raises TimeoutError if the account does not answer within STORAGE_SECONDS."""
    async with asyncio.timeout(STORAGE_SECONDS):
        while True:
            try:
                return await ask()
            except aiohttp.ClientError:  # the account is still starting
                await asyncio.sleep(AGAIN_SECONDS)


def _destinations(settings: Config, storage: Storage, certificates: certs.Certs, url: str) -> MakeDestination:
    topics = {topic.name: topic for topic in settings.topics}

    def destination(subscription: Subscription) -> Destination:
        if isinstance(subscription.target, QueueTarget):
            return Queue(subscription.target, storage)
        return Webhook(subscription, topics[subscription.topic], certificates.bundle, url)

    return destination


def _source(settings: Config, storage: Storage, broker: Broker, store: Store) -> BlobSource | None:
    position = store.position() or accesslog.end_of(settings.access_log, time.time())
    store.put([], position)  # so that writes during a stop are found, even before the first event
    for topic in settings.topics:
        if topic.source is not None:
            return BlobSource(topic, Tail(settings.access_log, position), storage, broker)
    return None


@contextlib.asynccontextmanager
async def _listening(app: web.Application, listener: socket.socket, certificates: certs.Certs) -> AsyncIterator[None]:
    http = Listener(app, listener, certificates.server_context())
    await http.start()
    try:
        yield
    finally:
        await http.close()


async def _work(broker: Broker, source: BlobSource | None, url: str) -> None:
    """Deliver and follow the log until stopped. An error in either ends the process, because a running part that
    delivers nothing would be worse."""
    running = [asyncio.create_task(broker.run())]
    if source is not None:
        running.append(asyncio.create_task(source.run()))
    stopped = asyncio.create_task(serve_until_stopped(url=url))
    done, _ = await asyncio.wait([stopped, *running], return_when=asyncio.FIRST_COMPLETED)
    for task in (stopped, *running):
        task.cancel()
    await asyncio.gather(stopped, *running, return_exceptions=True)
    for task in done:
        task.result()


if __name__ == "__main__":
    main()
