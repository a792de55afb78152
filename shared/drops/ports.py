"""The drop store. tests/fakes/ports.py and shared/adapters pass the same contract suite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Protocol

from shared.drops.model import Drop, Generation
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Changed
from shared.kernel.versioned import Stored
from shared.runs.ports import RunPorts


class AlreadyAdded(Changed):
    """Another call added the record first; `there` is the added record."""

    def __init__(self, there: Stored[Drop]) -> None:
        super().__init__(f"Drop {there.value.key} was opened at the same time.")
        self.there = there


class Drops(Protocol):
    """The drop store. Open, sealing and rejected drops are found without a scan of the sealed drops.

    A write that moves a drop to `sealing` also stores its generation, in the same transaction.

    A row that can't be read appears in lists as a drop in the state `broken`, with the reason; `get` raises BadInput.
    """

    def get(self, key: DropKey) -> Stored[Drop] | None:
        """The drop's record; None for an unknown drop."""

    def is_new(self, key: DropKey) -> bool:
        """Whether this process has never read this drop. A record may exist: `insert` then raises Changed."""

    def insert(self, drop: Drop) -> Stored[Drop]:
        """Add a record. Raises Changed if the record exists, and Taken if another call added it during this call."""

    def replace(self, drop: Drop, before: Stored[Drop]) -> Stored[Drop]:
        """Write the record unless it changed since the read. Raises Changed after a change or a deletion."""

    def delete(self, before: Stored[Drop]) -> None:
        """Delete the record unless it changed since the read.

        Raises Changed if it changed; does nothing if it no longer exists.
        """

    def generations(self, key: DropKey, limit: int = 1000) -> list[Generation]:
        """Up to `limit` generations of the drop, newest first.

        Generations from before the history existed are missing.
        """

    def generation(self, key: DropKey, number: int) -> Generation | None:
        """One generation of the drop; None for an unknown number."""

    def forget(self, before: Stored[Drop]) -> None:
        """Delete the drop's generations and then the record. Raises Changed if the record changed since the read.

        The record is deleted last, so that a call after a crash finds the record and repeats the deletion.
        """

    def open(self) -> Iterator[Drop]:
        """Every open or sealing drop, unordered. Includes drops written a moment ago."""

    def rejected(self, limit: int) -> list[Drop]:
        """Up to `limit` rejected drops, by name."""

    def codes(self, route: str, first: str, last: str) -> dict[str, str]:
        """The codes of a route's drops by drop name, from the first to the last name."""

    def listed(self, route: str | None = None, after: DropKey | None = None, limit: int = 1000) -> list[Drop]:
        """Up to `limit` drops, of one route or of all routes, by name, starting after the drop `after`.

        The drops lack their requests, which are most of a record.
        """

    def added(self, route: str, since: datetime, until: datetime) -> int:
        """The number of files added to the route's drops by closings with `since` <= `sealed_at` < `until`.

        A closing that started within this time may not be written yet. Closings from before the history existed are
        missing.
        """

    def single_files(self, route: str, limit: int) -> int:
        """The number of the route's single files that became runs or are about to, at most `limit`."""

    def count_single_file(self, key: DropKey, limit: int) -> bool:
        """Count this drop among the single files of the route, unless `limit` other drops are counted. True if counted.

        The limit holds for concurrent calls too. Raises Changed if concurrent calls win repeatedly.
        """

    def uncount_single_file(self, key: DropKey) -> None:
        """Stop counting this drop, because the drop became no run. Does nothing for an uncounted drop."""

    def cursors(self, walks: Iterable[str]) -> dict[str, str]:
        """The positions of these walks, '' at the start. One request for every walk."""

    def move_cursor(self, walk: str, at: str) -> None:
        """Store the position of this walk."""


class DropPorts(RunPorts, Protocol):
    """The ports of runs, and the drop store."""

    @property
    def drops(self) -> Drops: ...
