"""The host's own endpoints: run a function by hand, and return the host's status."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from aiohttp import web

from emulators.host.functions import Function, HttpTrigger, QueueTrigger, TimerTrigger
from emulators.host.http.keys import Gate
from emulators.host.timers.listener import timer_request
from emulators.host.worker.backend import Value
from emulators.host.worker.invoker import Invoker
from emulators.serving import parse_json, read_body


class Admin:
    """The endpoints below `/admin/`, which need the master key."""

    def __init__(self, functions: list[Function], invoker: Invoker, gate: Gate, host_id: str) -> None:
        self._functions = {function.name.lower(): function for function in functions}
        self._invoker = invoker
        self._gate = gate
        self._host_id = host_id
        self._begin = time.monotonic()
        self._started: set[asyncio.Task[object]] = set()

    async def invoke(self, request: web.Request) -> web.Response:
        """`POST /admin/functions/NAME` with `{"input": "..."}` runs any function but an HTTP one: 202 at once.

        As in Azure, a body whose content type is not JSON is a 415, and an input that is not a string is a 400.
        """
        if refusal := self._gate.refusal(request, "admin"):
            return web.Response(status=refusal)
        function = self._functions.get(request.match_info["name"].lower())
        if function is None:
            return web.Response(status=404)
        if request.content_length and not _is_json(request):
            return web.Response(status=415)
        try:
            content = parse_json(await read_body(request))
            inputs = _inputs(function, content.get("input", ""))
        except (ValueError, AttributeError) as exc:
            return web.Response(status=400, text=f'the body must be {{"input": ...}}: {exc}')
        task = asyncio.create_task(self._invoker.invoke(function, inputs))
        self._started.add(task)  # the loop itself keeps tasks by weak references only
        task.add_done_callback(self._started.discard)
        return web.Response(status=202)

    async def status(self, request: web.Request) -> web.Response:
        """`GET /admin/host/status`, with the members of Azure's answer that have a meaning here."""
        if refusal := self._gate.refusal(request, "admin"):
            return web.Response(status=refusal)
        uptime = int((time.monotonic() - self._begin) * 1000)
        return web.json_response({"id": self._host_id, "state": "Running", "processUptime": uptime})


def _inputs(function: Function, given: object) -> Mapping[str, Value]:
    trigger = function.trigger
    if isinstance(trigger, HttpTrigger):
        raise ValueError(f"{function.name} is an HTTP function: call its route /{trigger.route.text}")
    if isinstance(trigger, TimerTrigger):
        return {trigger.parameter: timer_request(trigger)}
    if not isinstance(given, str):
        raise ValueError("input must be a string; write an object as its JSON text")
    return {trigger.parameter: Value("string" if isinstance(trigger, QueueTrigger) else "json", given)}


def _is_json(request: web.Request) -> bool:
    kind = request.content_type if "Content-Type" in request.headers else ""
    return kind in ("application/json", "text/json") or kind.endswith("+json")
