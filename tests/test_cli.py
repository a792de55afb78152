"""The command line, over HTTP to a server that answers as the API does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cli import __main__ as cli
from cli import client

STATUS: dict[str, Any] = {
    "queues": {"drop-events": {"messages": 3, "poison": 1}, "archives": {"messages": 0, "poison": 0}},
    "poison": {"drop-events": ["{not json [bold]"]},
    "drops": [{"drop": "nope/x", "state": "rejected", "blobs": 2, "why": "Unknown route nope. Routes: mnist."}],
    "runs": [
        {
            "run": "mnist-0123",
            "state": "failed",
            "drop": "mnist/x",
            "cluster": "cpu-cluster",
            "nodes": 2,
            "reason": "exited with status code 3",
            "archived_at": None,
        }
    ],
    "clusters": [
        {
            "name": "cpu-cluster",
            "nodes": 1,
            "busy_nodes": 0,
            "min_nodes": 0,
            "max_nodes": 4,
            "decision": {
                "action": "keep",
                "code": "busy",
                "why": "run mnist-0123 is running",
                "at": "2026-01-01T00:00:00Z",
            },
        }
    ],
}


class Answers(BaseHTTPRequestHandler):
    answers: dict[str, tuple[int, Any]]

    def do_GET(self) -> None:
        code, body = self.answers.get(self.path, (404, {"title": "not found", "detail": f"No {self.path}"}))
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture
def api() -> Iterator[str]:
    Answers.answers = {"/api/status": (200, STATUS)}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/api"
    server.shutdown()
    thread.join()
    server.server_close()


def run(monkeypatch: pytest.MonkeyPatch, *argv: str) -> int:
    monkeypatch.setattr("sys.argv", ["trainyard", *argv])
    monkeypatch.setenv("COLUMNS", "200")
    try:
        return cli.main()
    except SystemExit as exc:
        return int(exc.code or 0)


def test_status_shows_everything(api: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A run's reason, a drop's why, a decision and a poison message's text are all on the screen."""
    assert run(monkeypatch, "status", "--url", api) == 0
    said = capsys.readouterr().out
    for part in (
        "mnist-0123",
        "exited with status code 3",
        "Unknown route nope",
        "keep: run mnist-0123 is running",
        "{not json [bold]",
    ):
        assert part in said


def test_status_as_json(api: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints the API's answer unchanged."""
    assert run(monkeypatch, "status", "--url", api, "--json") == 0
    assert json.loads(capsys.readouterr().out) == STATUS


def test_an_empty_system_says_so(api: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Parts without rows are shown as none."""
    Answers.answers["/api/status"] = (200, {"queues": {}, "poison": {}, "drops": [], "runs": [], "clusters": []})
    assert run(monkeypatch, "status", "--url", api) == 0
    assert capsys.readouterr().out.count("none") == 5


def test_a_refusal_is_told_in_the_apis_words(
    api: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error answer ends with status 1 and the API's own detail on standard error, without a traceback."""
    Answers.answers["/api/status"] = (503, {"title": "unavailable", "detail": "The workspace does not answer."})
    assert run(monkeypatch, "status", "--url", api) == 1
    assert "503: The workspace does not answer." in capsys.readouterr().err


def test_an_api_that_is_away(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """If nothing listens, the message says what to do."""
    assert run(monkeypatch, "status", "--url", "http://127.0.0.1:9/api") == 1
    assert "trainyard.py up" in capsys.readouterr().err


def test_the_api_is_found(tmp_path: Path) -> None:
    """--url comes first, then TRAINYARD_URL, then the running local cloud; without any, the error says what to do."""
    file = tmp_path / "cloud.json"
    file.write_text(json.dumps({"api": "http://local/api"}))
    assert client.find_api("http://given/api/", {"TRAINYARD_URL": "http://env/api"}, file) == "http://given/api"
    assert client.find_api("", {"TRAINYARD_URL": "http://env/api"}, file) == "http://env/api"
    assert client.find_api("", {}, file) == "http://local/api"
    with pytest.raises(client.ApiError, match=r"trainyard\.py up"):
        client.find_api("", {}, tmp_path / "none")
