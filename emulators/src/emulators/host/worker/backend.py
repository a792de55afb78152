"""The interface between host and worker: an app's functions as data, and the call of one function.

The two implementations, `direct` and `ms_runtime`, give equal results, which emulator_tests/host/test_conformance.py
checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Kind = Literal["string", "json", "bytes", "int", "double", "http"]


@dataclass(frozen=True)
class Value:
    """One TypedData of the protocol between Functions host and worker: the name of the field that is set, and its
    content.

    `json` has text. `http` has an HttpRequestData as an input and an HttpResponseData as an output.
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
    """The retry policy of `@app.retry`. `max_count` -1 retries without limit. Times are in seconds, and the
    defaults are the worker's."""

    strategy: str
    max_count: int
    delay: float = 0.0
    minimum: float = 0.0
    maximum: float = 2147483647.0


@dataclass(frozen=True)
class Indexed:
    """A function as the app declares it. `raw_bindings` are the JSON texts from azure-functions."""

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
    """The outcome of an invocation. `error` is `Type: message`, or None after a success. `trace` is the error's
    traceback."""

    error: str | None = None
    trace: str = ""
    returned: Value | None = None
    outputs: Mapping[str, Value] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.error is None


class Backend(Protocol):
    """Loads one app per process, once, and calls its functions. Every method runs on the app's own event loop."""

    async def start(self) -> list[Indexed]:
        """Import and index the app. Raises Refused, with the app's own error, if this fails."""

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Call the function. Errors of the function and invalid inputs are part of the outcome and are not raised."""

    def close(self) -> None:
        """Start no more threads. The method does not wait for running functions."""
