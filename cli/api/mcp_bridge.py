"""Pass messages of the Model Context Protocol from standard input to the deployment, and its answers back.

Each line is one message (https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio). Over HTTP,
headers repeat the version, the method and the name of the tool.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import CliError
from .client import Api

Message = dict[str, Any]
PARSE_ERROR, BAD_REQUEST, FAILED = -32700, -32600, -32603  # of JSON-RPC
VERSION = "io.modelcontextprotocol/protocolVersion"


def serve(lines: Iterable[bytes], write: Callable[[Message], None], api: Api) -> None:
    """Answer each line until the input ends. A notification is not answered."""
    for line in lines:
        if line.strip() and (answer := _answered(line, api)) is not None:
            write(answer)


def _answered(line: bytes, api: Api) -> Message | None:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as exc:
        return _error(None, PARSE_ERROR, f"The line is not JSON: {exc}.")
    if not isinstance(request, dict) or not isinstance(request.get("method"), str):
        return _error(None, BAD_REQUEST, "The line is not a request of JSON-RPC.")
    if "id" not in request:
        return None
    try:
        sent = api.send("POST", "mcp", body=request, headers=headers_of(request), accept=(400, 404), repeats=True)
        answer = sent.json()
    except (CliError, ValueError) as exc:
        return _error(request["id"], FAILED, str(exc))
    if isinstance(answer, dict) and "jsonrpc" in answer:
        return answer
    why = answer.get("detail", answer) if isinstance(answer, dict) else answer  # such as a field of a wrong type
    return _error(request["id"], BAD_REQUEST, str(why))


def headers_of(request: Message) -> dict[str, str]:
    """Return the headers that a request of revision 2026-07-28 needs over HTTP; {} for a request of an older
    revision.
    """
    params = request.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(VERSION) if isinstance(meta, dict) else None
    if not isinstance(version, str) or not isinstance(params, dict):
        return {}
    headers = {"MCP-Protocol-Version": _encoded(version), "Mcp-Method": _encoded(request["method"])}
    if isinstance(name := params.get("name"), str):
        headers["Mcp-Name"] = _encoded(name)
    return headers


def _encoded(value: str) -> str:
    """Return the value in a form that a header can have: printable ASCII, or =?base64?...?=."""
    if value.isascii() and value.isprintable() and value == value.strip() and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def _error(number: Any, code: int, words: str) -> Message:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": words}}
