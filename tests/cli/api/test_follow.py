"""Logs that arrive in pieces, and interrupted follows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cli.show.runs import result
from cli.terminal_text import Console

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]
LOG = "größe 🚂\n".encode()


def in_pieces(server: Any, size: int, query: str) -> None:
    """The log in pieces of this many bytes, cut without regard to characters, as a proxy or another server may."""
    server.says("/api/runs/r", {"run": "r", "state": "completed"})
    for offset in range(0, len(LOG), size):
        piece = LOG[offset : offset + size]
        told = {"x_next_offset": str(offset + len(piece)), "x_log_complete": str(offset + size >= len(LOG)).lower()}
        server.says(f"/api/runs/r/logs?rank=0&offset={offset}{query}", piece, **told)


@pytest.mark.parametrize("size", range(1, 8))
def test_a_character_is_never_broken(server: Any, run: Run, capsys: Capture, size: int) -> None:
    """Wherever a log is cut into pieces, its text comes out whole."""
    in_pieces(server, size, "")
    assert run("logs", "r", "--url", server.url) == 0
    assert capsys.readouterr().out == LOG.decode()


def test_bytes_that_are_no_text_are_shown(server: Any, run: Run, capsys: Capture) -> None:
    """A log that ends inside a character, or has invalid bytes, is shown to its end with replacement characters."""
    server.says("/api/runs/r", {"run": "r", "state": "completed"})
    server.says("/api/runs/r/logs?rank=0&offset=0", b"a\xffb\xc3", x_next_offset="4", x_log_complete="true")
    assert run("logs", "r", "--url", server.url) == 0
    assert capsys.readouterr().out == "a\ufffdb\ufffd"


def test_pieces_as_json(server: Any, run: Run, capsys: Capture) -> None:
    """With --json each piece is an object on its own line, with its offset and the next offset."""
    in_pieces(server, 8, "&wait=20")
    server.says("/api/runs/r", {"run": "r", "state": "failed"})
    assert run("logs", "-f", "r", "--json", "--url", server.url) == 4
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["offset"], row["next_offset"], row["complete"]) for row in rows] == [(0, 8, False), (8, 13, True)]
    assert "".join(row["text"] for row in rows) == LOG.decode()


def test_a_run_without_a_log_is_not_followed_in_silence(server: Any, run: Run, capsys: Capture) -> None:
    """For a run that never had a node, such as one canceled in the queue, `logs -f` prints its state."""
    server.says("/api/runs/r", {"run": "r", "state": "canceled"})
    server.says("/api/runs/r/logs?rank=0&offset=0&wait=20", b"", x_next_offset="0", x_log_complete="true")
    assert run("logs", "-f", "r", "--url", server.url) == 5
    assert capsys.readouterr().err == "r is canceled and has no log: python3 trainyard.py show r\n"


def test_a_login_that_expires_leaves_the_run_alone(server: Any, run: Run, capsys: Capture) -> None:
    """When a login expires during a follow or a log, the message says that the run continues, and how to resume
    after a new login."""
    running = {"run": "r", "state": "running", "cluster": "c", "nodes": 1, "experiment": "e"}
    running["created_at"] = "2026-01-31T12:00:00+00:00"
    server.says("/api/runs/r", running)
    server.says("/api/runs/old/retry", running)
    server.says("/api/runs/old", {**running, "run": "old", "state": "failed"})
    server.says("/api/runs/r/logs?rank=0&offset=0&wait=2", {}, 401)
    assert run("retry", "old", "--follow", "--url", server.url) == 1
    said = capsys.readouterr().err
    assert said.index("The run continues. To follow it again: python3 trainyard.py logs -f r\n") < said.index(
        "answered 401"
    )
    server.says("/api/runs/r/logs?rank=0&offset=0&wait=20", b"12345", x_next_offset="5", x_log_complete="false")
    server.says("/api/runs/r/logs?rank=0&offset=5&wait=20", {}, 401)
    assert run("logs", "-f", "r", "--url", server.url) == 1
    assert "To continue reading: python3 trainyard.py logs -f r --rank 0 --offset 5\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("state", "last", "see"),
    [("completed", {"loss": 1.0}, "metrics"), ("completed", {}, "logs"), ("failed", {}, "show")],
)
def test_the_end_of_a_run_says_where_to_look(
    monkeypatch: pytest.MonkeyPatch, state: str, last: dict[str, float], see: str
) -> None:
    """The end of a run points to its metrics, to its log if it logged none, or to its reason if it failed."""
    monkeypatch.delenv("TRAINYARD_CWD", raising=False)  # set while trainyard.py runs the tests
    ended = {"run": "run-1", "state": state, "reason": "", "output": "output/e/run-1", "metrics": {"last": last}}
    console = Console(width=100)
    with console.capture() as said:
        console.print(result(ended))
    assert f"trainyard {see} run-1" in said.get()
