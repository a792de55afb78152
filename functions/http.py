"""What all HTTP handlers share: JSON answers, and errors as problem details (RFC 9457)."""

import functools
import json
from collections.abc import Callable
from typing import Any

import azure.functions as func

from shared.errors import BadInput, BadSetting, NotFound, TrainyardError, Unavailable

Handler = Callable[[func.HttpRequest], func.HttpResponse]
STATUS = {BadSetting: 500, NotFound: 404, BadInput: 400, Unavailable: 503}  # the first that fits


def answer(value: Any, status: int = 200) -> func.HttpResponse:
    return func.HttpResponse(json.dumps(value), status_code=status, mimetype="application/json")


def handled(handler: Handler) -> Handler:
    """Turn the errors that Trainyard raises on purpose into problem details; others stay the host's 500."""

    @functools.wraps(handler)
    def wrapper(req: func.HttpRequest) -> func.HttpResponse:
        try:
            return handler(req)
        except TrainyardError as exc:
            return _problem(exc)

    return wrapper


def _problem(exc: TrainyardError) -> func.HttpResponse:
    status = next((code for kind, code in STATUS.items() if isinstance(exc, kind)), 500)
    body = {
        "type": "about:blank",
        "title": exc.code.replace("_", " "),
        "status": status,
        "detail": str(exc),
        "code": exc.code,
    }
    return func.HttpResponse(json.dumps(body), status_code=status, mimetype="application/problem+json")
