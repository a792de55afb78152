"""The error for ending the host before serving."""

from __future__ import annotations

from collections.abc import Iterable


class Refused(Exception):
    """The app, the settings or the configuration need an unsupported feature of this host. `reasons` has one line
    each.
    """

    def __init__(self, reasons: str | Iterable[str]) -> None:
        self.reasons = [reasons] if isinstance(reasons, str) else list(reasons)
        super().__init__("\n".join(self.reasons))
