"""What can be removed, and the record of it: who, when, why, and how much."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class What(StrEnum):
    RUN = "run"  # its archive, checkpoints and the job's own outputs and logs; its record stays, and is listed no more
    CHECKPOINTS = "checkpoints"  # of a completed run
    COPIES = "copies"  # what the job itself wrote and the archive has: outputs and logs in the job's own folders
    DROP = "drop"  # its files, and its record with its generations


@dataclass(frozen=True)
class Removal:
    """A requested removal. `by` is who asked, `by_id` their object id in Entra ID.

    `done_at` is when it was complete.
    """

    what: What
    name: str
    asked_at: datetime
    by: str = ""
    why: str = ""
    files: int = 0
    bytes: int = 0
    done_at: datetime | None = None
    by_id: str = ""
