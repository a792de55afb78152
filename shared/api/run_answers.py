"""The API's answers about runs besides their records: new runs, pages, curves, comparisons, files."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from shared.api.records import ListedRun, RunAnswer
from shared.jobs.batchai.report import Finding
from shared.runs.features import said_before_start
from shared.runs.ports import Reason


class ComparedValue(Struct):
    name: str
    values: Annotated[
        list[Any], Meta(description="One value for each run, in the order of the runs; null for a run without one.")
    ]


class ComparedMetric(Struct):
    name: str
    values: list[float | None]
    best: Annotated[int | None, Meta(description="The run with the best value; null if all are equal.")]


class Costs(Struct):
    """A run's possible costs in dollars, before the start. `price` is an hour of one node; null if unknown."""

    project: str
    estimated: Annotated[
        float | None, Meta(description="Estimated from the newest runs of its kind; null if there are none.")
    ]
    greatest: Annotated[
        float | None, Meta(description="Cost if the run uses its whole time limit, with node starts and idle nodes.")
    ]
    price: float | None
    price_from: str


class _DryRun(Struct):
    """`report` belongs to a Batch AI document, and is empty for any other job."""

    job: dict[str, Any]
    reasons: list[Reason]
    cost: Costs
    report: list[Finding] = []


DryRun = msgspec.defstruct(
    "DryRun", said_before_start(), bases=(_DryRun,), module=__name__, namespace={"__doc__": _DryRun.__doc__}
)


class Imported(Struct):
    """The translation of a Batch AI document: a job, a compute, or the facts of a project for the command line."""

    kind: str
    job: dict[str, Any] | None = None
    compute: dict[str, Any] | None = None
    project: dict[str, Any] | None = None
    report: list[Finding] = []
    reasons: list[Reason] = []
    scripts: Annotated[
        list[str], Meta(description="Files of the job that may be sent with it: texts for `batchai.files`.")
    ] = []


class Compared(Struct):
    runs: list[RunAnswer]
    different: Annotated[list[ComparedValue], Meta(description="Fields that differ between the runs.")]
    metrics: Annotated[list[ComparedMetric], Meta(description="The best value of each metric in each run.")]


class RunPageAnswer(Struct):
    runs: list[ListedRun]
    token: Annotated[str | None, Meta(description="Pass it to get the next page; null on the last page.")] = (
        msgspec.field(name="continue")
    )
    looked_at: Annotated[int, Meta(ge=0, description="How many runs were searched; only with a filter or `where`.")]
    hint: Annotated[str, Meta(description="Only if no run was found: names in `where` that no run has.")] = ""


class Series(Struct):
    series: Annotated[
        dict[str, list[Annotated[list[float | None], Meta(min_length=3, max_length=3)]]],
        Meta(description="Points of each metric: step, value, Unix time or null. At most 2,000 of each."),
    ]


class NewPoints(Struct):
    series: dict[str, list[Annotated[list[float | None], Meta(min_length=3, max_length=3)]]]
    next: Annotated[str, Meta(description="Pass it as `after` to get the next points.")]


class NewLog(Struct):
    text: str
    offset: int
    next_offset: int
    size: int
    complete: bool
    ranks: list[int]


class Live(Struct):
    run: RunAnswer
    metrics: NewPoints
    log: NewLog | None


class Curves(Struct):
    runs: Annotated[
        dict[str, dict[str, list[Annotated[list[float | None], Meta(min_length=3, max_length=3)]]]],
        Meta(description="Points of each metric of each run: step, value, Unix time or null."),
    ]
    records: list[RunAnswer]


class Artifact(Struct):
    name: str
    size: int
    md5: str
    etag: str


class OutputAnswer(Struct, omit_defaults=True):
    """The fate of a declared output of the job: archived, empty, left in its place, or missing."""

    name: str
    state: str
    path: str
    why: str = ""
    folder: str = ""
    files: int = 0
    asset: Annotated[str, Meta(description="The name, or name:version, under which it is registered.")] = ""


class Artifacts(Struct):
    complete: bool
    files: list[Artifact]
    outputs: list[OutputAnswer]
    pictures: Annotated[dict[str, str], Meta(description="Addresses of the first pictures by name, if requested.")]
