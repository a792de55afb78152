"""A server with scripted answers, for answers that the real API gives only when something is wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from cli import __main__ as cli


class Server:
    """`answers` maps a path (with its query) to (status, body, headers). A body of bytes is sent unchanged."""

    def __init__(self, port: int) -> None:
        self.root = f"http://127.0.0.1:{port}"
        self.url = f"{self.root}/api"
        self.answers: dict[str, tuple[int, Any, dict[str, str]]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.busy: dict[str, int] = {}  # how often a path first answers like a busy API
        self.busy_answer: tuple[int, Any] = (503, {"detail": "The workspace did not answer."})

    def says(self, path: str, body: Any, status: int = 200, **headers: str) -> None:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers[path] = (status, body, told)

    def answer(self, path: str) -> tuple[int, Any, dict[str, str]]:
        if self.busy.get(path):
            self.busy[path] -= 1
            return *self.busy_answer, {"retry-after": "0"}
        return self.answers.get(path, (404, {"detail": f"No {path}"}, {}))


class Handler(BaseHTTPRequestHandler):
    server: Any

    def do_GET(self) -> None:
        book: Server = self.server.book
        book.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        status, body, headers = book.answer(self.path)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        if status == 200 and (rest := self.headers.get("range")):
            status, content = 206, content[int(rest.removeprefix("bytes=").removesuffix("-")) :]
        self.send_response(status)
        for name, value in {"content-length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving.daemon_threads = True
    book = Server(serving.server_port)
    serving.book = book  # type: ignore[attr-defined]
    thread = threading.Thread(target=serving.serve_forever, args=(0.02,))
    thread.start()
    yield book
    serving.shutdown()
    thread.join()
    serving.server_close()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Callable[..., int]:
    """Run a command in an environment without any cloud or login; return its exit status."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TRAINYARD_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("TRAINYARD_CLOUD", str(tmp_path / "no-cloud"))
    monkeypatch.setenv("TRAINYARD_CWD", str(tmp_path))
    for name in ("TRAINYARD_URL", "TRAINYARD_PROFILE", "TRAINYARD_KEY"):
        monkeypatch.delenv(name, raising=False)

    def command(*argv: str) -> int:
        monkeypatch.setattr("sys.argv", ["trainyard", *argv])
        try:
            return cli.main()
        except SystemExit as exc:
            return int(exc.code or 0)

    return command
