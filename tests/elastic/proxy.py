"""A proxy between a client and Azurite that loses, delays and refuses requests as a test demands."""

from __future__ import annotations

import http.client
import random
import socket
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FAULTS = ("cut before", "cut after", "busy", "throttled", "slow")
REFUSALS = {"busy": 503, "throttled": 429}


class Proxy:
    """`faults` are applied in order to requests of `methods`. After that, a share `rate` of the requests gets a
    random fault.

    cut before: the connection ends and the request never arrives. cut after: it is carried out, and the answer is
    lost. busy, throttled: 503 and 429 with Retry-After (`after` seconds). slow: 0.2 s late.
    """

    def __init__(self, port: int) -> None:
        self.faults: deque[str] = deque()
        self.methods = {"GET", "POST", "PUT", "PATCH", "DELETE"}
        self.rate = 0.0
        self.after = "0"
        self.seen: list[tuple[str, str | None]] = []  # method and fault of each request
        self.paths: list[str] = []
        self._port = port
        self._random = random.Random(1)
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/devstoreaccount1"

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fault(self, method: str, path: str) -> str | None:
        with self._lock:
            fault = None
            if method in self.methods:
                if self.faults:
                    fault = self.faults.popleft()
                elif self._random.random() < self.rate:
                    fault = self._random.choice(FAULTS)
            self.seen.append((method, fault))
            self.paths.append(path)
            return fault

    def forward(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, Any, bytes]:
        upstream = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            upstream.request(method, path, body, headers)
            answer = upstream.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            upstream.close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except OSError:  # the client gave up
                    self.close_connection = True

            def relay(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                fault = proxy.fault(self.command, self.path)
                if fault == "cut before":
                    return self.cut()
                if fault in REFUSALS:
                    return self.answer(REFUSALS[fault], [("Retry-After", proxy.after)], b"")
                status, headers, text = proxy.forward(self.command, self.path, body, dict(self.headers))
                if fault == "cut after":
                    return self.cut()
                if fault == "slow":
                    time.sleep(0.2)
                return self.answer(status, headers, text)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = relay

            def cut(self) -> None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

            def answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
                self.send_response_only(status)
                for name, value in headers:
                    if name.lower() not in ("transfer-encoding", "content-length", "connection", "keep-alive"):
                        self.send_header(name, value)
                if status != 204:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler
