"""A machine's metadata service (IMDS), limited to Scheduled Events: documents with an incarnation, and the
machine's name."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

NAME = "aks-pool_12"
EVENT = {"ResourceType": "VirtualMachine", "EventStatus": "Scheduled", "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT"}


class Service:
    """A service that answers at `url`. `events` is the content of its document; `asked` lists the paths of valid
    requests."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.incarnation = 1
        self.events: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.refused: list[str] = []

    def announce(self, *names: str, kind: str = "Preempt") -> None:
        """Announce an event for these machines."""
        event = {**EVENT, "EventId": f"e{self.incarnation}", "EventType": kind, "Resources": list(names)}
        self.events = [*self.events, event]
        self.incarnation += 1

    def answer(self, path: str, query: dict[str, list[str]], header: str | None) -> str | None:
        if header != "true" or not query.get("api-version"):
            self.refused.append(path)
            return None
        self.asked.append(path)
        if path == "/metadata/scheduledevents":
            return json.dumps({"DocumentIncarnation": self.incarnation, "Events": self.events})
        return NAME if path == "/metadata/instance/compute/name" and query.get("format") == ["text"] else None


@contextmanager
def running() -> Iterator[Service]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            split = urlsplit(self.path)
            told = service.answer(split.path, parse_qs(split.query), self.headers.get("Metadata"))
            self.send_response(200 if told is not None else 400)
            self.end_headers()
            self.wfile.write((told or "").encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service = Service(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
