"""The messages of removals."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from shared.kernel.message import BACKGROUND, Message
from shared.removals.model import RemovalKind


@dataclass(frozen=True)
class CarryOutRemoval(Message, queue=BACKGROUND, handler="shared.removals.remove:carry_out"):
    """Carry out a requested removal. The daily timer resends the message for a month."""

    what: RemovalKind
    name: str
    asked_at: datetime
