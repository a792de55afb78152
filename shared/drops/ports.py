"""Where the drops' records are kept. tests/fakes.py and shared/adapters pass the same contract suite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from shared.drops.model import Drop, DropKey
from shared.kernel.stored import Stored


class Drops(Protocol):
    """The drops' records. A drop that is open or sealing is also found by `open`, without a scan."""

    def get(self, key: DropKey) -> Stored[Drop] | None:
        """The drop's record, or None."""

    def insert(self, drop: Drop) -> Stored[Drop]:
        """Add a record. Raises Changed if there is one."""

    def replace(self, drop: Drop, etag: str) -> Stored[Drop]:
        """Write the record if it still has this etag. Raises Changed if not, or if it is gone."""

    def delete(self, key: DropKey, etag: str) -> None:
        """Remove the record if it still has this etag. Raises Changed if not; nothing happens if it is gone."""

    def open(self) -> Iterator[Drop]:
        """Every drop that is open or sealing, in no order. One written a moment ago is among them."""

    def unsealed(self) -> Iterator[Drop]:
        """Every drop that is open, sealing or rejected, without a scan of the sealed ones."""

    def codes(self, route: str) -> dict[str, str]:
        """The codes of a route's drops by their names; nothing else of them is read."""

    def listed(self, route: str | None = None) -> Iterator[Drop]:
        """All drops, or a route's, by name."""
