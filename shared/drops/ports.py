"""Where the drops' records are kept. tests/fakes/ports.py and shared/adapters pass the same contract suite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Protocol

from shared.drops.model import Drop, Generation
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Changed
from shared.kernel.versioned import Stored
from shared.runs.ports import RunPorts


class Taken(Changed):
    """A record was added while another call was about to add one; `there` is what was added."""

    def __init__(self, there: Stored[Drop]) -> None:
        super().__init__(f"Drop {there.value.key} was opened at the same moment.")
        self.there = there


class Drops(Protocol):
    """The drops' records. A drop that is open, sealing or rejected is found without a scan of the sealed ones.

    Whatever write makes a drop sealing keeps its generation too, in the same transaction.

    A row that can't be read is a drop in the state broken, with the reason, wherever several drops are given; `get` of
    it raises BadInput.
    """

    def get(self, key: DropKey) -> Stored[Drop] | None:
        """The drop's record, or None."""

    def is_new(self, key: DropKey) -> bool:
        """Whether this process never asked for this drop. There may be a record: then `insert` raises Changed."""

    def insert(self, drop: Drop) -> Stored[Drop]:
        """Add a record. Raises Changed if there is one, and Taken if it was added during this call."""

    def replace(self, drop: Drop, before: Stored[Drop]) -> Stored[Drop]:
        """Write the record if it still is as it was read. Raises Changed if not, or if it is gone."""

    def delete(self, before: Stored[Drop]) -> None:
        """Remove the record if it still is as it was read. Raises Changed if not; nothing happens if it is gone."""

    def generations(self, key: DropKey, limit: int = 1000) -> list[Generation]:
        """Up to `limit` generations of the drop, newest first. Those from before they were kept are missing."""

    def generation(self, key: DropKey, number: int) -> Generation | None:
        """One generation of the drop, or None."""

    def forget(self, before: Stored[Drop]) -> None:
        """Remove its generations and then the record, if that still is as it was read. Raises Changed if it is another.

        The record goes last: whoever finds it after a call that died calls again.
        """

    def open(self) -> Iterator[Drop]:
        """Every drop that is open or sealing, in no order. One written a moment ago is among them."""

    def rejected(self, limit: int) -> list[Drop]:
        """Up to `limit` rejected drops, by name."""

    def codes(self, route: str, first: str, last: str) -> dict[str, str]:
        """The codes of a route's drops by their names, from the first name to the last."""

    def listed(self, route: str | None = None, after: DropKey | None = None, limit: int = 1000) -> list[Drop]:
        """Up to `limit` drops, of one route or of all, by name, beginning after the drop `after`."""

    def added(self, route: str, since: datetime, until: datetime) -> int:
        """How many files more the route's drops held after the closings from `since` to before `until`, by `sealed_at`.

        A closing that was begun by then may still be on its way. Those from before they were kept are missing.
        """

    def loose(self, route: str, limit: int) -> int:
        """How many loose files of the route became runs (`is_loose`), or are about to, at most `limit`."""

    def take_loose(self, key: DropKey, limit: int) -> bool:
        """Count this one among its route's loose files, unless `limit` others are. True for one that is counted.

        Of several at once no more than `limit` are. Raises Changed if others were quicker again and again.
        """

    def give_loose(self, key: DropKey) -> None:
        """Count it no more: it became no run. Nothing happens for one that isn't counted."""

    def cursors(self, walks: Iterable[str]) -> dict[str, str]:
        """How far each of these walks over many things has come, '' at its beginning. One request for all."""

    def move_cursor(self, walk: str, at: str) -> None:
        """Remember how far it has come."""


class DropPorts(RunPorts, Protocol):
    """Those of runs, and the drops."""

    @property
    def drops(self) -> Drops: ...
