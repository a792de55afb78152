"""Three proxies before the storage account that record each request of the app and its host."""

from __future__ import annotations

import base64
import http.client
import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from emulators.arm.operations import Request
from emulators.storage.keys import ACCOUNT

SERVICES = ("blob", "queue", "table")
HOP_BY_HOP = ("transfer-encoding", "connection", "keep-alive")


class Recorder:
    """Proxies before the account in `home`, whose key the recorder chooses.

    The emulators' port file is read with the first request, because the emulators may start after the recorder.
    """

    def __init__(self, home: Path) -> None:
        self.requests: list[tuple[Request, int]] = []
        self._ports_file = home / "ports.json"
        self._key = base64.b64encode(secrets.token_bytes(64)).decode()
        home.mkdir(parents=True, exist_ok=True)
        (home / "account.key").write_text(self._key)
        self._servers = {name: ThreadingHTTPServer(("127.0.0.1", 0), self._handler(name)) for name in SERVICES}

    @property
    def connection_string(self) -> str:
        urls = {name: f"http://127.0.0.1:{server.server_port}/{ACCOUNT}" for name, server in self._servers.items()}
        places = "".join(f"{name.title()}Endpoint={url};" for name, url in urls.items())
        return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={self._key};{places}"

    def __enter__(self) -> Recorder:
        for server in self._servers.values():
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers.values():
            server.shutdown()
            server.server_close()

    def pass_on(self, service: str, method: str, path: str, headers: dict[str, str], body: bytes) -> Any:
        port = json.loads(self._ports_file.read_text())[service]
        upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            upstream.request(method, path, body, headers)
            answer = upstream.getresponse()
            status, sent, content = answer.status, answer.getheaders(), answer.read()
        finally:
            upstream.close()
        known = {name.lower(): value for name, value in headers.items()}
        text = body.decode("utf-8", "replace") if "$batch" in path else ""
        self.requests.append((Request(service, method, path.removeprefix(f"/{ACCOUNT}"), known, text), status))
        return status, sent, content

    def _handler(self, service: str) -> type[BaseHTTPRequestHandler]:
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def relay(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, headers, content = recorder.pass_on(service, self.command, self.path, dict(self.headers), body)
                self.send_response_only(status)
                for name, value in headers:
                    if name.lower() not in HOP_BY_HOP and (name.lower() != "content-length" or self.command == "HEAD"):
                        self.send_header(name, value)
                if self.command != "HEAD" and status not in (204, 304):
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = relay

            def log_message(self, *_: object) -> None:
                """Log nothing: tests read `requests`."""

        return Handler
