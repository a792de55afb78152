"""Where the log of a run's rank lies: with its job while it grows, then in the archive. The bytes are the same."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Protocol

from shared.jobs.ports import HasJobs
from shared.kernel.errors import NotFound
from shared.kernel.has import HasBlobs
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blob, Blobs, Place
from shared.runs.model import Run
from shared.runs.progress.workloads import workload
from shared.runs.results.outputs import archive_folder

RANKS_LISTED = 1000
_FILE = re.compile(r"std_log(?:_process_(?P<rank>\d+))?\.txt")  # Azure ML's names; the only process has no number


class Ports(HasBlobs, HasJobs, Protocol):
    """What is needed here from outside."""


@dataclass(frozen=True)
class RankLog:
    """A rank's log as it is now, and the ranks that have one. `whole`: it won't grow any more."""

    container: str
    whole: bool
    blob: Blob | None = None
    ranks: list[int] = field(default_factory=list)


def rank_log(ports: Ports, run: Run, rank: int) -> RankLog:
    """The log of this rank; without a blob where there is none yet."""
    how, archived = workload(run), run.archive.at is not None
    ranks = how.ranks(run)
    if (job_and_number := how.log_of(run, rank)) is None:
        return RankLog("", archived, None, ranks or [])
    job, number = job_and_number
    if archived:
        place = Place(OUTPUT_CONTAINER, f"{archive_folder(run)}/logs/{how.job_folder(run, job)}")
    else:
        try:
            live = ports.jobs.logs(job)
        except NotFound:  # a workspace without the datastore that holds them
            return RankLog("", whole=False)
        place = Place(live.container, f"{live.prefix}user_logs/")
    files = _by_rank(ports.blobs, place)
    return RankLog(place.container, archived, files.get(number), sorted(files) if ranks is None else ranks)


def _by_rank(blobs: Blobs, place: Place) -> dict[int, Blob]:
    blobs_by_rank = {}
    for blob, _ in zip(blobs.list(place), range(RANKS_LISTED), strict=False):
        if match := _FILE.fullmatch(blob.name.removeprefix(place.prefix)):
            blobs_by_rank[int(match["rank"] or 0)] = blob
    return blobs_by_rank
