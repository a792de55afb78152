"""Facts about drops."""

from __future__ import annotations

from dataclasses import dataclass

from shared.drops.model import Drop
from shared.kernel.facts import Fact


@dataclass(frozen=True)
class DropComplete(Fact):
    """The drop's row records the content and the future run. Reactions raise BadInput if the run is impossible."""

    drop: Drop


@dataclass(frozen=True)
class DropSealed(Fact):
    """The drop's content is fixed, and the run has a row. Published before the drop's row records the sealing."""

    drop: Drop


@dataclass(frozen=True)
class DropWaitsForRemoval(Fact):
    """An open drop can't be sealed, because a removal that was requested some time ago is not done."""

    drop: Drop
