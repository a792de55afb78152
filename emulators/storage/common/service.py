"""What each service of the account is to the HTTP server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from emulators.storage.common.calls import Answer, Call
from emulators.storage.common.errors import StorageError


class Service(ABC):
    """A service of the account. `endpoint`, its own address, is known once it is served."""

    endpoint: str = ""
    largest_body: ClassVar[int]

    @abstractmethod
    async def answer(self, call: Call) -> Answer:
        """Raises StorageError for what is not allowed."""

    @abstractmethod
    def failure(self, error: StorageError, note: str) -> Answer:
        """The answer to a request that was refused; `note` goes behind the sentence."""

    @abstractmethod
    def purge(self) -> bool:
        """Remove some of what is gone. Says whether there may be more."""

    def streams(self, method: str, query: Mapping[str, str]) -> bool:  # noqa: ARG002
        """Whether the body of such a request may be longer than memory should hold."""
        return False

    def lets_in(self, method: str, headers: Mapping[str, str]) -> bool:  # noqa: ARG002
        """Whether a web page of another origin may send such a request."""
        return False
