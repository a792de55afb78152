"""What all HTTP handlers share: who may call, JSON answers, and errors as problem details (RFC 9457)."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gzip
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar, cast

import azure.functions as func

from functions import access, monitor
from functions.attribution import invocation, with_context
from functions.in_time import in_time
from functions.on_demand import on_demand
from shared.kernel.errors import (
    BadInput,
    BadSetting,
    Changed,
    Conflict,
    Impossible,
    NoAnswer,
    NotFound,
    TrainyardError,
    Unavailable,
)

with on_demand():
    from shared.runs import features

if TYPE_CHECKING:
    from shared.runs.model import Run

H = TypeVar("H", bound=Callable[..., Any])

DENIED = {401: "unauthenticated", 403: "forbidden", 411: "length_required"}
STATUS = {  # the first that fits
    BadSetting: 500,
    Impossible: 422,
    NotFound: 404,
    Conflict: 409,
    BadInput: 400,
    Changed: 503,
    Unavailable: 503,
}


# HTTP has threads of its own: queue handlers that wait for a slow service, in the host's, don't hold up an answer.
_THREADS = ThreadPoolExecutor(32, "http")


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> func.HttpResponse:
    body = json.dumps(value, allow_nan=False)
    return func.HttpResponse(body, status_code=status, headers=dict(headers or {}), mimetype="application/json")


def accepted(run: Run) -> func.HttpResponse:
    """202 for a run that was made, with where it is and what it may cost."""
    body: dict[str, Any] = {"run": run.name, "state": run.progress.state}
    body |= {"estimated_cost": run.money.estimated, "greatest_cost": run.money.greatest, **features.before_start(run)}
    return answer(body, 202, {"Location": f"/api/runs/{run.name}"})


WORTH_PACKING = 1024  # bytes; less fits one packet anyhow


def conditional(req: func.HttpRequest, response: func.HttpResponse) -> func.HttpResponse:
    """The response to a GET with its ETag: 304 without a body for a caller who has it already, else packed if asked.

    So whoever looks again and again is told "as before" in a few bytes. The tag is of the content, so that any instance
    gives the same one.
    """
    if req.method != "GET" or response.status_code != 200 or response.mimetype != "application/json":
        return response
    body = response.get_body()
    tag = f'W/"{hashlib.sha256(body).hexdigest()[:24]}"'
    headers = {**response.headers, "ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
    if tag in req.headers.get("if-none-match", ""):
        return func.HttpResponse(status_code=304, headers=headers)
    if len(body) >= WORTH_PACKING and "gzip" in req.headers.get("accept-encoding", ""):
        body, headers["Content-Encoding"] = gzip.compress(body, 3, mtime=0), "gzip"
    return func.HttpResponse(body, headers=headers, mimetype=response.mimetype)


def handled(handler: H) -> H:
    """Let only those in who may, and turn the errors that Trainyard raises on purpose into problem details.

    Others stay the host's 500.
    """
    return cast("H", _wrapped(handler, access.admit))


def handled_for_anyone(handler: H) -> H:
    """The same without asking who calls."""
    return cast("H", _wrapped(handler, lambda _: None))


def _wrapped(handler: Any, admit: Callable[[func.HttpRequest], None]) -> Any:
    if inspect.iscoroutinefunction(handler):

        @functools.wraps(handler)
        async def waiting(req: func.HttpRequest, context: func.Context | None = None) -> func.HttpResponse:
            with invocation(context):
                try:
                    _admit(req, admit)
                    answered: func.HttpResponse = await in_time(asyncio.ensure_future(handler(req)))
                except (TrainyardError, access.Denied) as exc:
                    return _problem(exc)
                finally:
                    monitor.start_soon()
                return conditional(req, answered)

        return with_context(waiting, handler)

    @functools.wraps(handler)
    async def wrapper(req: func.HttpRequest, context: func.Context | None = None) -> func.HttpResponse:
        with invocation(context):
            run = contextvars.copy_context().run  # trace and invocation go along
            try:
                return await in_time(asyncio.get_running_loop().run_in_executor(_THREADS, run, answered, req))
            except NoAnswer as exc:
                return _problem(exc)

    def answered(req: func.HttpRequest) -> func.HttpResponse:
        try:
            _admit(req, admit)
            response: func.HttpResponse = handler(req)
        except (TrainyardError, access.Denied) as exc:
            return _problem(exc)
        finally:
            monitor.start_soon()
        return conditional(req, response)

    return with_context(wrapper, handler)


def _admit(req: func.HttpRequest, admit: Callable[[func.HttpRequest], None]) -> None:
    admit(req)
    chunked = "chunked" in (req.headers.get("transfer-encoding") or "").lower()
    if chunked and not req.headers.get("content-length"):  # Azure's host gives us nothing of such a body
        raise access.Denied(411, "Send the body with its length (Content-Length): one in chunks is not read.")


def problem(status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> func.HttpResponse:
    """An error as RFC 9457 has it."""
    body = {
        "type": "about:blank",
        "title": code.replace("_", " "),
        "status": status,
        "detail": detail,
        "code": code,
    }
    kind = "application/problem+json"
    return func.HttpResponse(json.dumps(body), status_code=status, headers=dict(headers or {}), mimetype=kind)


def _problem(exc: TrainyardError | access.Denied) -> func.HttpResponse:
    if isinstance(exc, access.Denied):
        status, code = exc.status, DENIED[exc.status]
    else:
        status = next((number for kind, number in STATUS.items() if isinstance(exc, kind)), 500)
        code = exc.code
    return problem(status, code, str(exc))
