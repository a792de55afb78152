"""Roles and their allowed actions, which are patterns with `*`.

https://learn.microsoft.com/azure/role-based-access-control/role-definitions
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Role:
    """`actions` are control plane actions, `data_actions` data plane actions. Both are patterns with *."""

    id: str
    name: str
    actions: tuple[str, ...] = ()
    not_actions: tuple[str, ...] = ()
    data_actions: tuple[str, ...] = ()

    def allows(self, action: str) -> bool:
        """Return whether the role allows this action. A data action never has the same name as another action."""
        granted = matches(self.actions, action) and not matches(self.not_actions, action)
        return granted or matches(self.data_actions, action)


def matches(patterns: Iterable[str], action: str) -> bool:
    return any(_pattern(pattern).fullmatch(action) for pattern in patterns)


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    """Compile an action pattern. As in Azure, `/*/` also matches no level, so the Data Scientist's
    `computes/*/write` forbids `computes/write`."""
    regex = re.escape(pattern).replace(re.escape("/*/"), "/(?:.*/)?").replace(re.escape("*"), ".*")
    return re.compile(regex, re.IGNORECASE)
