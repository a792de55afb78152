"""The host: starts its parts, and stops them in order."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time

from aiohttp import web
from azure.storage.blob.aio import ContainerClient

from emulators.host import config as configuration
from emulators.host import exporting
from emulators.host import functions as definitions
from emulators.host.config import Config, HostJson
from emulators.host.exporting import Exporter
from emulators.host.functions import Function, QueueTrigger, TimerTrigger
from emulators.host.http.admin import Admin
from emulators.host.http.front import LARGEST_BODY, HttpFront
from emulators.host.http.keys import Gate
from emulators.host.http.webhooks import EventGridWebhook
from emulators.host.queues.client import Connections
from emulators.host.queues.listener import QueueListener, QueueServices
from emulators.host.queues.outputs import QueueWriter
from emulators.host.stop import Stop
from emulators.host.storage import container_client
from emulators.host.timers.listener import CONTAINER, TimerListener, TimerServices
from emulators.host.worker.invoker import Invoker
from emulators.host.worker.process import WorkerProcess
from emulators.serving import Listener

log = logging.getLogger("host")
RESTART_SECONDS = 5.0
WORKER_SECONDS = 3.0  # for an idle worker to end by itself


class Host:
    """A host of one app. Call `load`, `start`, and at the end `stop`. `given_up` is set when the worker has ended
    too often."""

    def __init__(self, config: Config) -> None:
        self.functions: list[Function] = []
        self.given_up = asyncio.Event()
        self._config = config
        self._host_json = HostJson.read(config.app)
        self._exporter = Exporter(self._host_json.logging, os.environ)
        self._worker = WorkerProcess(config.app, config.backend, self.given_up.set, self._exporter.record)
        self._stop = Stop()
        self._connections = Connections(self._exporter.storage_request)
        self._writer = QueueWriter(self._connections, base64=self._host_json.queues.base64)
        timeout = self._host_json.function_timeout
        self._invoker = Invoker(self._worker, self._writer, self._stop, timeout, self._exporter)
        self._queues: list[QueueListener] = []
        self._timers: list[TimerListener] = []
        self._container: ContainerClient | None = None
        self._listening: list[asyncio.Task[None]] = []
        self._exporting: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Import the app and check it completely. Raises Refused before anything starts."""
        if self._host_json.ignored:
            log.warning("host.json: not honoured here: %s", ", ".join(self._host_json.ignored))
        configuration.load_local_settings(self._config.app)
        indexed = await self._worker.start()
        self.functions = definitions.read(indexed, self._host_json, os.environ)

    async def start(self) -> int:
        """Serve HTTP and listen to queues and timers. Returns the port."""
        gate = Gate(self._config.keys, required=self._config.require_keys)
        bound = socket.create_server((self._config.host, self._config.port))
        # A host with keys accepts any host name, because a page does not know the keys.
        self._http = Listener(self._routes(gate), bound, local_only=not self._config.require_keys)
        await self._http.start()
        self._exporting = asyncio.create_task(self._exporter.run())
        self._make_listeners()
        listeners: list[QueueListener | TimerListener] = [*self._queues, *self._timers]
        self._listening = [asyncio.create_task(self._supervised(listener)) for listener in listeners]
        return int(bound.getsockname()[1])

    async def stop(self) -> int:
        """Accept no new work, let running work finish within `drain_seconds`, and release leases.

        Returns the number of invocations that were still running. Their messages are visible again.
        """
        deadline = time.monotonic() + self._config.drain_seconds
        self._stop.set()
        self._http.stop_accepting()
        if self._listening:
            await asyncio.wait(self._listening, timeout=deadline - time.monotonic())
        await asyncio.gather(*(queue.close(deadline - time.monotonic()) for queue in self._queues))
        left = await self._invoker.drain(deadline - time.monotonic())
        for task in self._listening:
            task.cancel()
        await asyncio.gather(*self._listening, return_exceptions=True)
        await asyncio.gather(*(timer.release() for timer in self._timers))
        await self._close(0.0 if left else WORKER_SECONDS)
        return left

    async def _supervised(self, listener: QueueListener | TimerListener) -> None:
        while not self._stop.is_set():
            try:
                await listener.run()
            except Exception:
                log.exception("a listener failed; it starts again")
                await self._stop.within(RESTART_SECONDS)

    def _routes(self, gate: Gate) -> web.Application:
        admin = Admin(self.functions, self._invoker, gate, self._config.host_id)
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_post("/admin/functions/{name}", admin.invoke)
        app.router.add_get("/admin/host/status", admin.status)
        events = EventGridWebhook(self.functions, self._invoker, gate)
        app.router.add_route("*", "/runtime/webhooks/{extension}", events.handle)
        app.router.add_route("*", r"/{path:[\s\S]*}", HttpFront(self.functions, self._invoker, gate, os.environ).handle)
        return app

    def _make_listeners(self) -> None:
        queues = QueueServices(
            self._host_json.queues,
            self._invoker,
            self._writer,
            self._stop,
            self._config.invisibility_seconds,
            self._connections,
        )
        for function in self.functions:
            if isinstance(function.trigger, QueueTrigger):
                self._queues.append(QueueListener(function, function.trigger, queues))
            elif isinstance(function.trigger, TimerTrigger):
                timers = TimerServices(
                    self._invoker, self._status_container(), self._config.host_id, self._stop, self._config.lock_seconds
                )
                self._timers.append(TimerListener(function, function.trigger, timers))

    def _status_container(self) -> ContainerClient:
        if self._container is None:
            storage = definitions.connection_string(None, os.environ)
            self._container = container_client(storage, CONTAINER, self._exporter.storage_request)
        return self._container

    async def _close(self, worker_seconds: float) -> None:
        await self._worker.close(worker_seconds)
        if self._exporting:
            await exporting.close(self._exporting, self._exporter)
        await self._http.close()
        await self._writer.close()
        await self._connections.close()
        if self._container is not None:
            await self._container.close()
