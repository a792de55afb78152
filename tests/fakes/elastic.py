"""The rendezvous of elastic runs in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shared.elastic.ports import RENDEZVOUS
from tests.fakes.ports import Crashing


class MemoryRendezvous:
    """The rendezvous of elastic runs. `closed` maps a run to the reason why its rendezvous is closed."""

    def __init__(self) -> None:
        self.closed: dict[str, str] = {}

    def close(self, run: str, why: str) -> None:
        self.closed.setdefault(run, why)


def stores(journals: dict[str, Any], words: Iterable[str] = ()) -> dict[str, Any]:
    """Return the store of elastic runs, as the System has it. The closed rendezvous are in `journals`."""
    return {RENDEZVOUS.name: Crashing(journals.setdefault("rendezvous", MemoryRendezvous()), iter(words))}
