"""The Model Context Protocol without a network: the answers, and the code and status of each refusal."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from msgspec import UNSET

from shared.agents.protocol import CAPABILITIES, NEWEST, SERVER, VERSION, McpMessage, ToolServer, respond
from shared.kernel.reply import Reply

META = {VERSION: NEWEST, CAPABILITIES: {}}
HEADERS = {"mcp-protocol-version": NEWEST, "mcp-method": "tools/list"}


def call(name: str, arguments: Any) -> tuple[str, bool]:
    return {"echo": (str(arguments), False), "fail": ("bad: no", True)}[name]


SERVING = ToolServer("trainyard", "1", "Read this first.", lambda: [{"name": "echo"}], call)


def respond_to(
    method: str, params: dict[str, Any] | None = None, headers: dict[str, str] | None = None, number: Any = 7
) -> Reply:
    return respond(SERVING, McpMessage("2.0", method, number, params or {}), headers)


@pytest.mark.parametrize(
    ("method", "params", "headers", "status", "code"),
    [
        ("tools/list", {"_meta": META}, HEADERS, 200, None),
        ("tools/list", {"_meta": META}, {}, 400, -32020),  # no header
        ("tools/list", {"_meta": META}, HEADERS | {"mcp-method": "tools/call"}, 400, -32020),
        ("tools/list", {"_meta": META}, HEADERS | {"mcp-method": "TOOLS/LIST"}, 400, -32020),
        ("tools/list", {"_meta": META}, HEADERS | {"mcp-method": " tools/list "}, 200, None),
        ("tools/list", {"_meta": META}, HEADERS | {"mcp-protocol-version": "2025-11-25"}, 400, -32020),
        ("tools/list", {"_meta": META | {VERSION: "v9"}}, HEADERS | {"mcp-protocol-version": "v9"}, 400, -32022),
        ("tools/list", {"_meta": META | {VERSION: "v9"}}, HEADERS, 400, -32020),
        ("tools/list", {"_meta": {VERSION: NEWEST}}, HEADERS, 400, -32602),
        ("tools/list", {}, HEADERS, 400, -32602),
        ("tools/list", {"_meta": 1}, HEADERS, 400, -32602),
        ("initialize", {"_meta": META}, HEADERS | {"mcp-method": "initialize"}, 404, -32601),
        ("tools/list", {}, {}, 200, None),  # a client before 2025-06-18 sends no version
        ("tools/list", {}, {"mcp-protocol-version": "2025-11-25"}, 200, None),
        ("resources/list", {}, {"mcp-protocol-version": "2025-11-25"}, 200, -32601),
        ("server/discover", {"_meta": META}, None, 200, None),  # over stdio
    ],
)
def test_a_request_is_answered_by_its_revision(
    method: str, params: dict[str, Any], headers: dict[str, str] | None, status: int, code: int | None
) -> None:
    """Version, method and capabilities are checked as the protocol requires; an older client gets errors with
    status 200."""
    reply = respond_to(method, params, headers)
    assert (reply.status, reply.value["id"], reply.value.get("error", {}).get("code")) == (status, 7, code)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("echo", 200),
        (f"=?base64?{base64.b64encode(b'echo').decode()}?=", 200),
        ("other", 400),
        ("=?base64?!?=", 400),
        (None, 400),
    ],
)
def test_the_header_names_the_tool(sent: str | None, status: int) -> None:
    """Mcp-Name is decoded before it is compared with the body."""
    headers = HEADERS | {"mcp-method": "tools/call"} | ({"mcp-name": sent} if sent else {})
    reply = respond_to("tools/call", {"_meta": META, "name": "echo"}, headers)
    assert reply.status == status


def test_a_tool_answers_with_text() -> None:
    """A tool's answer and its error are results; an unknown tool is a protocol error."""
    results = {}
    for name in ("echo", "fail", "gone"):
        headers = HEADERS | {"mcp-method": "tools/call", "mcp-name": name}
        results[name] = respond_to("tools/call", {"_meta": META, "name": name, "arguments": {"a": 1}}, headers).value
    assert results["echo"]["result"]["content"] == [{"type": "text", "text": "{'a': 1}"}]
    assert results["echo"]["result"]["resultType"] == "complete"
    assert results["fail"]["result"]["isError"] is True
    assert results["gone"]["error"]["code"] == -32602


def test_the_server_says_what_it_is() -> None:
    """server/discover returns the revision, the tools and the instructions. Its answer may be cached, and so may
    the list."""
    found = respond_to("server/discover", {"_meta": META}).value["result"]
    assert found["supportedVersions"] == [NEWEST]
    assert (found["capabilities"], found["instructions"]) == ({"tools": {}}, "Read this first.")
    assert found["_meta"] == {SERVER: {"name": "trainyard", "version": "1"}}
    assert {"ttlMs", "cacheScope"} <= found.keys()
    assert {"ttlMs", "cacheScope"} <= respond_to("tools/list", {"_meta": META}).value["result"].keys()


def test_an_older_client_gets_its_version() -> None:
    """initialize answers with the requested version, or the newest of the older ones, without a session."""
    versions = [
        respond_to("initialize", {"protocolVersion": each}, {}).value["result"]["protocolVersion"]
        for each in ("2025-06-18", "1999-01-01", NEWEST)
    ]
    assert versions == ["2025-06-18", "2025-11-25", "2025-11-25"]
    assert respond_to("ping", {}, {}).value["result"] == {}
    assert respond_to("notifications/initialized", {}, {}, UNSET) == Reply(None, 202)
