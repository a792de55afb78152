"""Where the runs' records are kept. tests/fakes.py and shared/adapters pass the same contract suite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from shared.kernel.stored import Stored
from shared.runs.model import Run


@dataclass(frozen=True)
class RunFilter:
    """Which runs are wanted: those that have all these values. Empty or None is any. `since` is when they were made."""

    experiment: str = ""
    state: str = ""
    cluster: str = ""
    since: datetime | None = None


@dataclass(frozen=True)
class RunPage:
    runs: list[Run]
    token: str


class Runs(Protocol):
    """The runs' records: one row a run, found by name or newest first. A run stays `unsettled` until it is archived."""

    def insert(self, run: Run) -> bool:
        """Add the run. False, and nothing changes, if a run of this name was ever added.

        A call that died half-way is completed by the next one, which then returns False.
        """

    def get(self, name: str) -> Stored[Run]:
        """The run. Raises NotFound, naming it."""

    def update(self, run: Stored[Run], **changes: Any) -> Stored[Run]:
        """Merge these fields of Run into the row. Raises Changed unless it still has run.etag."""

    def newest(self, limit: int = 100, before: Run | None = None) -> list[Run]:
        """Up to `limit` runs, newest first, older than `before`. The number of requests doesn't grow with the table."""

    def page(self, wanted: RunFilter, limit: int, token: str = "") -> RunPage:
        """Up to `limit` runs that are wanted, newest first, and the token of the next page, '' after the last one.

        Costs a constant number of requests, however large the table and however few runs are wanted. So a page may have
        fewer than `limit` runs, even none, and yet a token. Runs' requests are left out. Raises Impossible for a
        token that is none.
        """

    def unsettled(self) -> Iterator[str]:
        """The names of all runs that aren't settled, in no order. A name may have no run yet."""

    def settle(self, name: str) -> None:
        """Take the run off the unsettled ones. Twice is once."""
