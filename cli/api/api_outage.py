"""An API that does not answer: said once, and once that it is back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..errors import Unreachable


class OutageListener(Protocol):
    """Who hears of an API that does not answer."""

    def failed(self, exc: Unreachable) -> None:
        """It did not answer; it will be asked again."""

    def recovered(self) -> None:
        """It answered."""


class OutageMessages:
    """Says the first failure of several in a row, and the first answer after them."""

    def __init__(self, say: Callable[[str], None] = lambda _: None) -> None:
        self._say = say
        self.why = ""  # of the present absence

    def failed(self, exc: Unreachable) -> None:
        if not self.why:
            self.why = str(exc)
            self._say(f"{exc} Waiting until it is back.")

    def recovered(self) -> None:
        if self.why:
            self.why = ""
            self._say("It is back.")
