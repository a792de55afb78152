"""A bell at each node: a ring makes the node read the table at once, and shows the caller whether the node's process is
alive.

The answer is the node's name. A ring decides nothing by itself: it shortens the wait until the next read, and it
distinguishes a dead process (the connection is refused within a millisecond) from a silent one. Anyone who reaches the
port may ring; the only effect is one more read of the table, at most five per second.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor, wait

from .protocol import Node

ANSWERS, REFUSED, SILENT = "answers", "refused", "silent"
ANSWER_SECONDS = 1.0
TOGETHER = 32
HURRY_SECONDS = 0.02  # seconds between two checks of `enough`


class Bell:
    """Answers each ring with `name`, and sets `rung`."""

    def __init__(self, name: str, address: str, rung: threading.Event) -> None:
        self._name = name.encode()
        self._rung = rung
        self._server = _server(address)
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._answer, name="bell", daemon=True).start()

    def close(self) -> None:
        """Stop listening; new connections are refused."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes the listening thread
        self._server.close()

    def _answer(self) -> None:
        while True:
            try:
                caller, _ = self._server.accept()
            except OSError:  # closed
                return
            with contextlib.suppress(OSError), caller:
                self._rung.set()
                caller.settimeout(ANSWER_SECONDS)
                caller.sendall(self._name)


def _server(address: str) -> socket.socket:
    """Return a listener at the node's own address, or at every address if the node's address belongs to another
    machine (address translation)."""
    with contextlib.suppress(OSError):
        return socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
    return socket.create_server(("", 0))


def ring(node: Node, seconds: float = ANSWER_SECONDS) -> str:
    """Ring a node's bell, and return ANSWERS, REFUSED (the process is gone) or SILENT."""
    try:
        with socket.create_connection((node.address, node.bell), seconds) as call:
            call.settimeout(seconds)
            heard = b""
            while len(heard) <= len(node.name) and (part := call.recv(1024)):
                heard += part
    except (ConnectionRefusedError, ConnectionResetError):
        return REFUSED
    except OSError:  # a time-out, no route, no such name
        return SILENT
    return ANSWERS if heard.decode(errors="replace") == node.name else REFUSED  # another process has the port now


def ring_all(nodes: Iterable[Node], enough: threading.Event | None = None) -> dict[str, str]:
    """Ring these nodes in parallel, and return each answer by name.

    Once `enough` is set, this function stops waiting, and nodes without an answer are left out.
    """
    called: Collection[Node] = list(nodes)
    if not called:
        return {}
    pool = ThreadPoolExecutor(min(len(called), TOGETHER), "ring")
    calls = {pool.submit(ring, node): node.name for node in called}
    done, ringing = wait(calls, HURRY_SECONDS if enough else None)
    while ringing and enough and not enough.is_set():
        done, ringing = wait(calls, HURRY_SECONDS)
    pool.shutdown(wait=False, cancel_futures=True)
    return {name: call.result() for call, name in calls.items() if call in done}
