"""The list of runs for a table: short rows, page by page, and afterwards only the changed rows.

No field of a row changes with the clock, so a list without news gets 304.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from shared.api.queries import run_filter
from shared.api.requests import RunsQuery
from shared.kernel.clock import Clock
from shared.runs.features import outline, part_of, parts
from shared.runs.model import FINAL, Run, RunState
from shared.runs.ports import RunFields, Runs
from shared.runs.views.labels import listed_values
from shared.runs.views.summary import best_metric, cause, model_metrics

Json = dict[str, Any]


class RowsQuery(RunsQuery):
    """The same parameters as for the list of runs, plus `changes`."""

    changes: Annotated[
        Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,400}$")] | UnsetType,
        Meta(description="`changes` of the last answer: only changes since then, from that page's oldest run on."),
    ] = UNSET


class _RunRow(Struct):
    run: str
    state: RunState
    drop: str
    owner: str
    experiment: str
    nodes: int
    created_at: datetime
    started_at: Annotated[datetime | None, Meta(description="When its first node started; null before that.")]
    ended_at: datetime | None
    tags: dict[str, str]
    parameters: dict[str, Any]
    headline: Annotated[str | None, Meta(description="The run's headline metric; null if it has no metrics.")]
    best: Annotated[dict[str, float], Meta(description="The best value of each metric that the training saw.")]
    best_step: Annotated[float | None, Meta(description="The step of the headline's best value; null if unknown.")]
    of_model: Annotated[dict[str, float], Meta(description="Each metric of the saved model.")]
    cost: Annotated[float | None, Meta(description="Dollars so far, of a sweep of all its trials; null if unknown.")]
    why: Annotated[str, Meta(description="Why it failed, was canceled, or has not started; '' for any other run.")]
    sweep: Annotated[str, Meta(description="The sweep of which it is a trial; '' if it is none.")]
    trials: Annotated[int | None, Meta(description="How many trials a sweep has begun; null for any other run.")]
    done_share: Annotated[
        float | None, Meta(description="Ended trials of all, from 0 to 1, of a running sweep; null for any other run.")
    ]
    listed: Annotated[dict[str, str], Meta(description="Further columns of the list, by their labels.")]


CELLS = [part.cell for part in parts() if part.cell]
RunRow = msgspec.defstruct("RunRow", [(cell.name, cell.model) for cell in CELLS], bases=(_RunRow,), module=__name__)


class Rows(Struct):
    rows: list[RunRow]  # type: ignore[valid-type]
    gone: Annotated[list[str], Meta(description="Runs that no longer match the filter, or that were removed.")]
    changes: Annotated[str | None, Meta(description="Pass it to get later changes; null if there are no runs.")]
    complete: Annotated[bool, Meta(description="False if too much changed to list: request the page again.")]
    token: Annotated[str | None, Meta(description="Pass it to get the next page; null on the last page.")] = (
        msgspec.field(name="continue")
    )


def rows(runs: Runs, clock: Clock, query: RowsQuery) -> Json:
    """Return a page of rows, newest first, or the rows that changed since an earlier answer."""
    row_filter = run_filter(clock, query)
    if query.changes is UNSET:
        fields = RunFields.ALL if query.where else RunFields.ROW
        page = runs.page(row_filter, query.limit, query.token or "", fields=fields)
        return _answer(page.runs, [], page.mark, token=page.token)
    run_changes = runs.changed(row_filter, query.changes)
    if run_changes is None:
        return _answer([], [], query.changes, complete=False)
    return _answer(run_changes.runs, run_changes.gone, run_changes.mark)


def _answer(runs: list[Run], gone: list[str], mark: str, *, token: str = "", complete: bool = True) -> Json:
    removed = [run.name for run in runs if run.removed.at is not None]
    return {
        "rows": [_row(run) for run in runs if run.removed.at is None],
        "gone": gone + removed,
        "changes": mark or None,
        "complete": complete,
        "continue": token or None,
    }


def _row(run: Run) -> Json:
    began = next((moment.at for moment in run.progress.history if moment.state is RunState.RUNNING), None)
    ended = run.progress.history[-1].at if run.progress.history and run.progress.state in FINAL else None
    said = outline(run)
    return {
        "run": run.name,
        "state": str(run.progress.state),
        "drop": run.asked.drop,
        "owner": run.people.owner,
        "experiment": run.asked.experiment,
        "nodes": run.asked.nodes,
        "created_at": run.created_at.isoformat(),
        "started_at": began and began.isoformat(),
        "ended_at": ended and ended.isoformat(),
        "tags": run.people.tags,
        "parameters": run.asked.parameters,
        "headline": best[0] if (best := best_metric(run)) else None,
        "best": run.measured.best,
        "best_step": run.measured.best_steps.get(best[0]) if best else None,
        "of_model": model_metrics(run),
        "cost": said.dollars if said.dollars is not None else run.money.cost.dollars if run.money.cost else None,
        "why": _why(run),
        "sweep": part_of(run),
        "trials": said.parts,
        "done_share": said.done_share if said.parts and run.progress.state is RunState.RUNNING else None,
        "listed": listed_values(run),
        **{cell.name: cell.say(run) for cell in CELLS},
    }


def _why(run: Run) -> str:
    """Return why the run failed, was canceled, or waits. It changes only with the run, never with the clock."""
    if run.progress.state in FINAL:
        return cause(run)
    waits = run.progress.state is not RunState.RUNNING and run.progress.history
    return run.progress.history[-1].why.partition("\n")[0] if waits else ""
