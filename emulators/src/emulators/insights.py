"""A local ingestion endpoint in place of Application Insights. It accepts and stores the items of exporters.

Exporters send telemetry items to `<IngestionEndpoint>v2/track` or `.../v2.1/track`: a JSON array, or one JSON object on
each line, possibly compressed. The answer is Azure's, and accepts all items.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# The name under which a type of item is counted.
KINDS = {
    "MessageData": "records",
    "ExceptionData": "records",
    "EventData": "records",
    "RequestData": "spans",
    "RemoteDependencyData": "spans",
    "MetricData": "metrics",
}
KEY = "00000000-0000-0000-0000-000000000001"

Json = dict[str, Any]


class Ingestion:
    """The items received so far. `connection_string` is the setting for an exporter."""

    def __init__(self) -> None:
        self.items: list[Json] = []
        self.address = ""

    @property
    def connection_string(self) -> str:
        return f"InstrumentationKey={KEY};IngestionEndpoint={self.address};LiveEndpoint={self.address}"

    def names(self, kind: str, part: str) -> list[str]:
        """Return this member of the data of each item whose type is `kind`."""
        return [item["data"]["baseData"][part] for item in self.items if item["data"]["baseType"] == kind]

    def counts(self, since: int = 0) -> Counter[str]:
        """Count records, spans, metrics, and the bytes of all items as JSON, from item number `since` on."""
        found = Counter[str]()
        for item in self.items[since:]:
            found[KINDS.get(item["data"]["baseType"], "others")] += 1
            found["bytes"] += len(json.dumps(item, separators=(",", ":")).encode())
        return found

    def add(self, body: bytes) -> int:
        """Add the items in the body. Return the number of items."""
        text = body.decode().strip()
        found = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]
        self.items += found
        return len(found)


@contextmanager
def ingestion() -> Iterator[Ingestion]:
    """Serve an ingestion endpoint on a free port of this machine."""
    taken = Ingestion()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            plain = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
            count = taken.add(plain) if self.path.endswith("/track") else 0
            answer = json.dumps({"itemsReceived": count, "itemsAccepted": count, "errors": []}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    taken.address = f"http://127.0.0.1:{server.server_port}/"
    try:
        yield taken
    finally:
        server.shutdown()
        server.server_close()
