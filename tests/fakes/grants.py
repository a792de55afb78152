"""Grants in memory, which pass the same tests as the grants in tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from shared.grants.model import Grant
from shared.grants.ports import GRANTS
from shared.kernel.errors import Changed
from shared.kernel.versioned import Stored
from tests.fakes.ports import Crashing


class FakeGrants:
    def __init__(self) -> None:
        self.rows: dict[str, Stored[Grant]] = {}
        self._etags = map(str, itertools.count(1))

    def add(self, grant: Grant) -> None:
        if grant.id in self.rows:
            raise Changed(f"There is a grant {grant.id}.")
        self.rows[grant.id] = Stored(grant, next(self._etags))

    def get(self, grant: str) -> Stored[Grant] | None:
        return self.rows.get(grant)

    def all(self) -> list[Grant]:
        grants = (stored.value for stored in self.rows.values())
        return sorted(grants, key=lambda grant: (grant.made_at, grant.id), reverse=True)

    def replace(self, before: Stored[Grant], grant: Grant) -> Stored[Grant]:
        if self.rows[grant.id].etag != before.etag:
            raise Changed(f"Grant {grant.id} changed.")
        self.rows[grant.id] = Stored(grant, next(self._etags))
        return self.rows[grant.id]


def stores(journals: dict[str, Any], words: Iterable[str] = ()) -> dict[str, Any]:
    """Return the store of grants, as the System has it."""
    return {GRANTS.name: Crashing(journals.setdefault("grants", FakeGrants()), iter(words))}
