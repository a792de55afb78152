"""The backend that conforms by definition: Microsoft's azure-functions-runtime, which Azure's own worker runs.

Needs Python 3.13 and azure-functions-runtime 1.3. Only names of its `__all__` are used, with the message classes of
`protos` handed to it.
"""

from __future__ import annotations

import importlib
import sys
from datetime import timedelta
from email.utils import formatdate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from emulators.host.errors import Refused
from emulators.host.worker.backend import (
    HttpRequestData,
    HttpResponseData,
    Indexed,
    Invocation,
    Outcome,
    RetryPolicy,
    Value,
)
from emulators.host.worker.cookies import set_cookie
from emulators.host.worker.protos import PROTOS, SAME_SITE, Message, ParameterBinding, RpcHttp, TypedData

NO_TRACE = SimpleNamespace(trace_parent="", trace_state="", attributes={})
SAME_SITE_TEXT = {SAME_SITE.Lax: "lax", SAME_SITE.Strict: "strict", SAME_SITE.ExplicitNone: "none"}


class RuntimeBackend:
    """Implements backend.Backend with azure-functions-runtime."""

    def __init__(self, app: Path) -> None:
        self._app = app
        self._ids: dict[str, str] = {}
        try:
            self._runtime: Any = importlib.import_module("azure_functions_runtime")
        except ImportError as exc:
            raise Refused(
                'backend="runtime" needs azure-functions-runtime 1.3 on Python 3.13 or newer; '
                f"here, on {sys.version.split()[0]}: {exc}"
            ) from exc

    async def start(self) -> list[Indexed]:
        sys.path.insert(0, str(self._app))
        self._runtime.start_threadpool_executor()
        init = SimpleNamespace(capabilities={}, function_app_directory=str(self._app))
        request = _request("worker_init_request", init, protos=PROTOS, host="127.0.0.1")
        loaded = await self._runtime.worker_init_request(request)
        if loaded.result.status != PROTOS.StatusResult.Success:
            raise Refused(f"{self._app / 'function_app.py'} cannot be loaded: {loaded.result.exception.message}")
        request = _request("functions_metadata_request", SimpleNamespace())
        metadata = await self._runtime.functions_metadata_request(request)
        functions = metadata.function_metadata_results or []
        self._ids = {function.name: function.function_id for function in functions}
        return [_indexed(function) for function in functions]

    async def invoke(self, invocation: Invocation) -> Outcome:
        response = await self._runtime.invocation_request(
            _request(
                "invocation_request",
                SimpleNamespace(
                    invocation_id=invocation.id,
                    function_id=self._ids[invocation.function],
                    input_data=[ParameterBinding(name=n, data=_typed(v)) for n, v in invocation.inputs.items()],
                    trigger_metadata={name: _typed(value) for name, value in invocation.metadata.items()},
                    trace_context=NO_TRACE,
                    retry_context=SimpleNamespace(
                        retry_count=invocation.retry_count,
                        max_retry_count=invocation.max_retry_count,
                        exception=None,
                    ),
                ),
            )
        )
        if response.result.status != PROTOS.StatusResult.Success:
            return Outcome(error=response.result.exception.message, trace=response.result.exception.stack_trace)
        outputs = {output.name: _value(output.data) for output in response.output_data}
        return Outcome(returned=_value(response.return_value), outputs={k: v for k, v in outputs.items() if v})

    def close(self) -> None:
        """Do nothing. The runtime's own stop waits for every thread, which this host must not do."""


def _request(kind: str, content: SimpleNamespace, **properties: Any) -> SimpleNamespace:
    return SimpleNamespace(name=kind, request=SimpleNamespace(**{kind: content}), properties=properties)


def _indexed(function: Any) -> Indexed:
    options = function.retry_options
    retry = options and RetryPolicy(
        strategy=options.retry_strategy,
        max_count=options.max_retry_count,
        delay=_seconds(options.delay_interval, RetryPolicy.delay),
        minimum=_seconds(options.minimum_interval, RetryPolicy.minimum),
        maximum=_seconds(options.maximum_interval, RetryPolicy.maximum),
    )
    return Indexed(function.name, tuple(function.raw_bindings), retry)


def _seconds(interval: timedelta | None, default: float) -> float:
    return default if interval is None else interval.total_seconds()


def _typed(value: Value) -> Message:
    if not isinstance(value.content, HttpRequestData):
        return TypedData(**{value.kind: value.content})
    request = value.content
    http = RpcHttp(**{**vars(request), "body": TypedData(bytes=request.body)})
    return TypedData(http=http)


def _value(data: Any) -> Value | None:
    kind = data and data.WhichOneof("data")
    if kind != "http":
        return Value(kind, getattr(data, kind)) if kind else None
    http = data.http
    cookies = tuple(_cookie(cookie) for cookie in http.cookies or ())
    return Value("http", HttpResponseData(int(http.status_code), dict(http.headers), http.body.bytes, cookies))


def _cookie(cookie: Any) -> str:
    def plain(name: str) -> Any:
        nullable = getattr(cookie, name)
        return nullable.value if nullable else None

    expires, max_age = plain("expires"), plain("max_age")
    return set_cookie(
        cookie.name,
        cookie.value,
        {
            "expires": formatdate(expires.seconds, usegmt=True) if expires else None,
            "max-age": None if max_age is None else f"{max_age:g}",
            "domain": plain("domain"),
            "path": plain("path"),
            "secure": plain("secure"),
            "httponly": plain("http_only"),
            "samesite": SAME_SITE_TEXT.get(cookie.same_site),
        },
    )
