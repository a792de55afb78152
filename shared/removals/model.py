"""Removable objects, and the record of a removal: who, when, why, and how much."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shared.kernel.storage import Place


class RemovalKind(StrEnum):
    RUN = "run"  # archive, checkpoints, and the job's own outputs and logs; the record stays, but is not listed
    CHECKPOINTS = "checkpoints"  # of a completed run
    COPIES = "copies"  # outputs and logs in the job's own folders, which the archive also has
    DROP = "drop"  # files, and the record with its generations


@dataclass(frozen=True)
class Reach:
    """The blobs within a removal's reach: the existing blobs at the time of the request.

    A blob of the drop, or in one of `places`, is in reach if it was last written by `written_by`, or has the etag that
    the list in the folder `listing` of the output container names. `token` identifies the opening of the drop: the
    drop's record is deleted only while it has this token.
    """

    written_by: datetime
    places: tuple[Place, ...] = ()
    listing: str = ""
    token: str = ""


@dataclass(frozen=True)
class Removal:
    """A requested removal, and the reach. `by` is the requester, `by_id` the requester's object id in Entra ID.

    `done_at` is when the removal was complete. `reach` is None in records of the previous version.
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
    reach: Reach | None = None
