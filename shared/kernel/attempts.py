"""Run several steps. A failing step does not stop the others."""

from __future__ import annotations

import logging
from collections.abc import Callable

log = logging.getLogger(__name__)


class Attempts:
    """Runs one step after another and keeps the errors. `who` prefixes the log line of a failure."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._errors: list[Exception] = []

    def do(self, what: str, step: Callable[[], object]) -> None:
        """Run this step. An error is logged and kept."""
        try:
            step()
        except Exception as exc:  # noqa: BLE001  # the other steps still run; end() raises the error
            log.warning("%s: %s: %s", self._who, what, exc)
            self._errors.append(exc)

    def end(self) -> None:
        """Raise the first error: the timer's execution must count as failed."""
        if self._errors:
            raise self._errors[0]
