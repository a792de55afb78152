"""A journal in memory, which passes the same tests as the one in tables."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from optuna.storages.journal import BaseJournalBackend

from shared.kernel.errors import Changed


class MemoryJournal(BaseJournalBackend):
    def __init__(self) -> None:
        self.logs: list[dict[str, Any]] = []

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        yield from copy.deepcopy(self.logs[log_number_from:])

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        self.append_at(len(self.logs), logs)

    def append_at(self, number: int, logs: list[dict[str, Any]]) -> None:
        if number < len(self.logs):
            raise Changed(f"There are {len(self.logs)} logs already.")
        self.logs += copy.deepcopy(logs)
