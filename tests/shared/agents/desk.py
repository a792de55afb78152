"""A client of the tools that calls the app's Azure function as a program does over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import azure.functions as func

from functions import api, http
from shared.agents.protocol import CAPABILITIES, NEWEST, VERSION
from shared.api.registry import OPERATIONS

META = {VERSION: NEWEST, CAPABILITIES: {}}
SERVE = next(each for each in OPERATIONS if each.name == "serve_mcp")


def post(body: bytes, headers: dict[str, str]) -> func.HttpResponse:
    """Send a body to the app's function for this operation."""
    request = func.HttpRequest("POST", "/api/mcp", headers=headers, params={}, route_params={}, body=body)
    handler = http.handler(SERVE.name, SERVE.role, lambda req: api._answer(SERVE, req))
    answered: func.HttpResponse = asyncio.run(handler(request))  # type: ignore[arg-type]
    return answered


def message(method: str, params: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a request of revision 2026-07-28, and its headers."""
    params = {"_meta": META, **(params or {})}
    named = {"mcp-name": str(params["name"])} if "name" in params else {}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return body, {"mcp-protocol-version": NEWEST, "mcp-method": method, **named}


def send(method: str, params: dict[str, Any] | None = None, **headers: str) -> tuple[int, dict[str, Any]]:
    """Send a request of revision 2026-07-28. Return the status and the message."""
    body, sent = message(method, params)
    answered = post(json.dumps(body).encode(), sent | headers)
    return int(answered.status_code), json.loads(answered.get_body() or b"{}")


def use(tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool. Return its answer, or {"error": its sentence}."""
    status, answered = send("tools/call", {"name": tool, "arguments": arguments})
    assert status == 200, answered
    text = answered["result"]["content"][0]["text"]
    return {"error": text} if answered["result"]["isError"] else json.loads(text)
