"""The HTTP side: the topics' publish endpoints, a webhook's validation URL, and the control endpoints for tests."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp import web

from emulators.eventgrid import access, faults, schema
from emulators.eventgrid.broker import Broker
from emulators.eventgrid.config import Topic
from emulators.eventgrid.destinations import Webhook
from emulators.eventgrid.source import BlobSource
from emulators.serving import body_in_time, parse_json

REQUEST_BYTES = 1024 * 1024  # Azure's limit for a request, and for an event
BARRIER_SECONDS = 30.0
LONGEST_BARRIER_SECONDS = 86_400.0


@dataclass(frozen=True)
class Server:
    topics: dict[str, Topic]
    broker: Broker
    source: BlobSource | None

    def application(self) -> web.Application:
        app = web.Application(client_max_size=REQUEST_BYTES, middlewares=[body_in_time])
        app.add_routes(
            [
                web.post("/topics/{name}/api/events", self.publish),
                web.get("/validate/{subscription}", self.validate),
                web.post("/control/faults", self.set_faults),
                web.get("/control/barrier", self.barrier),
                web.get("/control/counts", self.counts),
            ]
        )
        return app

    async def publish(self, request: web.Request) -> web.Response:
        """Accept events for a topic: 200 once the events are stored, 400 for a body that is not events, 401, 404,
        413 over 1 MiB."""
        topic = self.topics.get(request.match_info["name"])
        if topic is None:
            return _error(404, f"no topic {request.match_info['name']!r} among {', '.join(self.topics)}")
        if why := access.refusal(topic, request.headers, request.path, datetime.now(UTC)):
            return _error(401, why)
        try:
            events = schema.parse(parse_json(await request.read()), topic.resource)
        except ValueError as error:
            return _error(400, str(error))
        self.broker.accept(topic.name, events)
        return web.Response()

    async def validate(self, request: web.Request) -> web.Response:
        lane = self.broker.lanes.get(request.match_info["subscription"])
        if lane is None or not isinstance(lane.destination, Webhook):
            return _error(404, "no such webhook subscription")
        if not lane.destination.agree(request.query.get("id", "")):
            return _error(400, "not the id of this subscription's validation")
        return web.Response(text="Webhook successfully validated as a subscription endpoint")

    async def set_faults(self, request: web.Request) -> web.Response:
        """Replace the knobs for later events. `{}` turns every knob off."""
        try:
            self.broker.faults = faults.read(parse_json(await request.read()))
        except ValueError as error:
            return _error(400, str(error))
        return await self.counts(request)

    async def barrier(self, request: web.Request) -> web.Response:
        """Answer 200 when every blob written and every event published before this request is delivered, lost by a
        knob, dead-lettered or dropped. Answer 504 with the pending events after `timeout` seconds."""
        try:
            seconds = float(request.query.get("timeout", BARRIER_SECONDS))
        except ValueError:
            seconds = math.nan
        if not 0 <= seconds <= LONGEST_BARRIER_SECONDS:
            return _error(400, f"timeout must be a number of seconds, at most {LONGEST_BARRIER_SECONDS:g}")
        try:
            async with asyncio.timeout(seconds):
                if self.source is not None:
                    await self.source.caught_up()
                await self.broker.idle()
        except (TimeoutError, aiohttp.ClientError) as error:
            return web.json_response({**self._state(), "error": repr(error)}, status=504)
        return web.json_response(self._state())

    async def counts(self, _: web.Request) -> web.Response:
        return web.json_response(self._state())

    def _state(self) -> dict[str, Any]:
        """Return the counts of this process: events received (in total and by topic), matched (event and
        subscription), and how deliveries ended."""
        names = ("received", "matched", "lost", "delivered", "attempts_failed", "dead_lettered", "dropped")
        waiting = [
            name
            for name, lane in self.broker.lanes.items()
            if isinstance(lane.destination, Webhook) and not lane.destination.agreed
        ]
        counts = {name: self.broker.counts[name] for name in names}
        topics = {name: self.broker.counts[f"topic {name}"] for name in self.topics}
        return {**counts, "topics": topics, "pending": self.broker.pending, "awaiting_handshake": waiting}


def _error(status: int, message: str) -> web.Response:
    code = {400: "BadRequest", 401: "Unauthorized", 404: "NotFound"}[status]
    return web.json_response({"error": {"code": code, "message": message}}, status=status)
