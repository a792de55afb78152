"""An MCP server on 127.0.0.1: the app's own function on a fake workspace, without a Functions host."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from shared import bootstrap
from tests.fakes.world import World, trainers_folder
from tests.shared.agents.desk import post


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        answered = post(body, dict(self.headers.items()))
        data = answered.get_body()
        self.send_response(answered.status_code)
        self.send_header("Content-Type", answered.mimetype)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.send_response(405)
        self.send_header("Allow", "POST")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_DELETE = do_GET

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served() -> Iterator[str]:
    """Yield the server's address. The workspace has one run."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(trainers_folder(Path(folder)))
        world.complete("1.bin")
        for name in ("system", "post", "schedules", "removals"):
            setattr(bootstrap, name, lambda name=name: getattr(world, name))
        with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}/api/mcp"
            server.shutdown()
