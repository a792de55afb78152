"""Compare runs: parameters, data, code and results. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from shared.jobs.readers.place_text import place_text
from shared.runs.model import Run
from shared.runs.views.summary import Value, duration_seconds, lower_is_better, model_metrics

Row = dict[str, Any]


def compare(runs: list[Run], now: datetime) -> dict[str, list[Row]]:
    """The rows with differences between the runs, as `different`, and all metrics of the runs' models, as `metrics`.

    A row is `{"name", "values"}` with one value per run, None where a run lacks the value. A metric's row also has
    `best`, the position of the best value, None if all values are equal.
    """
    rows = [*_parameters(runs), *_facts(runs, now)]
    return {"different": [row for row in rows if _differs(row["values"])], "metrics": _metrics(runs)}


def _parameters(runs: list[Run]) -> list[Row]:
    names = list(dict.fromkeys(name for run in runs for name in run.asked.parameters))
    return [{"name": name, "values": [run.asked.parameters.get(name) for run in runs]} for name in names]


def _facts(runs: list[Run], now: datetime) -> list[Row]:
    facts: dict[str, Callable[[Run], Value | None]] = {
        "state": lambda run: str(run.progress.state),
        "data": lambda run: run.asked.drop or _data_path(run),
        "content": lambda run: run.asked.fingerprint[:12] or None,
        "generation": lambda run: run.asked.generation or None,
        "code": lambda run: run.jobs.code[:12] or place_text(run.asked.request.code) or None,
        "environment": lambda run: run.jobs.environment.rpartition("/")[2] or None,
        "experiment": lambda run: run.asked.experiment,
        "cluster": lambda run: run.asked.cluster,
        "nodes": lambda run: run.asked.nodes,
        "from_run": lambda run: run.asked.from_run or None,
        "continues": lambda run: run.asked.continues or None,
        "owner": lambda run: run.people.owner or None,
        "owner_id": lambda run: run.people.owner_id or None,
        "attempts": lambda run: run.progress.attempts,
        "duration_seconds": lambda run: duration_seconds(run, now),
        "dollars": lambda run: run.money.cost.dollars if run.money.cost else None,
    }
    return [{"name": name, "values": [fact(run) for run in runs]} for name, fact in facts.items()]


def _data_path(run: Run) -> str | None:
    data = run.asked.request.data.get("data")
    return place_text(data.path) if data else None


def _metrics(runs: list[Run]) -> list[Row]:
    names = sorted({name for run in runs for name in model_metrics(run)})
    return [_metric(name, [model_metrics(run).get(name) for run in runs], runs[0]) for name in names]


def _metric(name: str, values: list[float | None], run: Run) -> Row:
    given = [value for value in values if value is not None]
    best = min(given) if lower_is_better(name, run) else max(given)
    return {"name": name, "values": values, "best": values.index(best) if _differs(values) else None}


def _differs(values: list[Any]) -> bool:
    return any(value != values[0] for value in values[1:])
