"""A member's machine: time, threads, bells, and a store for meetings. Tests replace the machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

from torch.distributed import TCPStore

from .bell import Bell, ring_all
from .protocol import Node


class Means:
    """This machine's clock, threads, bells and stores."""

    def now(self) -> float:
        """Return the seconds of a monotonic clock."""
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait for the event, at most this many seconds, and return whether it is set."""
        return event.wait(seconds)

    def lock(self) -> AbstractContextManager[Any]:
        """Return a lock for actions of one thread at a time."""
        return threading.Lock()

    def start(self, name: str, work: Callable[[], None]) -> Callable[[], None]:
        """Start a function in a thread, and return a function for awaiting the end."""
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return lambda: thread.join() if thread is not threading.current_thread() else None

    def bell(self, name: str, address: str, rung: threading.Event) -> Bell:
        """Return a bell answering with this name."""
        return Bell(name, address, rung)

    def ring_all(self, nodes: Iterable[Node], enough: threading.Event | None = None) -> dict[str, str]:
        """Ring these nodes: see bell.ring_all."""
        return ring_all(nodes, enough)

    def meeting(self, address: str) -> Any:
        """Return a store at which a team may meet; the store has a `port`."""
        return TCPStore(address, 0, None, True, wait_for_workers=False)
