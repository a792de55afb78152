"""What a member has of its machine: time, threads, bells and a store to meet at. Tests have another machine."""

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
    """This machine's."""

    def now(self) -> float:
        """Seconds of a clock that is never set."""
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set, so many seconds at most; say whether it is."""
        return event.wait(seconds)

    def lock(self) -> AbstractContextManager[Any]:
        """For what two threads must not do at once."""
        return threading.Lock()

    def start(self, name: str, work: Callable[[], None]) -> Callable[[], None]:
        """Do some work beside this; gives what waits for its end."""
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return lambda: thread.join() if thread is not threading.current_thread() else None

    def bell(self, name: str, address: str, rung: threading.Event) -> Bell:
        """A bell that answers with this name."""
        return Bell(name, address, rung)

    def ring_all(self, nodes: Iterable[Node], enough: threading.Event | None = None) -> dict[str, str]:
        """Ring these, as bell.ring_all does."""
        return ring_all(nodes, enough)

    def meeting(self, address: str) -> Any:
        """A store at which a team may meet; it has a `port`."""
        return TCPStore(address, 0, None, True, wait_for_workers=False)
