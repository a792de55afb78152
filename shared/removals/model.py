"""What can be removed, and the record of a removal: who, when, why, and how much."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class RemovalKind(StrEnum):
    RUN = "run"  # archive, checkpoints, and the job's own outputs and logs; the record stays, but is not listed
    CHECKPOINTS = "checkpoints"  # of a completed run
    COPIES = "copies"  # outputs and logs in the job's own folders, which the archive also has
    DROP = "drop"  # files, and the record with its generations


@dataclass(frozen=True)
class Removal:
    """A requested removal. `by` is the requester, `by_id` the requester's object id in Entra ID.

    `done_at` is when the removal was complete.
    """

    what: RemovalKind
    name: str
    asked_at: datetime
    by: str = ""
    why: str = ""
    files: int = 0
    bytes: int = 0
    done_at: datetime | None = None
    by_id: str = ""
