"""A run in one line: best metric, duration, cause of failure, and any value by its name. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from shared.jobs.metric_goal import Goal, goal_of
from shared.kernel.parts import columns
from shared.runs import old_sentences
from shared.runs.model import FINAL, Run, RunState

Value = str | float

# Metrics that best describe a model's quality, in order of preference: words of a metric's name.
TELLING = ("accuracy", "acc", "map", "f1", "auc", "perplexity", "loss")
HELD_OUT = ("test_", "val_", "validation_")
CAUSE_LIMIT = 300  # characters

_ENDED = re.compile(r"^(?:process|rank) \d+: (?:bad data|failed): (.+)", re.MULTILINE)
_ARGUMENTS = re.compile(r"^\S+: error: (.+)", re.MULTILINE)  # argparse's
_RAISED = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit)\b.*", re.MULTILINE)
_MEMBER = re.compile(r"^member: worker failed: .*?ended with \d+: (?:rank \d+: )?(.+)", re.MULTILINE)


def lower_is_better(metric: str, run: Run) -> bool:
    """Whether a lower value is better, by the run's trainer, otherwise by the metric's name."""
    return run.measured.goals.get(metric, goal_of(metric)) == Goal.MINIMIZE


def model_metrics(run: Run) -> dict[str, float]:
    """The metrics of the run's saved model; the best values, if an older index row lacks these metrics."""
    return run.measured.of_model or run.measured.best


def best_metric(run: Run) -> tuple[str, float] | None:
    """The most meaningful metric, preferably on held-out data, with the best value.

    Lists in the command line and on the page show this metric. A run with a single metric shows that metric.
    """
    metrics = run.measured.best
    for part in (*HELD_OUT, ""):
        for word in TELLING:
            named = [name for name in metrics if _has(name, part, word)]
            if named:
                return min(named, key=len), metrics[min(named, key=len)]
    return next(iter(metrics.items())) if len(metrics) == 1 else None


def most_telling_first(metrics: Iterable[str], chosen_by: str = "") -> list[str]:
    """The names of the metrics: first `chosen_by`, then metrics of a model's quality, then the others."""
    names = sorted(metrics)
    ranks = [(part, word) for part in (*HELD_OUT, "") for word in TELLING]

    def rank(name: str) -> int:
        return next((place for place, (part, word) in enumerate(ranks) if _has(name, part, word)), len(ranks))

    first = metric_named(chosen_by, names) if chosen_by else ""
    return sorted(names, key=lambda name: (name != first, rank(name), name))


def _has(name: str, part: str, word: str) -> bool:
    """Whether a metric's name, such as test_accuracy or val/Acc, starts with the part and contains the word."""
    plain = name.casefold().replace("/", "_")
    return plain.startswith(part) and word in plain.split("_")


def metric_named(name: str, metrics: Iterable[str]) -> str:
    """The metric with this name, or with this name after test_, val_ or train_; '' if none exists."""
    all_names = set(metrics)
    return next((full for full in (name, *(part + name for part in (*HELD_OUT, "train_"))) if full in all_names), "")


def duration_seconds(run: Run, now: datetime | None = None) -> float | None:
    """Seconds from the first node's start to the run's end, or to `now`; None if the run never ran."""
    began = next((moment.at for moment in run.progress.history if moment.state is RunState.RUNNING), None)
    ended = run.progress.history[-1].at if run.progress.history and run.progress.state in FINAL else now
    return (ended - began).total_seconds() if began and ended else None


def first_line(run: Run) -> str:
    """The first line of the reason for the run's end."""
    return run.progress.reason.partition("\n")[0]


def reason_with_log(run: Run) -> str:
    """The reason for the run's end, with the tail of the log that explains a failure."""
    failure = run.progress.failure
    return f"{run.progress.reason}\n{failure.log}:\n{failure.tail}" if failure and failure.tail else run.progress.reason


def cause(run: Run) -> str:
    """Why the run failed, in the trainer's own sentence if the log has one; '' without a failure."""
    if run.progress.state is not RunState.FAILED:
        return first_line(run)[:CAUSE_LIMIT] if run.progress.state is RunState.CANCELED else ""
    failure = run.progress.failure
    log = failure.tail if failure else old_sentences.log_of(run.progress.reason)
    for pattern in (_ENDED, _MEMBER, _ARGUMENTS):
        if matches := pattern.findall(log):
            return str(matches[-1]).strip()[:CAUSE_LIMIT]
    if matches := _RAISED.findall(log):
        return str(matches[-1]).strip()[:CAUSE_LIMIT]
    lines = [line for line in log.splitlines() if line.strip()]
    return (lines[-1].strip() if lines else first_line(run))[:CAUSE_LIMIT]


def value_of(run: Run, name: str, now: datetime | None = None) -> Value | None:
    """The value of a field, a parameter, a metric (of the saved model) or a tag; None if nothing has the name."""
    if name in FIELDS:
        return _field(run, name, now)
    if name in run.asked.parameters:
        return _value(run.asked.parameters[name])
    metrics = model_metrics(run)
    if metric := metric_named(name, metrics):
        return metrics[metric]
    return run.people.tags.get(name)


def names_of(run: Run) -> set[str]:
    """Every name with a possible value in this run for `value_of`."""
    metrics = {metric.removeprefix(part) for metric in model_metrics(run) for part in ("", *HELD_OUT, "train_")}
    return {*FIELDS, *run.asked.parameters, *metrics, *run.people.tags}


FIELDS = (
    *("run", "state", "drop", "route", "experiment", "cluster", "owner", "nodes", "attempts", "generation"),
    *("owner_id", "duration", "cost", "project", "code"),
)


def _field(run: Run, name: str, now: datetime | None) -> Value | None:
    if name == "duration":
        return duration_seconds(run, now)
    if name == "cost":
        return run.money.cost.dollars if run.money.cost else None
    return _value(run.name if name == "run" else columns(Run)[name].of(run))


def _value(value: Any) -> Value:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, int | float) else str(value)
