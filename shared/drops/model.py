"""Drops: their names, their record, and the states they go through.

A drop collects uploads until it closes, again and again:

    (none) -> open -> sealing -> sealed -> open ...    each sealing of new content is a generation, and one run; none
                                                       on a route that trains nothing
                   -> rejected -> open ...             why is on the drop; another upload opens it again
                   -> (none)                           every blob was deleted before it closed

Sealing is the write-ahead mark: the drop names its run, and whoever finds it so makes that run and goes on to sealed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from shared.jobs.spec import JobSpec
from shared.kernel.drop_key import DropKey
from shared.runs.names import run_name


class DropState(StrEnum):
    OPEN = "open"
    SEALING = "sealing"
    SEALED = "sealed"
    REJECTED = "rejected"
    BROKEN = "broken"  # its row can't be read; only shown, never written


@dataclass(frozen=True)
class Drop:
    """A folder (or single file) under the drops container, between its first upload and its runs.

    `token` names the current opening; a check that carries another token is stale. `generation` counts sealings with
    new content. `fingerprint`, `run`, `request`, `blobs` and `bytes` are those of the last sealing. `newest` is the
    newest last-modified time that the last verdict saw, `looked_at` when that verdict listed the drop: together they
    tell late events from new ones. `listed` is the fingerprint of that listing.
    """

    key: DropKey
    state: DropState
    token: str
    opened_at: datetime
    generation: int = 0
    fingerprint: str = ""
    run: str = ""
    request: JobSpec = field(default_factory=JobSpec)
    blobs: int = 0
    bytes: int = 0
    sealed_at: datetime | None = None
    newest: datetime | None = None
    looked_at: datetime | None = None
    listed: str = ""
    why: str = ""  # why it was sealed or rejected, or why it is still open, in words for its owner
    code: str = ""  # the same, stable
    owner: str = ""  # who uploaded what it was sealed with, as they say
    removed_at: datetime | None = None  # when its removal was asked for; an upload since then opens it again
    event_form: str = ""  # how the first event came that told of it: "CloudEvent, base64"; empty where none did


@dataclass(frozen=True)
class Generation:
    """One sealing of a drop: which content it closed with, and the run of that content.

    `folder` is where in the output container the list of its blobs lies, data.json.gz. Two generations with the same
    content have the same fingerprint and the same run.
    """

    number: int
    run: str
    fingerprint: str
    blobs: int
    bytes: int
    sealed_at: datetime | None = None
    code: str = ""
    why: str = ""
    folder: str = ""


def is_loose(drop: Drop) -> bool:
    """Whether it became a run of one file, and is no archive."""
    return drop.generation > 0 and drop.blobs == 1 and not drop.key.is_archive()


def generation_of(drop: Drop) -> Generation:
    """The generation that the drop's last sealing made. Without a run it has the folder that one would have."""
    experiment = drop.request.experiment or drop.key.route
    folder = f"{experiment}/{drop.run or run_name(drop.key, drop.fingerprint)}"
    return Generation(
        drop.generation,
        drop.run,
        drop.fingerprint,
        drop.blobs,
        drop.bytes,
        drop.sealed_at,
        drop.code,
        drop.why,
        folder,
    )
