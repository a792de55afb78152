"""The HTTPS server: authorization, error answers, the recording of requests, and the routes."""

from __future__ import annotations

import base64
import json
import logging
import re
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from emulators.azureml.bodies import responses
from emulators.azureml.bodies.enumerations import respelled
from emulators.azureml.kernel.config import PROVIDER, Config
from emulators.azureml.kernel.errors import ArmError, BadRequest, NotFound
from emulators.azureml.kernel.limits import Throttle, Verdict
from emulators.azureml.kernel.models import Json
from emulators.azureml.scheduling.scheduler import Scheduler
from emulators.azureml.service import arm, permissions, unsupported
from emulators.azureml.service.operations import Operations
from emulators.azureml.service.preflight import Needs
from emulators.azureml.storage.blobs import Blobs
from emulators.azureml.workspace.workspace import Workspace
from emulators.serving import parse_json, read_body

log = logging.getLogger(__name__)

RECORDED = ("/subscriptions", "/history", "/data")  # Azure's paths; control requests and blobs are not recorded
GUARDED = (*RECORDED, "/mlflow", "/mferp", "/registrymanagement", "/preflight")
REMEMBERED = 20_000
WORKSPACE = f"/subscriptions/{{sub}}/resourceGroups/{{group}}/providers/{PROVIDER}/workspaces/{{workspace}}"
LOCATION = f"/subscriptions/{{sub}}/providers/{PROVIDER}/locations/{{location}}"


@dataclass(frozen=True)
class Parts:
    """The objects that the routes use."""

    config: Config
    workspace: Workspace
    scheduler: Scheduler
    blobs: Blobs
    wire: responses.Wire
    operations: Operations
    recorder: Recorder
    needs: Needs


@dataclass
class Recorder:
    """The latest requests, oldest first. Bodies are recorded only on request, because they may be large."""

    bodies: bool = False
    seen: deque[Json] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    async def add(self, request: web.Request, response: web.StreamResponse) -> None:
        entry: Json = {"method": request.method, "path": request.path, "status": response.status}
        if self.bodies:
            answer = response.body if isinstance(response, web.Response) else None
            entry["query"] = dict(request.query)
            entry["headers"] = dict(response.headers)
            entry["request"] = arm.readable(await request.read())
            entry["response"] = arm.readable(answer) if isinstance(answer, bytes) else None
        self.seen.append(entry)


def application(parts: Parts, routes: list[web.RouteDef]) -> web.Application:
    recorder, config = parts.recorder, parts.config

    @web.middleware
    async def record(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await handler(request)
        if request.path.lower().startswith(RECORDED):
            arm.identify(request, response)
            await recorder.add(request, response)
        return response

    throttle = Throttle(config.arm_limits, time.monotonic) if config.arm_limits else None

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not request.path.lower().startswith(GUARDED):
            return await handler(request)
        _check_bearer(request)
        verdict = throttle.acquire(_principal(request), request.method) if throttle and arm.is_arm(request) else None
        if verdict and not verdict.allowed:
            return _throttled(config, verdict)
        _check_scope(config, request)
        if arm.is_arm(request):
            arm.check_version(request)
            permissions.check(config, _principal(request), request.method, request.path)
        await parts.workspace.faults.meet(request)
        response = await handler(request)
        response.headers.update(verdict.headers if verdict else {})
        return response

    app = web.Application(middlewares=[record, answer_errors, guard, arm.preconditions])
    app.add_routes([arm.insensitive(route) for route in routes])
    return app


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except ArmError as error:
        headers = {"WWW-Authenticate": arm.CHALLENGE} if error.status == 401 else {}
        return web.json_response(responses.error(error.code, error.message), status=error.status, headers=headers)
    except (web.HTTPNotFound, web.HTTPMethodNotAllowed) as error:
        if why := unsupported.why(request.path):
            return web.json_response(responses.error("NotSupportedHere", why), status=501)
        if isinstance(error, web.HTTPMethodNotAllowed):
            served = ", ".join(sorted(error.allowed_methods))
            message = f"{request.method} is not served for {request.path}; served: {served}."
            return web.json_response(responses.error("MethodNotAllowed", message), status=405)
        message = f"This control plane doesn't serve {request.method} {request.path}."
        return web.json_response(responses.error("NotFound", message), status=404)
    except web.HTTPException:
        raise
    except Exception:  # outermost: the client gets an ARM error, and the log the traceback
        log.exception("%s %s", request.method, request.path)
        return web.json_response(responses.error("InternalServerError", "See the control plane's log."), status=500)


def _check_bearer(request: web.Request) -> None:
    if not request.headers.get("Authorization", "").startswith("Bearer "):
        raise ArmError(401, "AuthenticationFailed", "The 'Authorization' header with a bearer token is missing.")


def _principal(request: web.Request) -> str:
    """Return the token's object id, by which Azure counts requests. A token without an object id is a principal of
    its own."""
    bearer = request.headers["Authorization"].removeprefix("Bearer ")
    try:
        claims = base64.urlsafe_b64decode(bearer.split(".")[1] + "==")
        return str(json.loads(claims)["oid"])
    except (IndexError, KeyError, ValueError, TypeError, RecursionError):
        return bearer


def _throttled(config: Config, verdict: Verdict) -> web.Response:
    message = (
        f"Number of '{verdict.kind}' requests for subscription '{config.subscription_id}' exceeded. Please try again "
        f"after '{verdict.retry_after}' seconds after additional tokens are available."
    )
    body = responses.error("SubscriptionRequestsThrottled", message)
    return web.json_response(body, status=429, headers=verdict.headers)


def _check_scope(config: Config, request: web.Request) -> None:
    scope = request.match_info
    if scope.get("sub", config.subscription_id).lower() != config.subscription_id.lower():
        raise NotFound(f"The subscription '{scope['sub']}' could not be found.", "SubscriptionNotFound")
    if scope.get("group", config.resource_group).lower() != config.resource_group.lower():
        raise NotFound(f"Resource group '{scope['group']}' could not be found.", "ResourceGroupNotFound")
    if scope.get("workspace", config.workspace).lower() != config.workspace.lower():
        name = f"{PROVIDER}/workspaces/{scope['workspace']}"
        raise NotFound(f"The Resource '{name}' under resource group '{config.resource_group}' was not found.")


async def body(request: web.Request, *needs: str) -> Json:
    """Return the request's JSON object, which must have the keys in `needs`."""
    text = await read_body(request) or b"{}"
    try:
        document: Any = parse_json(text)
        if b"\\u" in text or b"\xed" in text:  # refuses half surrogate pairs, which files and rows can't have
            json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"The body is not JSON: {error}.", "InvalidRequestContent") from None
    if not isinstance(document, dict):
        raise BadRequest("The body must be a JSON object.", "InvalidRequestContent")
    arm.check_depth(document)
    for key in needs:
        if not document.get(key):
            raise BadRequest(f"The body lacks {key!r}.", "InvalidRequestContent")
    return respelled(document) if "properties" in needs else document


async def properties(request: web.Request) -> Json:
    """Return the `properties` object of a resource's body."""
    value = (await body(request, "properties"))["properties"]
    if not isinstance(value, dict):
        raise BadRequest("'properties' must be a JSON object.", "InvalidRequestContent")
    return value


def number(request: web.Request, key: str) -> int | None:
    """Return a whole number from the query, or None if it is missing. Raises BadRequest for any other text."""
    text = request.query.get(key)
    if text is not None and not re.fullmatch(r"[0-9]{1,18}", text):  # the integers that SQLite supports
        raise BadRequest(f"{key} is {text!r:.80}; it must be a whole number.")
    return None if text is None else int(text)
