"""The default backend: calls functions through azure-functions' own converters. Python 3.11 or newer."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import importlib
import inspect
import json
import os
import sys
import threading
import traceback
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.cookies import Morsel
from pathlib import Path
from typing import Any

from azure.functions.decorators.function_app import Function, FunctionRegister
from azure.functions.meta import Datum

from emulators.host import timespan
from emulators.host.errors import Refused
from emulators.host.worker import signature
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
from emulators.host.worker.signature import Parameter, Signature

_thread_storage = threading.local()


@dataclass(frozen=True)
class TraceContext:
    trace_parent: str = ""
    trace_state: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RetryContext:
    retry_count: int
    max_retry_count: int
    exception: None = None


@dataclass(frozen=True)
class Context:
    """The value of a parameter named `context`, with the attributes of the class in Azure's worker."""

    invocation_id: str
    function_name: str
    function_directory: str
    retry_context: RetryContext
    trace_context: TraceContext = field(default_factory=TraceContext)
    thread_local_storage: threading.local = _thread_storage


class Out:
    """The function's value for an output parameter."""

    def __init__(self) -> None:
        self._value: Any = None

    def set(self, value: Any) -> None:
        self._value = value

    def get(self) -> Any:
        return self._value


class DirectBackend:
    """Implements backend.Backend with azure-functions alone."""

    def __init__(self, app: Path) -> None:
        self._app = app
        self._signatures: dict[str, Signature] = {}
        threads = int(os.environ.get("PYTHON_THREADPOOL_THREAD_COUNT") or 0)
        self._threads = ThreadPoolExecutor(threads or None, thread_name_prefix="function")

    async def start(self) -> list[Indexed]:
        functions = _load(self._app)
        problems = []
        for function in functions:
            name = str(function.get_function_name())
            try:
                self._signatures[name] = signature.read(function)
            except (ValueError, NameError) as exc:  # NameError: an annotation that cannot be resolved
                problems.append(f"function {name}: {exc}")
        if problems:
            raise Refused(problems)
        return [_indexed(function) for function in functions]

    async def invoke(self, invocation: Invocation) -> Outcome:
        fn = self._signatures[invocation.function]
        try:
            arguments = _arguments(fn, invocation)
            result = await self._call(fn, arguments, invocation.id)
            return _outcome(fn, invocation.function, arguments, result)
        except Exception as exc:  # noqa: BLE001 - whatever the app raises is the outcome
            return Outcome(error=f"{type(exc).__name__}: {exc}", trace=self._trace(exc))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _trace(self, exc: Exception) -> str:
        """Return the traceback from the app's first line on, or the whole traceback if the error is outside the
        app."""
        entry = exc.__traceback__
        while entry and not entry.tb_frame.f_code.co_filename.startswith(str(self._app)):
            entry = entry.tb_next
        return "".join(traceback.format_exception(type(exc), exc, entry or exc.__traceback__)).rstrip()

    async def _call(self, fn: Signature, arguments: dict[str, Any], invocation_id: str) -> Any:
        if fn.is_async:
            return await fn.call(**arguments)
        # The context is passed on, so that log records from the thread have the invocation's id.
        call = functools.partial(contextvars.copy_context().run, _in_thread, fn, arguments, invocation_id)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


def _in_thread(fn: Signature, arguments: dict[str, Any], invocation_id: str) -> Any:
    _thread_storage.invocation_id = invocation_id
    try:
        return fn.call(**arguments)
    finally:
        _thread_storage.invocation_id = None


def _load(app: Path) -> list[Function]:
    sys.path.insert(0, str(app))
    try:
        module = importlib.import_module("function_app")
        registers = [value for value in vars(module).values() if isinstance(value, FunctionRegister)]
        if len(registers) != 1:  # Microsoft's indexer counts names too: an alias of the app is a second one
            raise ValueError(f"{len(registers)} top-level names are a FunctionApp; exactly one must be")
        return list(registers[0].get_functions())
    except Exception as exc:
        raise Refused(f"{app / 'function_app.py'} cannot be loaded: {type(exc).__name__}: {exc}") from exc


def _indexed(function: Function) -> Indexed:
    name = str(function.get_function_name())
    settings = function.get_settings_dict("retry_policy")
    try:
        retry = _retry(settings) if settings else None
    except ValueError as exc:
        raise Refused(f"function {name}: retry: {exc}") from exc
    return Indexed(name, tuple(function.get_raw_bindings()), retry)


def _retry(settings: Mapping[str, Any]) -> RetryPolicy:
    def seconds(name: str, default: float) -> float:
        return timespan.parse(settings[name]).total_seconds() if settings.get(name) else default

    return RetryPolicy(
        strategy=str(settings["strategy"]),
        max_count=int(settings["max_retry_count"]),
        delay=seconds("delay_interval", RetryPolicy.delay),
        minimum=seconds("minimum_interval", RetryPolicy.minimum),
        maximum=seconds("maximum_interval", RetryPolicy.maximum),
    )


def _arguments(fn: Signature, invocation: Invocation) -> dict[str, Any]:
    metadata = {name: _datum(value) for name, value in invocation.metadata.items()}
    arguments: dict[str, Any] = {
        name: _decode(fn.inputs[name], value, metadata) for name, value in invocation.inputs.items()
    }
    arguments.update({name: Out() for name in fn.outputs})
    if fn.wants_context:
        arguments["context"] = Context(
            invocation.id,
            invocation.function,
            str(Path(inspect.getfile(fn.call)).parent),
            RetryContext(invocation.retry_count, invocation.max_retry_count),
        )
    return arguments


def _decode(parameter: Parameter, value: Value, metadata: dict[str, Datum]) -> Any:
    converter = parameter.converter
    try:
        return converter.decode(_datum(value), trigger_metadata=metadata if converter.has_trigger_support() else {})
    except NotImplementedError:
        raise TypeError(
            f"unable to decode incoming TypedData: unsupported combination of TypedData field {value.kind!r} "
            f"and expected binding type {converter}"
        ) from None


def _datum(value: Value) -> Datum:
    if not isinstance(value.content, HttpRequestData):
        return Datum(value.content, value.kind)
    request = value.content
    texts = {name: Datum(getattr(request, name), "string") for name in ("method", "url")}
    maps = {
        name: {key: Datum(text, "string") for key, text in getattr(request, name).items()}
        for name in ("headers", "query", "params")
    }
    return Datum({**texts, **maps, "body": Datum(request.body, "bytes")}, "http")


def _outcome(fn: Signature, name: str, arguments: dict[str, Any], result: Any) -> Outcome:
    if result is not None and fn.returns is None:
        raise RuntimeError(f"function {name!r} returned a {type(result).__name__}, but has no $return binding")
    outputs = {
        output: _encode(parameter, arguments[output].get())
        for output, parameter in fn.outputs.items()
        if arguments[output].get() is not None
    }
    return Outcome(returned=_encode(fn.returns, result) if fn.returns else None, outputs=outputs)


def _encode(parameter: Parameter, result: Any) -> Value:
    try:
        datum = parameter.converter.encode(result, expected_type=parameter.annotation)
    except NotImplementedError:
        raise TypeError(
            f'unable to encode outgoing TypedData: unsupported type "{parameter.binding}" for '
            f'Python type "{type(result).__name__}"'
        ) from None
    if datum.type == "http":
        return Value("http", _response(datum.value))
    if datum.type in ("dict", "list"):
        return Value("json", json.dumps(datum.value))
    return Value(datum.type, datum.value)


def _response(parts: dict[str, Any]) -> HttpResponseData:
    morsels = [morsel for cookie in parts["cookies"] or () for morsel in cookie.values()]
    return HttpResponseData(
        status=int(parts["status_code"].value),
        headers={name: header.value for name, header in parts["headers"].items()},
        body=parts["body"].value,
        cookies=tuple(_cookie(morsel) for morsel in morsels),
    )


def _cookie(morsel: Morsel[str]) -> str:
    return set_cookie(morsel.key, morsel.value, {**morsel, "samesite": morsel["samesite"].lower()})
