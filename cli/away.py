"""An API that does not answer: said once, and once that it is back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .errors import Unreachable


class Outage(Protocol):
    """Who hears of an API that does not answer."""

    def trouble(self, exc: Unreachable) -> None:
        """It did not answer; it will be asked again."""

    def back(self) -> None:
        """It answered."""


class Away:
    """Says the first failure of several in a row, and the first answer after them."""

    def __init__(self, say: Callable[[str], None] = lambda _: None) -> None:
        self._say = say
        self.why = ""  # of the present absence

    def trouble(self, exc: Unreachable) -> None:
        if not self.why:
            self.why = str(exc)
            self._say(f"{exc} Waiting until it is back.")

    def back(self) -> None:
        if self.why:
            self.why = ""
            self._say("It is back.")
