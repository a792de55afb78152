"""The error that ends the host before it serves."""

from __future__ import annotations

from collections.abc import Iterable


class Refused(Exception):
    """The app, the settings or the configuration need a feature that this host does not support. `reasons` has one
    line for each."""

    def __init__(self, reasons: str | Iterable[str]) -> None:
        self.reasons = [reasons] if isinstance(reasons, str) else list(reasons)
        super().__init__("\n".join(self.reasons))
