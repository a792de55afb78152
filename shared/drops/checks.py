"""Open a drop, and queue checks of the drop."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from shared.drops.messages import CheckDrop
from shared.drops.model import Drop, DropState
from shared.drops.ports import DropPorts, Drops
from shared.kernel.drop_key import DropKey
from shared.kernel.storage import Queues
from shared.kernel.versioned import Stored
from shared.runs.content import SoFar


def open_drop(
    ports: DropPorts, stored: Stored[Drop] | None, key: DropKey, look_after: float, event_form: str = ""
) -> None:
    """Open the drop to collect uploads, and queue its check. Raises Changed if another write was first."""
    now = ports.clock()
    before = stored.value if stored else Drop(key, DropState.OPEN, "", now)
    opened = replace(
        before,
        state=DropState.OPEN,
        token=ports.new_token(),
        opened_at=now,
        code="collecting",
        why="Uploads are arriving.",
        event_form=event_form or before.event_form,
    )
    write(ports.drops, stored, opened)
    send_check(ports.queues, opened, look_after)


def send_check(queues: Queues, drop: Drop, delay: float = 0.0, last: bool = False, so_far: SoFar | None = None) -> None:
    """Queue a check of the drop. `last`: that check queues no further check, because another chain exists.

    With `so_far`, the check continues a listing that took too long for one message.
    """
    listed = msgspec.to_builtins(so_far) if so_far else None
    queues.send(CheckDrop(drop.key.route, drop.key.name, drop.token, last, listed), delay)


def write(drops: Drops, stored: Stored[Drop] | None, drop: Drop) -> Stored[Drop]:
    return drops.replace(drop, stored) if stored else drops.insert(drop)
