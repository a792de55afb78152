"""The Event Grid trigger: the webhook for a subscription's deliveries."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

from aiohttp import web

from emulators.host.functions import EventGridTrigger, Function
from emulators.host.http.keys import Gate
from emulators.host.worker.backend import Outcome, Value
from emulators.host.worker.invoker import Invoker
from emulators.serving import parse_json, read_body

log = logging.getLogger("host.webhooks")
Functions = dict[str, tuple[Function, EventGridTrigger]]


class EventGridWebhook:
    """`/runtime/webhooks/EventGrid?functionName=NAME`, with the master or the eventgrid_extension key.

    A delivery is answered with 202 if every event's invocation succeeded, otherwise with 500. After a 500 Event Grid
    sends the whole delivery again, so functions that succeeded get their events twice. An unreadable delivery is a 500
    without a message. The name of the extension is case-insensitive, and the name of the function is case-sensitive.
    """

    def __init__(self, functions: list[Function], invoker: Invoker, gate: Gate) -> None:
        self._functions: Functions = {
            function.name: (function, function.trigger)
            for function in functions
            if isinstance(function.trigger, EventGridTrigger)
        }
        self._invoker = invoker
        self._gate = gate

    async def handle(self, request: web.Request) -> web.Response:
        if request.match_info["extension"].lower() != "eventgrid":
            return web.Response(status=404)
        if refusal := self._gate.refusal_of_event_grid(request):
            return web.Response(status=refusal)
        name = request.query.get("functionName", "")
        addressed = self._functions.get(name)
        if addressed is None:
            return web.Response(status=404, text=f"cannot find function: '{name}'")
        kind = request.headers.get("aeg-event-type", "").lower()
        if kind == "unsubscribe":
            return web.Response(status=202)
        if kind not in ("subscriptionvalidation", "notification"):
            return web.Response(status=400, text=f"aeg-event-type {kind!r} is unknown")
        try:
            content = parse_json(await read_body(request))
            if kind == "subscriptionvalidation":
                return web.json_response({"validationResponse": validation_code(content)}, content_type="text/plain")
            events = [_event(item) for item in (content if isinstance(content, list) else [content])]
        except (ValueError, LookupError, TypeError) as exc:
            log.warning("the body is no %s: %s", kind, exc)
            return web.Response(status=500)
        return await self._deliver(*addressed, events)

    async def _deliver(
        self, function: Function, trigger: EventGridTrigger, events: list[dict[str, Any]]
    ) -> web.Response:
        outcomes = await asyncio.gather(*(self._invoke(function, trigger, event) for event in events))
        if all(outcome.ok for outcome in outcomes):
            return web.Response(status=202)
        return web.Response(status=500, text=f"Exception while executing function: Functions.{function.name}")

    async def _invoke(self, function: Function, trigger: EventGridTrigger, event: dict[str, Any]) -> Outcome:
        metadata = {"data": Value("json", json.dumps(event.get("data")))}
        return await self._invoker.invoke(function, {trigger.parameter: Value("json", json.dumps(event))}, metadata)


def validation_code(content: Any) -> str:
    """Return the validation code in the first event of an array, or in a CloudEvent whose data is JSON text."""
    data = content[0]["data"] if isinstance(content, list) else content["data"]
    return str((json.loads(data) if isinstance(data, str) else data)["validationCode"])


def _event(item: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise TypeError(f"an event is an object, not {item!r}")
    return item
