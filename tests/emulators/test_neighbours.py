"""Whose a connection is, as Linux tells it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from emulators import neighbours


@pytest.mark.skipif(not neighbours.TABLE.exists(), reason="needs Linux")
def test_our_own_connection_is_found_and_a_strangers_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection of ours passes; the same one in the name of another user, or one that is nowhere, does not."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = server.getsockname()
        with socket.create_connection(here) as client:
            accepted, peer = server.accept()
            assert neighbours.is_ours(peer, here)
            table = tmp_path / "tcp"
            table.write_text(neighbours.TABLE.read_text().replace(f" {os.getuid()} ", " 4242 "))
            monkeypatch.setattr(neighbours, "TABLE", table)
            assert not neighbours.is_ours(peer, here)
            table.write_text(table.read_text().replace(f":{client.getsockname()[1]:04X}", ":0001"))
            assert not neighbours.is_ours(peer, here)
            accepted.close()


@pytest.mark.skipif(not neighbours.TABLE.exists(), reason="needs Linux")
def test_a_client_that_has_gone_is_nobody() -> None:
    """Linux shows a closed socket as root's: a stranger who sends and closes at once must not pass for root."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, peer = server.accept()
        client.sendall(b"POST / HTTP/1.1\r\n\r\n")
        client.close()
        assert not neighbours.is_ours(peer, server.getsockname())
        accepted.close()


def test_where_nobody_tells_all_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the table, as on macOS and Windows, every connection counts as ours."""
    monkeypatch.setattr(neighbours, "TABLE", tmp_path / "none")
    assert neighbours.is_ours(("127.0.0.1", 1), ("127.0.0.1", 2))
