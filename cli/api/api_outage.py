"""Messages about an unresponsive API: one message at the begin of the outage, one at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..errors import Unreachable


class OutageListener(Protocol):
    """Receiver of the failures and recoveries of API calls."""

    def failed(self, exc: Unreachable) -> None:
        """Handle a call without an answer, before its retry."""

    def recovered(self) -> None:
        """Handle a call with an answer."""


class OutageMessages:
    """Prints one message for the first of several failures in a row, and one for the first answer afterwards."""

    def __init__(self, say: Callable[[str], None] = lambda _: None) -> None:
        self._say = say
        self.why = ""  # the reason for the current outage

    def failed(self, exc: Unreachable) -> None:
        if not self.why:
            self.why = str(exc)
            self._say(f"{exc} Waiting until it is back.")

    def recovered(self) -> None:
        if self.why:
            self.why = ""
            self._say("It is back.")
