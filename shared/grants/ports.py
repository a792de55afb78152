"""The store of grants."""

from __future__ import annotations

from typing import Protocol

from shared.grants.model import Grant
from shared.kernel.parts import FeatureStore
from shared.kernel.versioned import Stored


class Grants(Protocol):
    """One row for each grant. tests/fakes/grants.py and the adapter pass the same contract suite."""

    def add(self, grant: Grant) -> None:
        """Insert a grant. Raises Changed if a grant with this id exists."""

    def get(self, grant: str) -> Stored[Grant] | None:
        """Return the grant with this id, or None. Any text may be an id."""

    def all(self) -> list[Grant]:
        """Return every grant, newest first."""

    def replace(self, before: Stored[Grant], grant: Grant) -> Stored[Grant]:
        """Overwrite the grant. Raises Changed unless the row still has before.etag."""


GRANTS: FeatureStore[Grants] = FeatureStore("grants")
"""The grants, with their reservations."""
