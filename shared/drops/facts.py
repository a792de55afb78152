"""What happens to drops."""

from __future__ import annotations

from dataclasses import dataclass

from shared.drops.model import Drop
from shared.kernel.facts import Fact


@dataclass(frozen=True)
class DropComplete(Fact):
    """The drop's row says what it holds, and what its run will be. What follows raises BadInput if it can't be one."""

    drop: Drop


@dataclass(frozen=True)
class DropSealed(Fact):
    """The drop's content is fixed, and the run that it names has a row. Stated before the drop's row says so."""

    drop: Drop
