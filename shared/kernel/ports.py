"""The external ports of the use cases, one interface per folder.

Each noun's `ports.py` ends with an interface of everything that the use cases of its folder may touch. It includes the
interface before it in the order of folders, so a use case of drops can call a use case of runs. A function that works
with only one noun takes only that noun (`runs: Runs`). `System` implements all of them.
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
    """Files, messages, the time, and the cache of the process."""

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
        """State a fact. Returns after each consequence is done or queued."""
