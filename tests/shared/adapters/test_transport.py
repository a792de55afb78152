"""The SDKs' requests as shared/adapters/transport.py sends them."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from azure.core import PipelineClient
from azure.core.exceptions import ServiceRequestError
from azure.core.rest import HttpRequest

from shared.adapters.transport import transport

Seen = list[tuple[str, str, bytes]]


@contextmanager
def server(seen: Seen) -> Iterator[str]:
    """A server that answers 200 to everything, and records method, target and body."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            seen.append((self.command, self.path, self.rfile.read(int(self.headers["Content-Length"] or 0))))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            """Log nothing on standard error."""

    with Server(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()


def put(url: str, content: Any) -> str:
    client: PipelineClient[Any, Any] = PipelineClient(url, policies=[], transport=transport(connection_timeout=5))
    with client:
        return str(client.send_request(HttpRequest("PUT", f"{url}/a?b=c", content=content)).text())


def test_bytes_texts_and_streams_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body of any type is sent unchanged, and so is a target with its query."""
    monkeypatch.setenv("NO_PROXY", "*")
    seen: Seen = []
    with server(seen) as url:
        assert [put(url, content) for content in ("text", b"x" * 9, io.BytesIO(b"stream"), None)] == ["ok"] * 4
    assert [body for *_, body in seen[:3]] == [b"text", b"x" * 9, b"stream"]
    assert {target for _, target, _ in seen} == {"/a?b=c"}


def test_the_environments_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests go through HTTP_PROXY, except to the hosts in NO_PROXY."""
    seen: Seen = []
    with server(seen) as proxy, server([]) as near:
        monkeypatch.setenv("HTTP_PROXY", proxy)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert put(near, b"x") == "ok"
        assert not seen
        assert put("http://far.example", b"x") == "ok"
    assert [target for _, target, _ in seen] == ["http://far.example/a?b=c"]


def test_a_server_that_is_not_there_is_azure_cores_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection error is the one that azure-core's own transport raises."""
    monkeypatch.setenv("NO_PROXY", "*")
    with pytest.raises(ServiceRequestError):
        put("http://127.0.0.1:9", b"x")


def test_connections_are_kept_for_all_who_ask_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two rounds of thirty-two concurrent requests reuse their connections; none is discarded after use."""
    monkeypatch.setenv("NO_PROXY", "*")
    seen: Seen = []
    with server(seen) as url:
        client: PipelineClient[Any, Any] = PipelineClient(url, policies=[], transport=transport(connection_timeout=5))
        together = threading.Barrier(32)

        def ask(_: int) -> None:
            for _ in range(2):
                together.wait(30)
                client.send_request(HttpRequest("PUT", f"{url}/a", content=b"x"))

        with client, ThreadPoolExecutor(32) as threads:
            list(threads.map(ask, range(32)))
    assert len(seen) == 64
    assert "Connection pool is full" not in caplog.text
