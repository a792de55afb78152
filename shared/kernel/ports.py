"""What the use cases of every folder take from outside.

Each noun's `ports.py` ends with one such interface: what the use cases of its folder may touch. It has all of the
interface before it in the order of folders, so a use case of drops can call one of runs. A function that works with one
noun alone takes that noun (`runs: Runs`). `System` implements all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from shared.kernel.clock import Clock
from shared.kernel.facts import Fact
from shared.kernel.memory import Memory
from shared.kernel.parallel import Each
from shared.kernel.settings import Rules
from shared.kernel.storage import Blobs, Queues


class StoragePorts(Protocol):
    """Files, messages, the time, and what the process remembers."""

    @property
    def blobs(self) -> Blobs: ...
    @property
    def queues(self) -> Queues: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def memory(self) -> Memory: ...
    @property
    def new_token(self) -> Callable[[], str]: ...
    @property
    def each(self) -> Each: ...
    @property
    def rules(self) -> Rules: ...

    def happened(self, fact: Fact) -> None:
        """State a fact. Returns when all its consequences are done or queued."""
