"""Which user owns a connection, as Linux reports it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emulators import neighbours

on_linux = pytest.mark.skipif(not neighbours.TABLES[0].exists(), reason="needs Linux")
WAYS = [neighbours._asked, neighbours._listed]
Way = Callable[[neighbours.Address, neighbours.Address], tuple[int, int] | None]
Connect = Callable[[neighbours.Address], socket.socket]


def unavailable(*_: object) -> None:
    raise OSError("not in this sandbox")


def plain(address: neighbours.Address) -> socket.socket:
    return socket.create_connection(address)


def dual_stack(address: neighbours.Address) -> socket.socket:
    """A client like .NET's and Java's, with one socket for both address families."""
    client = socket.socket(socket.AF_INET6)
    client.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    client.connect((f"::ffff:{address[0]}", address[1]))
    return client


@contextmanager
def connection(connect: Connect = plain) -> Iterator[tuple[socket.socket, neighbours.Address, neighbours.Address]]:
    """The client's socket, and the connection's two ends as the server sees them."""
    with socket.create_server(("127.0.0.1", 0)) as server, connect(server.getsockname()) as client:
        accepted, peer = server.accept()
        with accepted:
            yield client, peer, server.getsockname()


@on_linux
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("connect", [plain, dual_stack])
def test_linux_tells_whose_a_connection_is(way: Way, connect: Connect) -> None:
    """A query for one connection and the full lists give the same user and inode, for either address family. A
    missing connection has neither."""
    with connection(connect) as (client, peer, here):
        assert way(peer, here) == (os.getuid(), os.fstat(client.fileno()).st_ino)
        assert way(("127.0.0.1", 1), here) is None


@on_linux
@pytest.mark.parametrize("way", WAYS)
def test_a_strangers_connection_is_not_ours(monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    """With either method, our own and root's connections are accepted. Those of other users and unknown connections
    are not."""
    with connection() as (_, peer, here):
        if way is neighbours._listed:
            monkeypatch.setattr(neighbours, "_asked", unavailable)
        assert neighbours.is_ours(peer, here)
        assert not neighbours.is_ours(("127.0.0.1", 1), here)
        monkeypatch.setattr(neighbours, way.__name__, lambda *_: (4242, 7))
        assert not neighbours.is_ours(peer, here)


@on_linux
@pytest.mark.parametrize("way", WAYS)
def test_a_client_that_has_gone_is_nobody(monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    """Linux shows a closed socket as root's. A stranger who sends and closes at once must not pass as root."""
    if way is neighbours._listed:
        monkeypatch.setattr(neighbours, "_asked", unavailable)
    with connection() as (client, peer, here):
        client.sendall(b"POST / HTTP/1.1\r\n\r\n")
        client.close()
        assert not neighbours.is_ours(peer, here)


def test_where_nobody_tells_all_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without either method, as on macOS and Windows, every connection counts as ours."""
    monkeypatch.setattr(neighbours, "_asked", unavailable)
    monkeypatch.setattr(neighbours, "TABLES", (tmp_path / "none",))
    assert neighbours.is_ours(("127.0.0.1", 1), ("127.0.0.1", 2))
