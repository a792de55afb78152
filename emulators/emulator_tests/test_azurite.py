"""Azurite behind a guard."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from emulator_tests import azurites
from emulator_tests.test_neighbours import dual_stack, plain


def test_dual_stack_clients_are_served(tmp_path: Path) -> None:
    """A client whose socket has both address families, like .NET's, gets a normal answer."""
    with azurites.started(tmp_path) as running:
        port = urlsplit(running.blob_url).port or 0
        for connect in (plain, dual_stack):
            with connect(("127.0.0.1", port)) as client:
                client.settimeout(30)
                client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                assert client.recv(64).startswith(b"HTTP/1.1 4")
