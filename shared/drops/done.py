"""Whether the task of a drop's message is done."""

from __future__ import annotations

from shared.drops.messages import CheckDrop, FileUploaded
from shared.drops.model import Drop, DropState
from shared.drops.ports import DropPorts
from shared.kernel.clock import Clock
from shared.kernel.drop_key import DropKey
from shared.kernel.storage import Blobs
from shared.runs.content import drop_blobs, in_time, survey


def is_noted(ports: DropPorts, event: FileUploaded) -> bool:
    """Whether the upload is already covered: its drop is open, or is closed with the current content."""
    stored = ports.drops.get(DropKey.of(event.name))
    return stored is not None and (
        stored.value.state is DropState.OPEN or _holds_what_was_listed(ports.blobs, ports.clock, stored.value)
    )


def check_is_done(ports: DropPorts, message: CheckDrop) -> bool:
    """Whether the drop was opened again since, or is closed with the content of its closing listing."""
    stored = ports.drops.get(DropKey(message.route, message.name))
    return (
        stored is None
        or stored.value.token != message.token
        or _holds_what_was_listed(ports.blobs, ports.clock, stored.value)
    )


def _holds_what_was_listed(blobs: Blobs, clock: Clock, drop: Drop) -> bool:
    """Whether the drop is closed and its content equals the closing listing.

    A drop may be rejected by its name alone, without a listing.
    """
    if drop.state is DropState.REJECTED and not drop.listed:
        return True
    closed = drop.state in (DropState.SEALED, DropState.REJECTED)
    inside = in_time(drop_blobs(blobs, drop.key), clock)
    return closed and survey(drop.key, inside).fingerprint == drop.listed
