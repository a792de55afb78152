"""The HTTP API: one Azure function per declared operation, with one way of answering.

The operation's role admits a call. The query, the body and the headers are decoded as the answering function declares
them, and the function's return value becomes the response.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import azure.functions as func

from functions import access, http
from functions.in_time import ASIDE
from shared import bootstrap
from shared.api.registry import OPERATIONS
from shared.kernel.errors import Forbidden, Impossible
from shared.kernel.operation import ANYONE, Operation

if TYPE_CHECKING:
    from shared.api.signature import Signature
    from shared.kernel.guest import Guest

blueprint = func.Blueprint()
KEY = "idempotency-key"
# not of the operations that it calls
OF_ONE_REQUEST = {KEY, "if-none-match", "accept-encoding", "range", "content-length"}


def _register(operation: Operation) -> None:
    threads = ASIDE if operation.own_threads else http.THREADS
    level = func.AuthLevel.ANONYMOUS if operation.role == ANYONE else None
    handler = http.handler(operation.name, operation.role, partial(_answer, operation), threads)
    blueprint.route(operation.path, methods=[operation.method], auth_level=level)(handler)


def _answer(
    operation: Operation, req: func.HttpRequest, guest: Guest | None = None
) -> func.HttpResponse | Awaitable[func.HttpResponse]:
    """Answer a request for this operation, by a caller whom access.py admitted, or by a guest."""
    from shared.api.signature import signature

    declared = signature(operation)
    if operation.no_key and req.headers.get(KEY):
        refused = f"{operation.method} /api/{operation.path} takes no Idempotency-Key: {operation.no_key} Leave it out."
        raise Impossible(refused, "no_idempotency_key")
    arguments = {name: _argument(name, declared, req, guest) for name in declared.takes}
    value = declared.function(**(guest.admitted(bootstrap.system(), operation.name, arguments) if guest else arguments))
    if inspect.isawaitable(value):
        return _awaited(operation, value)
    shown = guest.shown(bootstrap.system(), operation.name, value) if guest else value
    return http.conditional(req, http.response(shown, operation.status))


async def _awaited(operation: Operation, value: Awaitable[Any]) -> func.HttpResponse:
    return http.response(await value, operation.status)


def _granted(req: func.HttpRequest) -> func.HttpResponse | Awaitable[func.HttpResponse]:
    """Answer the request of a guest: a program whose bearer token states its rights, instead of a key or a role."""
    from functions import guests

    guest = guests.sign_in(req)
    operation, its = guests.operation_of(req)
    return _answer(operation, its, guest)


def _argument(name: str, declared: Signature, req: func.HttpRequest, guest: Guest | None) -> Any:
    from shared.kernel import parsing

    if guest and name in GUESTS:
        return GUESTS[name](guest)
    if name == "call":
        return partial(_call, req, guest)
    if name in declared.path:
        return req.route_params.get(name, "")
    if name == "query":
        return parsing.read_query(req.params, declared.query)
    if name == "body":
        missing = b"" if declared.body_required else b"{}"  # older clients send no body
        return parsing.read_body(req.get_body() or missing, declared.body)
    if name == "key":
        return parsing.read_key(req.headers.get(KEY))
    return GIVEN[name](req)


def _call(
    req: func.HttpRequest,
    guest: Guest | None,
    name: str,
    *,
    path: Mapping[str, str] | None = None,
    query: Mapping[str, Any] | None = None,
    body: Any = None,
    key: str | None = None,
) -> Any:
    """Answer another operation for the caller of `req` (shared/kernel/reply.py, CallOperation)."""
    operation = next(each for each in OPERATIONS if each.name == name)
    headers = {header: value for header, value in req.headers.items() if header.lower() not in OF_ONE_REQUEST}
    asked = func.HttpRequest(
        operation.method,
        req.url,
        headers=headers | ({KEY: key} if key else {}),
        params={name: text if isinstance(text, str) else json.dumps(text) for name, text in (query or {}).items()},
        route_params=dict(path or {}),
        body=json.dumps({} if body is None else body).encode(),
    )
    try:
        if guest is None:
            access.admit(asked, operation.role)
        answered = _answer(operation, asked, guest)
    except access.Denied as exc:
        raise Forbidden(str(exc)) from exc
    if not isinstance(answered, func.HttpResponse):
        raise TypeError(f"{name} answers later, so no other operation can call it.")
    return json.loads(answered.get_body())


GIVEN: dict[str, Callable[[func.HttpRequest], Any]] = {  # the value of a parameter with this name
    "ports": lambda _: bootstrap.system(),
    "post": lambda _: bootstrap.post(),
    "schedules": lambda _: bootstrap.schedules(),
    "removals": lambda _: bootstrap.removals(),
    "by": lambda req: access.who(req),
    "caller": lambda req: access.caller(req),
    "range_header": lambda req: req.headers.get("range"),
    "admit_code": lambda req: partial(access.admit_code, req),
    "headers": lambda req: access.own_headers(req),
}
GUESTS: dict[str, Callable[[Guest], Any]] = {  # the same for a guest, who has no claims and no key
    "by": lambda guest: guest.person,
    "caller": access.caller_of_guest,
    "admit_code": lambda guest: partial(access.admit_code_of_guest, guest),
}

for _operation in OPERATIONS:
    _register(_operation)
blueprint.route("granted/{*path}", methods=["GET", "POST", "DELETE"], auth_level=func.AuthLevel.ANONYMOUS)(
    http.handler("granted", ANYONE, _granted)
)
