"""The part of the Model Context Protocol that a server of tools needs: revision 2026-07-28, and the older handshake.

A request of revision 2026-07-28 carries its version and its client's capabilities in `_meta`. Over HTTP, headers repeat
the version, the method and the tool's name, and must agree with the body. An older client begins with `initialize`. The
server answers it without a session, so each of its requests is independent, too. Source:
https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http. Pure.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from shared.kernel.reply import Reply

Json = dict[str, Any]
NEWEST = "2026-07-28"
OLDER = ("2025-11-25", "2025-06-18", "2025-03-26")
VERSION, CAPABILITIES, SERVER = (
    f"io.modelcontextprotocol/{name}" for name in ("protocolVersion", "clientCapabilities", "serverInfo")
)
METHOD_NOT_FOUND, INVALID_PARAMS = -32601, -32602  # of JSON-RPC
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022  # of the protocol
STATUS = {METHOD_NOT_FOUND: 404}  # of revision 2026-07-28; 400 for every other error
FRESH = {"ttlMs": 300_000, "cacheScope": "public"}  # the tools are the same for every caller
_ENCODED = re.compile(r"=\?base64\?(.*)\?=")


class McpMessage(Struct):
    """A request of JSON-RPC; without an id, a notification."""

    jsonrpc: Literal["2.0"]
    method: Annotated[str, Meta(min_length=1, max_length=100)]
    id: str | int | UnsetType = UNSET
    params: dict[str, Any] = {}


class McpError(Struct):
    code: int
    message: str
    data: dict[str, Any] = {}


class McpAnswer(Struct, omit_defaults=True):
    """A response of JSON-RPC: `result` or `error`."""

    jsonrpc: Literal["2.0"]
    id: str | int
    result: dict[str, Any] = {}
    error: McpError | None = None


class ProtocolError(Exception):
    """An error of the protocol, such as an unknown method. A tool's own error is a result instead."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


@dataclass(frozen=True)
class ToolServer:
    """The tools as tools/list shows them, and a function that calls a tool.

    `call` takes the tool's name and arguments, and returns the text of the answer and whether the answer is an error.
    It raises KeyError for an unknown tool.
    """

    name: str
    version: str
    instructions: str
    tools: Callable[[], list[Json]]
    call: Callable[[str, Any], tuple[str, bool]]

    @property
    def info(self) -> Json:
        return {"name": self.name, "version": self.version}


@dataclass(frozen=True)
class _Request:
    message: McpMessage
    headers: Mapping[str, str] | None = None  # names in lower case; None over stdio, which has none
    meta: Json = field(default_factory=dict)


def respond(server: ToolServer, message: McpMessage, headers: Mapping[str, str] | None) -> Reply:
    """Answer one message. A notification is accepted without effect."""
    if message.id is UNSET:
        return Reply(None, 202)
    meta = message.params.get("_meta")
    request = _Request(message, headers, meta if isinstance(meta, dict) else {})
    older = _is_older(request)
    try:
        result = _older_result(server, request) if older else _result(server, request)
    except ProtocolError as exc:
        error = {"code": exc.code, "message": str(exc), **({"data": exc.data} if exc.data else {})}
        status = 200 if older else STATUS.get(exc.code, 400)
        return Reply({"jsonrpc": "2.0", "id": message.id, "error": error}, status)
    return Reply({"jsonrpc": "2.0", "id": message.id, "result": result})


def _is_older(request: _Request) -> bool:
    """Return whether the client uses an older revision: it names one, or sends no version at all."""
    named = request.headers.get("mcp-protocol-version") if request.headers is not None else None
    return VERSION not in request.meta and named in (None, *OLDER)


def _result(server: ToolServer, request: _Request) -> Json:
    _check_meta(request)
    if request.headers is not None:
        _check_headers(request, request.headers)
    if (version := request.meta[VERSION]) != NEWEST:
        told = {"supported": [NEWEST], "requested": version}
        raise ProtocolError(UNSUPPORTED_VERSION, f"Version {version[:40]!r} is not served; use {NEWEST}.", told)
    return {"resultType": "complete", **_served(server, request), "_meta": {SERVER: server.info}}


def _served(server: ToolServer, request: _Request) -> Json:
    method = request.message.method
    if method == "server/discover":
        described = {"supportedVersions": [NEWEST], "capabilities": {"tools": {}}}
        return {**described, "instructions": server.instructions, **FRESH}
    if method == "tools/list":
        return {"tools": server.tools(), **FRESH}
    if method == "tools/call":
        return _called(server, request.message.params)
    raise ProtocolError(METHOD_NOT_FOUND, f"There is no method {method!r}.")


def _called(server: ToolServer, params: Json) -> Json:
    name, arguments = params.get("name"), params.get("arguments")
    try:
        text, is_error = server.call(str(name), {} if arguments is None else arguments)
    except KeyError as exc:
        raise ProtocolError(INVALID_PARAMS, f"There is no tool {str(name)[:80]!r}; tools/list names them.") from exc
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def _older_result(server: ToolServer, request: _Request) -> Json:
    method, params = request.message.method, request.message.params
    if method == "initialize":
        asked = params.get("protocolVersion")
        version = asked if asked in OLDER else OLDER[0]
        described: Json = {"protocolVersion": version, "capabilities": {"tools": {}}}
        return {**described, "serverInfo": server.info, "instructions": server.instructions}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": server.tools()}
    if method == "tools/call":
        return _called(server, params)
    raise ProtocolError(METHOD_NOT_FOUND, f"There is no method {method!r}.")


def _check_meta(request: _Request) -> None:
    """Raise ProtocolError unless `_meta` has the version and the client's capabilities."""
    for key, kind in ((VERSION, str), (CAPABILITIES, dict)):
        if not isinstance(request.meta.get(key), kind):
            what = "text" if kind is str else "an object"
            raise ProtocolError(INVALID_PARAMS, f"params._meta needs {key!r}, which is {what}.")


def _check_headers(request: _Request, headers: Mapping[str, str]) -> None:
    """Raise ProtocolError unless the headers agree with the body."""
    params = request.message.params
    expected = {"mcp-protocol-version": request.meta[VERSION], "mcp-method": request.message.method}
    if request.message.method == "tools/call":
        expected["mcp-name"] = params.get("name")
    for header, value in expected.items():
        sent = headers.get(header)
        if sent is None:
            raise ProtocolError(HEADER_MISMATCH, f"The header {header} is missing.")
        if (_decoded(sent) if header == "mcp-name" else sent.strip()) != value:
            raise ProtocolError(HEADER_MISMATCH, f"The header {header} differs from the body: {sent[:80]!r}.")


def _decoded(value: str) -> str | None:
    """Return a header's text, which may be encoded as =?base64?...?=; None if the text can't be decoded."""
    encoded = _ENCODED.fullmatch(value.strip())
    if encoded is None:
        return value.strip()
    try:
        return base64.b64decode(encoded[1], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
