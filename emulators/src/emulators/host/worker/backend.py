"""The seam between host and worker: an app's functions as data, and the call of one function.

The two implementations, `direct` and `ms_runtime`, give equal results; emulator_tests/host/test_conformance.py holds
them to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Kind = Literal["string", "json", "bytes", "int", "double", "http"]


@dataclass(frozen=True)
class Value:
    """One TypedData of the protocol between Functions host and worker: the name of the set field, and the content.

    `json` holds text. `http` holds an HttpRequestData on the way in and an HttpResponseData on the way out.
    """

    kind: Kind
    content: Any


@dataclass(frozen=True)
class HttpRequestData:
    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class HttpResponseData:
    """`cookies` are complete Set-Cookie values."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cookies: tuple[str, ...] = ()


@dataclass(frozen=True)
class RetryPolicy:
    """The retry policy of `@app.retry`. `max_count` -1 retries for ever. Times are in seconds; the defaults are the
    worker's."""

    strategy: str
    max_count: int
    delay: float = 0.0
    minimum: float = 0.0
    maximum: float = 2147483647.0


@dataclass(frozen=True)
class Indexed:
    """A function in the app's declaration: `raw_bindings` are the JSON texts from azure-functions."""

    name: str
    raw_bindings: tuple[str, ...]
    retry: RetryPolicy | None = None


@dataclass(frozen=True)
class Invocation:
    """One invocation of a function. `inputs` are by parameter name; `metadata` is the trigger's metadata."""

    id: str
    function: str
    inputs: Mapping[str, Value]
    metadata: Mapping[str, Value] = field(default_factory=dict)
    retry_count: int = 0
    max_retry_count: int = 0


@dataclass(frozen=True)
class Outcome:
    """The outcome of an invocation. `error` is `Type: message`, and None after success; `trace` is the error's
    traceback."""

    error: str | None = None
    trace: str = ""
    returned: Value | None = None
    outputs: Mapping[str, Value] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.error is None


class Backend(Protocol):
    """Loads one app per process, once, and calls the app's functions. Every method runs on the app's own event loop."""

    async def start(self) -> list[Indexed]:
        """Import and index the app. Raises Refused, with the app's own error, when that fails."""

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Call the function. Errors of the function, and unacceptable inputs, are part of the outcome and not
        raised.
        """

    def close(self) -> None:
        """Start no more threads. Does not wait for running functions."""
