"""What HTTP functions share: access, threads, responses, and errors as problem details (RFC 9457)."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import inspect
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import azure.functions as func

from functions import access, monitor
from functions.attribution import invocation
from functions.in_time import in_time
from shared.kernel.errors import (
    BadInput,
    BadSetting,
    Changed,
    Conflict,
    Forbidden,
    Impossible,
    NotFound,
    TrainyardError,
    Unavailable,
    Unknown,
)

Handler = Callable[..., Awaitable[func.HttpResponse]]
Answer = Callable[[func.HttpRequest], "func.HttpResponse | Awaitable[func.HttpResponse]"]

DENIED = {401: "unauthenticated", 403: "forbidden", 411: "length_required"}
STATUS = {  # the first match counts
    BadSetting: 500,
    Impossible: 422,
    NotFound: 404,
    Forbidden: 403,
    Unknown: 401,
    Conflict: 409,
    BadInput: 400,
    Changed: 503,
    Unavailable: 503,
}
WORTH_PACKING = 1024  # bytes; a smaller body fits into one packet anyway

# HTTP has its own threads, so queue handlers that wait for a slow service in the host's threads delay no answer.
THREADS = ThreadPoolExecutor(32, "http")


def handler(name: str, role: str, answer: Answer, threads: ThreadPoolExecutor = THREADS) -> Handler:
    """Return the Azure function of this name. The function admits callers with the role, and answers in a thread.

    Trainyard's own errors become problem details; other errors become the host's 500. An awaitable answer is awaited
    without blocking a thread.
    """

    async def handle(req: func.HttpRequest, context: func.Context | None = None) -> func.HttpResponse:
        with invocation(context):
            try:
                access.admit(req, role)
                _check_length(req)
                return await in_time(asyncio.ensure_future(_answered(answer, req, threads)))
            except (TrainyardError, access.Denied) as exc:
                return _problem(exc)
            finally:
                monitor.start_soon()

    handle.__name__ = name
    handle.__signature__, handle.__annotations__ = _SIGNATURE, _ANNOTATIONS  # type: ignore[attr-defined]
    return handle


# The worker passes its context if the signature has `context` with this type.
_ANNOTATIONS = {"req": func.HttpRequest, "context": func.Context, "return": func.HttpResponse}
_SIGNATURE = inspect.Signature(
    [
        inspect.Parameter("req", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=func.HttpRequest),
        inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=func.Context),
    ],
    return_annotation=func.HttpResponse,
)


async def _answered(answer: Answer, req: func.HttpRequest, threads: ThreadPoolExecutor) -> func.HttpResponse:
    run = contextvars.copy_context().run  # carries the trace and the invocation into the thread
    response = await asyncio.get_running_loop().run_in_executor(threads, run, answer, req)
    return response if isinstance(response, func.HttpResponse) else await response


def _check_length(req: func.HttpRequest) -> None:
    chunked = "chunked" in (req.headers.get("transfer-encoding") or "").lower()
    if chunked and not req.headers.get("content-length"):  # Azure's host passes an empty body in this case
        raise access.Denied(411, "Send the body with its length (Content-Length): one in chunks is not read.")


def response(value: Any, status: int = 200) -> func.HttpResponse:
    """Return a Reply as an HTTP response, or any other value as JSON with this status."""
    from shared.kernel.reply import TEXT, Reply

    reply = value if isinstance(value, Reply) else Reply(value, status)
    if reply.value is None:
        return func.HttpResponse(status_code=reply.status, headers=dict(reply.headers))
    body = reply.value if reply.media_type == TEXT else json.dumps(reply.value, allow_nan=False)
    return func.HttpResponse(
        body, status_code=reply.status, headers=dict(reply.headers), mimetype=reply.media_type, charset="utf-8"
    )


def conditional(req: func.HttpRequest, response: func.HttpResponse) -> func.HttpResponse:
    """Add an ETag to the response to a GET: 304 without a body if the caller has it already, otherwise compressed on
    request.

    So a client that polls gets "unchanged" in a few bytes. The tag is a hash of the content, so that every instance
    computes the same one.
    """
    if req.method != "GET" or response.status_code != 200 or response.mimetype != "application/json":
        return response
    body = response.get_body()
    tag = f'W/"{hashlib.sha256(body).hexdigest()[:24]}"'
    headers = {**response.headers, "ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
    if tag in req.headers.get("if-none-match", ""):
        return func.HttpResponse(status_code=304, headers=headers)
    if len(body) >= WORTH_PACKING and "gzip" in req.headers.get("accept-encoding", ""):
        import gzip  # not at a cold start

        body, headers["Content-Encoding"] = gzip.compress(body, 3, mtime=0), "gzip"
    return func.HttpResponse(body, headers=headers, mimetype=response.mimetype)


def _problem(exc: TrainyardError | access.Denied) -> func.HttpResponse:
    from shared.kernel.reply import problem

    if isinstance(exc, access.Denied):
        return response(problem(exc.status, DENIED[exc.status], str(exc)))
    status = next((number for kind, number in STATUS.items() if isinstance(exc, kind)), 500)
    return response(problem(status, exc.code, str(exc)))
