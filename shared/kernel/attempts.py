"""Several steps of which one that fails stops no other."""

from __future__ import annotations

import logging
from collections.abc import Callable

log = logging.getLogger(__name__)


class Attempts:
    """Does one step after the other, and keeps what they raise. `who` begins what is logged of a failure."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._errors: list[Exception] = []

    def do(self, what: str, step: Callable[[], object]) -> None:
        """Do this step; an error is logged and kept."""
        try:
            step()
        except Exception as exc:  # noqa: BLE001  # whatever it is, the others come next, and it is raised at the end
            log.warning("%s: %s: %s", self._who, what, exc)
            self._errors.append(exc)

    def end(self) -> None:
        """Raise the first error, so that the timer's failure is seen."""
        if self._errors:
            raise self._errors[0]
