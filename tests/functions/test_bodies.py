"""Bodies that Azure's host does not pass on are refused, and not treated as empty."""

from __future__ import annotations

import asyncio
import json

import azure.functions as func
import pytest

from functions import http
from shared.kernel.operation import ANYONE

handle = http.handler("x", ANYONE, lambda req: http.response({"bytes": len(req.get_body())}))


def status(method: str, headers: dict[str, str], body: bytes = b"") -> tuple[int, object]:
    request = func.HttpRequest(method, "/api/x", headers=headers, body=body)
    response: func.HttpResponse = asyncio.run(handle(request))  # type: ignore[arg-type]
    return response.status_code, json.loads(response.get_body()).get("code")


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_chunked_body_is_411(method: str) -> None:
    """With Transfer-Encoding alone the body arrives empty, and a retry would run without its parameters."""
    assert status(method, {"transfer-encoding": "chunked"}) == (411, "length_required")
    assert status(method, {"Transfer-Encoding": "gzip, Chunked"}) == (411, "length_required")


def test_a_request_without_a_body_needs_no_length() -> None:
    """`curl -X POST` sends neither header."""
    assert status("POST", {}) == (200, None)
    assert status("POST", {"content-length": "2"}, b"{}") == (200, None)
