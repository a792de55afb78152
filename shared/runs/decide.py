"""Pure decisions: how a job's status changes its run, which log explains a failure, and how metrics are folded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from shared.jobs.metric_goal import Goal, goal_of
from shared.jobs.model import FailureCode, JobState, JobStatus
from shared.kernel.drop_key import DropKey
from shared.runs.model import FINAL, TRANSITIONS, Moment, Run, RunState

WHY_LIMIT = 1000  # characters of the reason of one history entry
HISTORY_LIMIT = 100  # entries kept; the history of an often preempted job keeps its first half and its last half


def advance(run: Run, state: RunState, now: datetime, why: str = "", failure: FailureCode | None = None) -> Run:
    """Move the run to `state`; the run is returned unchanged if TRANSITIONS forbids the step.

    `failure` is the code of the job failure that caused the step.
    """
    if state not in TRANSITIONS[run.progress.state]:
        return run
    history = (*run.progress.history, Moment(state, now, why[:WHY_LIMIT], failure))
    if len(history) > HISTORY_LIMIT:
        history = history[: HISTORY_LIMIT // 2] + history[-HISTORY_LIMIT // 2 :]
    progress = replace(run.progress, state=state, history=history)
    starts_anew = state is RunState.QUEUED and run.progress.state is RunState.RUNNING
    began = state in (RunState.QUEUED, RunState.RUNNING, RunState.COMPLETED)
    if starts_anew or (run.progress.attempts == 0 and began):
        progress = replace(progress, attempts=progress.attempts + 1)
    if state in (RunState.FAILED, RunState.CANCELED):
        progress = replace(progress, reason=why)
    return replace(run, progress=progress)


def first_moment(run: Run, remark: str = "") -> tuple[Moment, ...]:
    """The initial history of a run of a sealed drop, with a remark about the run."""
    return (Moment(RunState.RECEIVED, run.created_at, f"Drop {run.asked.drop} was sealed. {remark}".strip()),)


def why_step(run: Run, status: JobStatus, now: datetime) -> str:
    """The reason for a step, in one sentence; '' if the step needs no reason."""
    if run.progress.state is RunState.RUNNING and status.state is JobState.QUEUED:
        return "The job lost its nodes and waits for new ones."
    if status.state is not JobState.CANCELED:
        return ""
    if status.error or run.cancel.asked_at:
        return run.cancel.why or status.error or "Canceled as asked."
    limit = run.asked.request.timeout_seconds
    if (
        limit
        and run.progress.state is RunState.RUNNING
        and (now - run.progress.history[-1].at).total_seconds() >= limit * NEARLY
    ):
        return f"It reached its time limit of {limit} s, and Azure ML canceled it."
    return "The job was canceled in Azure ML."


def overdue(run: Run, now: datetime) -> str | None:
    """Why a running run must be canceled: the run is past its time limit, and Azure ML has not ended the job."""
    if run.progress.state is not RunState.RUNNING or not run.asked.timeout_seconds:
        return None
    over = now - run.progress.history[-1].at - timedelta(seconds=run.asked.timeout_seconds)
    if over < OVERDUE_GRACE:
        return None
    hours = (over + timedelta(seconds=run.asked.timeout_seconds)) / timedelta(hours=1)
    return f"It has run for {hours:.1f} h, past its time limit of {run.asked.timeout_seconds} s."


def preemptions(run: Run, since: datetime) -> int:
    """The number of times that the run lost its nodes since `since`."""
    steps = pairwise(run.progress.history)
    lost = [b.at for a, b in steps if a.state is RunState.RUNNING and b.state is RunState.QUEUED]
    return sum(at >= since for at in lost)


def failing_log(tails: Mapping[str, str], lines: int) -> tuple[str, str]:
    """Choose the log with the explanation of a failure among the tails of several ranks: the log's name and last lines.

    Preferred are ranks that raised an exception other than a connection error, because a connection error only shows
    that a peer failed. Next come ranks that raised a connection error, then the first rank with any log.
    """
    written = {name: tail.strip() for name, tail in sorted(tails.items()) if tail.strip()}
    raised = {name: tail for name, tail in written.items() if "Traceback" in tail or ": failed:" in tail}
    own = {name: tail for name, tail in raised.items() if "connection" not in tail.rpartition("\n")[2].lower()}
    for candidates in (own, raised, written):
        for name, tail in candidates.items():
            return name, "\n".join(tail.splitlines()[-lines:])
    return "", ""


def reads(run: Run, drop: DropKey) -> bool:
    """Whether the run's job reads this drop.

    The job reads the drop if the run was made for it, or if an input path equals, contains, or lies inside the drop.
    """
    key = str(drop)
    return run.asked.drop == key or any(
        key == place or key.startswith(f"{place}/") or place.startswith(f"{key}/") for place in run.asked.reads
    )


def is_over(run: Run) -> bool:
    return run.progress.state in FINAL


def has_run(run: Run) -> bool:
    """Whether the run was ever running on nodes."""
    return any(moment.state is RunState.RUNNING for moment in run.progress.history)


OVERDUE_GRACE = timedelta(minutes=5)  # Azure ML ends a job at its limit, but may report the end late
NEARLY = 0.9  # share of the time limit: our history starts later than Azure ML's clock
METRICS_KEPT = 200  # names; more names indicate a bug in the trainer
WHEN = ("time", "step", "epoch")  # columns that say when a row was written; not metrics


@dataclass(frozen=True)
class Folded:
    """The last and the best value of each metric, and the step of the best value, if the row names a step."""

    last: dict[str, float] = field(default_factory=dict)
    best: dict[str, float] = field(default_factory=dict)
    best_steps: dict[str, float] = field(default_factory=dict)


def fold_metrics(rows: Iterable[Mapping[str, Any]], goals: Mapping[str, str] | None = None) -> Folded:
    """Fold the rows of a run. The best is the lowest value if `goals`, else the metric's name, demands it."""
    folded = Folded()
    last, best, steps = folded.last, folded.best, folded.best_steps
    for row in rows:
        for name, value in row.items():
            number = finite(value)
            if name in WHEN or number is None or (name not in last and len(last) >= METRICS_KEPT):
                continue
            last[name] = number
            lowest = (goals or {}).get(name, goal_of(name)) == Goal.MINIMIZE
            if name not in best or (number < best[name] if lowest else number > best[name]):
                best[name] = number
                steps.pop(name, None)
                if (step := finite(row.get("step"))) is not None:
                    steps[name] = step
    return folded


def finite(value: Any) -> float | None:
    """The value as a finite number; None for any other value, because logs may contain anything."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
