"""The command mcp: messages on standard input reach the API, and each answer is one line of standard output."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from cli.api.client import Api
from cli.api.mcp_bridge import VERSION, headers_of, serve
from shared.agents.protocol import CAPABILITIES, NEWEST

META = {VERSION: NEWEST, CAPABILITIES: {}}
ASKED: list[tuple[dict[str, str], Any]] = []


class Answers(BaseHTTPRequestHandler):
    """Answers like the app: 200 with a result, 404 with an error of the protocol, 403 with a problem."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        ASKED.append(({name.lower(): value for name, value in self.headers.items()}, body))
        status = {"tools/list": 200, "gone": 404}.get(body["method"], 403)
        answer = {"jsonrpc": "2.0", "id": body["id"], "result": {"tools": []}}
        data = json.dumps(answer if status != 403 else {"code": "forbidden", "detail": "No."}).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def api() -> Iterator[Api]:
    ASKED.clear()
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        with Api(f"http://127.0.0.1:{server.server_port}/api") as client:
            yield client
        server.shutdown()


def test_each_line_is_answered(api: Api) -> None:
    """Requests are forwarded with their headers; bad lines and refusals give errors, and notifications give no
    answer."""
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}).encode(),
        b"\n",
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n',
        b"{",
        b"[]",
        b'{"jsonrpc": "2.0", "id": "two", "method": "gone"}',
        b'{"jsonrpc": "2.0", "id": 3, "method": "tools/call"}',
    ]
    answers: list[dict[str, Any]] = []
    serve(lines, answers.append, api)
    assert [each["id"] for each in answers] == [1, None, None, "two", 3]
    assert [each.get("error", {}).get("code") for each in answers] == [None, -32700, -32600, None, -32603]
    assert answers[-1]["error"]["message"] == "The API answered 403: No."
    assert len(ASKED) == 3
    assert ASKED[0][0]["mcp-method"] == "tools/list"


def test_headers_repeat_the_message() -> None:
    """A tool name that is invalid in a header is encoded; messages of older versions have no such headers."""
    message = {"method": "tools/call", "params": {"_meta": META, "name": "wait"}}
    assert headers_of(message) == {"MCP-Protocol-Version": NEWEST, "Mcp-Method": "tools/call", "Mcp-Name": "wait"}
    message["params"]["name"] = "wärt\n"  # type: ignore[index]
    encoded = base64.b64encode("wärt\n".encode()).decode()
    assert headers_of(message)["Mcp-Name"] == f"=?base64?{encoded}?="
    assert headers_of({"method": "initialize", "params": {"protocolVersion": "2025-11-25"}}) == {}
