"""Find the log of a run's rank: in the job's folder while the log grows, later in the archive.

Both places have the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from shared.jobs.model import JobFolderPart
from shared.jobs.ports import Jobs
from shared.kernel.errors import NotFound
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blob, Blobs, Place
from shared.runs.model import Run
from shared.runs.progress.workloads import workload
from shared.runs.results.outputs import archive_folder

RANKS_LISTED = 1000


@dataclass(frozen=True)
class RankLog:
    """A rank's current log, and the ranks that have a log. `whole`: the log won't grow any more."""

    container: str
    whole: bool
    blob: Blob | None = None
    ranks: list[int] = field(default_factory=list)


def rank_log(jobs: Jobs, blobs: Blobs, run: Run, rank: int) -> RankLog:
    """The log of this rank; `blob` is None if the log does not exist yet."""
    how, archived = workload(run), run.archive.at is not None
    ranks = how.ranks(run)
    if (job_and_number := how.log_of(run, rank)) is None:
        return RankLog("", archived, None, ranks or [])
    job, number = job_and_number
    if archived:
        place = Place(OUTPUT_CONTAINER, f"{archive_folder(run)}/logs/{how.job_folder(run, job)}")
    else:
        try:
            place = jobs.folder(job).inside(JobFolderPart.LOGS)
        except NotFound:  # a workspace without the datastore of the logs
            return RankLog("", whole=False)
    files = _by_rank(jobs, blobs, place)
    return RankLog(place.container, archived, files.get(number), sorted(files) if ranks is None else ranks)


def _by_rank(jobs: Jobs, blobs: Blobs, place: Place) -> dict[int, Blob]:
    logs = islice(blobs.list(place), RANKS_LISTED)
    by_rank = {jobs.rank_of(blob.name.removeprefix(place.prefix)): blob for blob in logs}
    return {rank: blob for rank, blob in by_rank.items() if rank is not None}
