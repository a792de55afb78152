"""What nearly every use case takes. A module's `Ports` lists what its functions may touch, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from shared.kernel.clock import Clock
from shared.kernel.facts import Fact
from shared.kernel.memory import Memory
from shared.kernel.parallel import Each
from shared.kernel.settings import Rules
from shared.kernel.storage import Blobs, Queues


class HasBlobs(Protocol):
    @property
    def blobs(self) -> Blobs: ...


class HasQueues(Protocol):
    @property
    def queues(self) -> Queues: ...


class HasClock(Protocol):
    @property
    def clock(self) -> Clock: ...


class HasMemory(Protocol):
    @property
    def memory(self) -> Memory: ...


class HasTokens(Protocol):
    @property
    def new_token(self) -> Callable[[], str]: ...


class HasEach(Protocol):
    @property
    def each(self) -> Each: ...


class HasRules(Protocol):
    @property
    def rules(self) -> Rules: ...


class HasFacts(Protocol):
    def happened(self, fact: Fact) -> None:
        """State a fact. Returns when all its consequences are done or queued."""
