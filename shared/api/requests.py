"""Request models of the HTTP API. The models validate every request, and openapi.py describes them.

A request that does not match its model raises BadInput with the place and the expected type.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from shared.drops.uploads import Offered
from shared.jobs.batchai.given import BatchAI
from shared.jobs.limits import DAY
from shared.jobs.upload import MOST_FILES, File
from shared.kernel.errors import Impossible
from shared.kernel.names import NAME
from shared.runs.intake.request import Name, Tags
from shared.runs.model import RunState

M = TypeVar("M")

MOST_RUNS = 1000  # per page
LONGEST_WAIT = 60  # seconds; Azure ends an HTTP request after 230

# Any text that may be a blob's name: the service checks it.
RouteName = Annotated[str, Meta(min_length=1)]
DropName = Annotated[str, Meta(min_length=1)]
# Text, because msgspec would read any number in a query as Unix time.
Time = Annotated[str, Meta(description="Made at or after this time: 2026-01-31T08:00:00Z, or a date.")]
Token = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,2000}$", description="The value from the last page, unchanged.")]


class ImportRequest(Struct, forbid_unknown_fields=True):
    """A Batch AI document to convert, without making anything."""

    document: Annotated[dict[str, Any], Meta(description="A job.json, cluster.json or project.json.")]
    batchai: BatchAI | None = None
    cluster: Annotated[Name | None, Meta(description="The cluster for the job, or the cluster's name.")] = None
    experiment: Name | None = None


class NoteRequest(Struct, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=500, pattern=r"\S")]


class TagsRequest(Struct, forbid_unknown_fields=True):
    """Tags of a run to set and to remove."""

    set: Tags = {}
    remove: Annotated[list[Annotated[str, Meta(max_length=64)]], Meta(max_length=15)] = []


class Changes(Struct, forbid_unknown_fields=True):
    """Changes for a run made from another run. An empty body changes nothing."""

    parameters: Annotated[
        dict[str, bool | int | float | str], Meta(description="Values of the job's literal inputs, by name.")
    ] = {}


NO_CHANGES = Changes()


class RetryChanges(Changes, forbid_unknown_fields=True):
    """Changes for a retry, which may also run elsewhere or for longer, within the limits of the run's route."""

    cluster: Annotated[str, Meta(max_length=100, description="The cluster to run on; '' for the same one.")] = ""
    timeout_seconds: Annotated[
        int, Meta(ge=0, le=30 * DAY, description="The time limit of the job; 0 for the same one.")
    ] = 0


SAME_JOB = RetryChanges()


class LeaseRequest(Struct, forbid_unknown_fields=True):
    """Nodes to keep warm."""

    seconds: Annotated[float, Meta(ge=1, le=31 * DAY, description="For how long.")]
    why: Annotated[
        str,
        Meta(min_length=1, max_length=200, description="The reason, shown to anyone who asks why the cluster is up."),
    ]
    nodes: Annotated[float, Meta(ge=1, le=1000, multiple_of=1)] = 1


class LeaseExtension(Struct, forbid_unknown_fields=True):
    seconds: Annotated[float, Meta(ge=1, le=31 * DAY, description="For how long from now.")]


class CheckedFile(Struct, forbid_unknown_fields=True):
    """A drop's file before its upload."""

    name: Annotated[str, Meta(min_length=1, max_length=1024, description="Below the folder, with slashes.")]
    size: Annotated[float, Meta(ge=0, le=1 << 44, multiple_of=1)]
    md5: Annotated[
        str, Meta(max_length=64, description="Or any other sum of the content; files without one are not compared.")
    ] = ""


class RouteCheck(Struct, forbid_unknown_fields=True):
    """The content of a drop's job file, to check before anything is uploaded."""

    job: Annotated[
        dict[str, Any] | None, Meta(description="The content of the drop's job file; null or left out for none.")
    ] = None
    files: Annotated[
        Annotated[list[CheckedFile], Meta(max_length=100_000)] | None,
        Meta(description="The drop's files, to be checked by their names, sizes and MD5 sums."),
    ] = None


class FolderFile(Struct, forbid_unknown_fields=True):
    """A file of a folder to upload."""

    name: Annotated[str, Meta(min_length=1, max_length=1024, description="Path below the folder, with slashes.")]
    size: Annotated[float, Meta(ge=0, le=1 << 40, multiple_of=1)]
    md5: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]


class FolderRequest(Struct, forbid_unknown_fields=True):
    """A folder to upload for a job: code, an input, or a build context."""

    files: Annotated[list[FolderFile], Meta(min_length=1, max_length=MOST_FILES)]


class CreateQuery(Struct):
    dry_run: Annotated[bool, Meta(description="Answer with the job that would be submitted, and create nothing.")] = (
        False
    )


class RunsQuery(Struct):
    """Absent values are UNSET: with None, the text "null" would be accepted, too. `token` is `continue` on the wire."""

    experiment: Name | UnsetType = UNSET
    state: RunState | UnsetType = UNSET
    cluster: Name | UnsetType = UNSET
    owner: Annotated[str, Meta(min_length=1, max_length=256)] | UnsetType = UNSET
    tag: Annotated[str, Meta(pattern="^[^=]+=", max_length=400, description="name=value")] | UnsetType = UNSET
    since: Time | UnsetType = UNSET
    where: Annotated[
        Annotated[str, Meta(min_length=1, max_length=400)] | UnsetType,
        Meta(description="Only runs that match this condition: lr<0.1 and accuracy>0.9"),
    ] = UNSET
    limit: Annotated[int, Meta(ge=1, le=MOST_RUNS)] = 100
    token: Token | UnsetType = msgspec.field(default=UNSET, name="continue")


class RunListQuery(RunsQuery):
    """The parameters of RunsQuery, plus `details`."""

    details: Annotated[bool, Meta(description="Each run with all fields, as GET runs/{run} has them.")] = False


class FindQuery(Struct):
    name: Annotated[
        str, Meta(min_length=1, max_length=1024, description="A name, a unique prefix, or route@best:accuracy.")
    ]


class CompareQuery(Struct):
    runs: Annotated[str, Meta(min_length=1, description="Two or more runs, separated by commas; names as for find.")]


class LogQuery(Struct):
    rank: Annotated[int, Meta(ge=0, le=100_000)] = 0
    offset: Annotated[int, Meta(ge=0, le=1 << 50)] = 0
    wait: Annotated[float, Meta(ge=0, le=LONGEST_WAIT, description="Seconds to wait for new data.")] = 0.0


class MetricsQuery(Struct):
    name: Annotated[str | UnsetType, Meta(description="Only these series, separated by commas.")] = UNSET


class LiveQuery(Struct):
    after: Annotated[
        str,
        Meta(pattern="^[ -~]{0,6000}$", description="`metrics.next` of the last answer: only data that came since."),
    ] = ""
    rank: Annotated[int, Meta(ge=0, le=100_000)] = 0
    offset: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=1 << 50,
                description="Byte offset at which to continue in the log; without it, the answer has no log.",
            ),
        ]
        | UnsetType
    ) = UNSET


class CurvesQuery(Struct):
    runs: Annotated[str, Meta(pattern="^[a-z0-9,-]{1,5000}$", description="Names of runs, separated by commas.")]
    name: Annotated[str, Meta(max_length=500, description="Only these series, separated by commas.")] | UnsetType = (
        UNSET
    )
    points: Annotated[int, Meta(ge=4, le=2000, description="At most this many points of each series.")] = 2000
    first: Annotated[float | UnsetType, Meta(description="Only points of this step and later ones.")] = UNSET
    last: Annotated[float | UnsetType, Meta(description="Only points up to this step.")] = UNSET
    records: Annotated[bool, Meta(description="Include the runs' records.")] = False


class ArtifactsQuery(Struct):
    pictures: Annotated[bool, Meta(description="Include addresses of the pictures among the files.")] = False


class UploadFile(Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1, max_length=1024, description="The path below the drop's folder.")]
    size: Annotated[float, Meta(ge=0, le=1 << 50, multiple_of=1)]
    modified: Annotated[float, Meta(ge=0, le=1e11, description="Time of the last change, Unix time.")]


class UploadRequest(Struct, forbid_unknown_fields=True):
    """Files of a drop to upload. `_SUCCESS` is the marker for closing the drop: put the marker last."""

    files: Annotated[list[UploadFile], Meta(min_length=1, max_length=1000)]


class DropsQuery(Struct):
    route: str | UnsetType = UNSET
    after: Annotated[str | UnsetType, Meta(description="The last drop of the previous page, route/name.")] = UNSET
    limit: Annotated[int, Meta(ge=1, le=MOST_RUNS)] = MOST_RUNS
    details: Annotated[bool, Meta(description="Each drop with all fields, as GET drops/{route}/{name} has them.")] = (
        False
    )


class ReplayQuery(Struct):
    dry_run: Annotated[bool, Meta(description="Count all poison messages and dead letters, and move nothing.")] = False


class ScaleQuery(Struct):
    force: Annotated[bool, Meta(description="Don't wait for the cluster's idle time.")] = False


def files(request: FolderRequest) -> list[File]:
    return [File(file.name, int(file.size), file.md5) for file in request.files]


def offered(request: UploadRequest) -> list[Offered]:
    return [Offered(file.name, int(file.size), datetime.fromtimestamp(file.modified, UTC)) for file in request.files]


def read_name(what: str, text: str) -> str:
    """Return the name of an experiment or cluster. A model's pattern accepts a trailing newline; this function does
    not.
    """
    if not NAME.fullmatch(text):
        raise Impossible(f"{what} is {text[:80]!r}; use letters, digits, dashes and underscores.", "bad_name")
    return text
