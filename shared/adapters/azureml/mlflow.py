"""Metrics that a job logged to MLflow, read from the tracking server of the Azure ML workspace.

https://learn.microsoft.com/azure/machine-learning/how-to-use-mlflow-cli-runs; the REST API is MLflow's own. MLflow's
client is not used: it takes seconds to import, and three requests are enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from shared.kernel.errors import NotFound

if TYPE_CHECKING:
    from shared.adapters.azureml.arm import Arm

MOST_METRICS = 200
PAGE = 5000  # points per answer
MOST_POINTS = 100_000  # per metric; later points are left out
MOST_IN_ALL = 500_000  # points per job; some 100 MiB


def logged(arm: Arm, run: str) -> dict[str, list[tuple[float, float, float]]]:
    """Return the series of each metric: step, value, Unix time. Empty for a run unknown to MLflow."""
    try:
        answer = arm.tracking("runs/get", urlencode({"run_id": run}))
    except NotFound:
        return {}
    names = [str(metric["key"]) for metric in answer["run"].get("data", {}).get("metrics", [])]
    series, left = {}, MOST_IN_ALL
    for name in sorted(names)[:MOST_METRICS]:
        series[name] = _history(arm, run, name, min(MOST_POINTS, left))
        left -= len(series[name])
    return {name: points for name, points in series.items() if points}


def _history(arm: Arm, run: str, metric: str, most: int) -> list[tuple[float, float, float]]:
    points: list[tuple[float, float, float]] = []
    query: dict[str, Any] = {"run_id": run, "metric_key": metric, "max_results": PAGE}
    while len(points) < most:
        page = arm.tracking("metrics/get-history", urlencode(query))
        points += [_point(metric) for metric in page.get("metrics", [])]
        if not (token := page.get("next_page_token")):
            break
        query["page_token"] = token
    return points[:most]


def _point(metric: dict[str, Any]) -> tuple[float, float, float]:
    # MLflow's JSON has 64-bit numbers, NaN and infinities as text, which float() parses.
    return float(metric.get("step", 0)), float(metric["value"]), float(metric["timestamp"]) / 1000
