"""Drops: their names, their record, and their states.

A drop collects uploads until it closes. A later upload opens a closed drop again:

    (none) -> open -> sealing -> sealed -> open ...    each seal of new content makes one generation and one run (no run
                                                       on a route that trains nothing)
                   -> rejected -> open ...             the drop records why; another upload opens the drop again
                   -> (none)                           every blob was deleted before the drop closed

The state `sealing` is a write-ahead mark: the drop already names its run. Any process that finds a drop in this state
makes the run and moves the drop to `sealed`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from shared.jobs.spec import JobSpec
from shared.kernel.drop_key import DropKey
from shared.runs.names import run_name

CHECKING = "checking"  # the code of an open drop whose data are being checked by several messages


class DropState(StrEnum):
    OPEN = "open"
    SEALING = "sealing"
    SEALED = "sealed"
    REJECTED = "rejected"
    BROKEN = "broken"  # the drop's row can't be read; the state is shown but never written


@dataclass(frozen=True)
class Drop:
    """A folder (or a single file) under the drops container, between the first upload and the runs.

    `token` identifies the current opening; a check with another token is stale. `generation` counts seals with new
    content. `fingerprint`, `run`, `request`, `blobs` and `bytes` describe the last seal.

    `newest` is the newest last-modified time in the last verdict's listing, and `looked_at` is the time of that
    listing. Together they distinguish late events from new ones. `listed` is the fingerprint of the same listing, or
    of the content whose data are being checked.
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
    why: str = ""  # why the drop is open, sealed or rejected, in words for its owner
    code: str = ""  # a stable code for `why`
    owner: str = ""  # uploader of the sealed content, self-reported
    removed_at: datetime | None = None  # since when a removal is to be carried out; the drop is not sealed before
    files: int | None = None  # `blobs` without markers and job file; None if sealed by the previous version
    event_form: str = ""  # form of the drop's first event: "CloudEvent, base64"; empty if no event arrived


@dataclass(frozen=True)
class Generation:
    """One seal of a drop: the sealed content, and the run of this content.

    `folder` is the folder in the output container with the list of blobs, data.json.gz. Two generations with the same
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


def ran_as_single_file(drop: Drop) -> bool:
    """Whether the drop became a run of a single file that is not an archive."""
    return drop.generation > 0 and drop.blobs == 1 and not drop.key.is_archive()


def generation_of(drop: Drop) -> Generation:
    """The generation of the drop's last seal. Without a run, `folder` is the folder for a run."""
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
