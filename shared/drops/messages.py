"""The queue messages of drops."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.drops.decide import closes
from shared.events import incoming
from shared.kernel.message import Json, Message, Trace
from shared.kernel.places import DROPS_CONTAINER
from shared.runs.messages import SubmitRun


@dataclass(frozen=True)
class CheckDrop(
    Message,
    queue="drop-events",
    handler="shared.drops.collect:check_drop",
    done="shared.drops.done:check_is_done",
    inline=(SubmitRun,),
):
    """Check whether the drop is complete, if the drop still has this token.

    `last`: this check queues no further check, because another chain of checks exists. With `so_far`, the check
    continues a listing that took too long for one message.
    """

    route: str
    name: str
    token: str
    last: bool = False
    so_far: dict[str, Any] | None = None

    @property
    def trace(self) -> Trace:
        return Trace(drop=f"{self.route}/{self.name}")

    @property
    def turn(self) -> str:
        return self.trace.drop


@dataclass(frozen=True)
class FileUploaded(
    Message,
    queue="drop-events",
    handler="shared.drops.collect:note_event",
    done="shared.drops.done:is_noted",
    inline=(CheckDrop, SubmitRun),
):
    """Event Grid's event of a blob in the drops container. `at` is None if the event has no time.

    `form`: the event's schema, and its encoding in the queue.
    """

    name: str
    at: datetime | None
    form: str

    @property
    def trace(self) -> Trace:
        return Trace(drop="/".join(self.name.split("/")[:2]))

    @property
    def turn(self) -> str:
        """The turn of a closing file of the drop.

        Each of its events checks the drop; all but the first find it closed.
        """
        path = self.name.removeprefix(self.trace.drop).removeprefix("/")
        return self.trace.drop if closes(path) else ""

    @classmethod
    def read(cls, body: Json, form: str) -> FileUploaded | None:
        written = incoming.blob_written(body)
        if written is None or written.container != DROPS_CONTAINER:
            return None
        return cls(written.name, written.at, form)
