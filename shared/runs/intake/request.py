"""A request for a run, in the form that the HTTP API accepts and a schedule stores."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from shared.jobs.batchai.given import BatchAI
from shared.jobs.limits import DAY
from shared.jobs.readers.place_text import PLACE_FORM
from shared.kernel.names import NAME
from shared.runs.names import RUN_NAME

Name = Annotated[str, Meta(pattern=f"^{NAME.pattern}$", description="Letters, digits, dashes and underscores.")]
RunName = Annotated[str, Meta(pattern=f"^{RUN_NAME.pattern}$")]
_TAG_NAME = "^(?!trainyard\\.)[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$"


class NodeRange(Struct, forbid_unknown_fields=True):
    """The minimum and maximum number of nodes of an elastic run."""

    min: Annotated[float, Meta(ge=1, le=100, multiple_of=1)]
    max: Annotated[float, Meta(ge=1, le=100, multiple_of=1)]


Tags = Annotated[
    dict[Annotated[str, Meta(pattern=_TAG_NAME)], Annotated[str, Meta(max_length=256)]],
    Meta(
        max_length=15, description="Your own tags, for finding the run. Names that begin with trainyard. are reserved."
    ),
]


class SweepRequest(Struct, forbid_unknown_fields=True):
    """A sweep: several trials of the training.

    Parameters with a range (0.001..0.1) or a list (32,64,128) are searched.
    """

    metric: Annotated[
        str, Meta(min_length=1, max_length=255, description="The metric that decides which trial is best.")
    ]
    goal: Annotated[
        Literal["maximize", "minimize"] | None, Meta(description="Default: derived from the metric's name.")
    ] = None
    trials: Annotated[float, Meta(ge=1, le=1000, multiple_of=1)] = 20
    at_once: Annotated[float, Meta(ge=1, le=1000, multiple_of=1)] = 4
    stop: Annotated[
        Literal["asha", "median_stopping"] | dict[str, Any] | None,
        Meta(description="When to stop a bad trial: asha, or an early_termination of Azure ML."),
    ] = None
    budget: Annotated[Annotated[float, Meta(gt=0)] | None, Meta(description="Dollars, for all trials together.")] = None
    sampling: Literal["bayesian", "random", "sobol", "grid"] = "bayesian"
    seed: Annotated[float, Meta(ge=0, le=2**31 - 1, multiple_of=1)] | None = None
    timeout: Annotated[
        Annotated[float, Meta(ge=60, le=30 * DAY, multiple_of=1)] | None, Meta(description="Seconds, for all trials.")
    ] = None
    search_space: Annotated[
        dict[str, str | list[bool | int | float | str] | dict[str, Any]],
        Meta(description="Also in the form of Azure ML's sweep jobs: {type: uniform, min_value: 0, max_value: 1}."),
    ] = {}


class RunRequest(Struct, forbid_unknown_fields=True):
    """A run to create. Exactly one of trainer, template and job names the training; other fields override the defaults
    of the training.

    Whole numbers are floats here because 2.0 is an integer in JSON Schema but not in msgspec.
    """

    trainer: Annotated[Name | None, Meta(description="A folder of trainers/.")] = None
    template: Annotated[Name | None, Meta(description="A route of the routes file: its job and its defaults.")] = None
    job: Annotated[dict[str, Any] | None, Meta(description="A whole Azure ML command job, or a Batch AI job.json.")] = (
        None
    )
    batchai: Annotated[BatchAI | None, Meta(description="Further documents and options of a Batch AI job.json.")] = None
    parameters: Annotated[
        dict[str, bool | int | float | str], Meta(description="Values of the job's literal inputs, by name.")
    ] = {}
    data: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1024)] | None,
        Meta(
            description=f"drops/<route>/<name>, <datastore>/<path>, or {PLACE_FORM}. "
            "Of a schedule also NAME@latest, ROUTE@new or ROUTE@all-new, which are resolved when it fires."
        ),
    ] = None
    nodes: Annotated[float, Meta(ge=1, le=1000, multiple_of=1)] | NodeRange | None = None
    resubmissions: Annotated[
        Annotated[float, Meta(ge=0, le=1000, multiple_of=1)] | None,
        Meta(description="How many jobs may replace lost ones in an elastic run."),
    ] = None
    cluster: Name | None = None
    experiment: Name | None = None
    done_by: Annotated[
        Annotated[str, Meta(min_length=4, max_length=40)] | None,
        Meta(
            description=(
                "The time by which it must be finished: 2026-01-31T18:00+01:00, or 18:00 (the next one, in UTC)."
            )
        ),
    ] = None
    within_seconds: Annotated[
        Annotated[float, Meta(ge=1, le=30 * DAY)] | None,
        Meta(
            description=(
                "The same as a duration from now. The run then chooses between low-priority and dedicated nodes."
            )
        ),
    ] = None
    takes_seconds: Annotated[
        Annotated[float, Meta(ge=1, le=30 * DAY)] | None,
        Meta(description="How long it takes on all its nodes. Default: as long as the newest runs of its kind."),
    ] = None
    timeout_seconds: Annotated[float, Meta(ge=60, le=30 * DAY, multiple_of=1)] | None = None
    keep_warm_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=31 * DAY)] | None,
        Meta(description="How long its nodes stay up after its end, for the next run, as a lease in your name."),
    ] = None
    tags: Tags = {}
    from_run: Annotated[
        Annotated[str, Meta(pattern=f"^(?:{RUN_NAME.pattern}|[^@]{{0,300}}@(?:latest|best:.{{1,200}}))$")] | None,
        Meta(description="A completed run whose model this run starts from; in a schedule also NAME@best:METRIC."),
    ] = None
    sweep: SweepRequest | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("trainer", "template", "job") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of trainer, template and job, not {given or 'none'}")


def as_given(request: RunRequest) -> dict[str, Any]:
    """The request's given fields, without omitted fields: an older version can then read the request."""
    return {name: value for name, value in msgspec.to_builtins(request).items() if value not in (None, {})}
