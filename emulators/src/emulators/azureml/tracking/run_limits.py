"""Refuses the parts of an MLflow run that Azure ML does not store: more than 50 metric names, 200 parameters or 50
tags."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from emulators.azureml.kernel.service_limits import MOST_METRICS, MOST_PARAMETERS, OverLimit, check_entries

Ask = Callable[[str, str, str, bytes], Awaitable[tuple[int, bytes, str]]]
# What a request adds: the list in log-batch and in the answer of runs/get, or one entry.
ONE = {"log-metric": "metrics", "log-parameter": "params", "set-tag": "tags"}
LIMITS = {"metrics": ("Metrics", MOST_METRICS), "params": ("Parameters", MOST_PARAMETERS)}
MOST_RUNS = 1000  # in the cache
CODE = "INVALID_PARAMETER_VALUE"  # MLflow's, for Azure ML's ValidationError
OWN = "mlflow."  # MLflow's own tags


class RunLimits:
    """Checks Azure ML's limits for runs. The known names of a run are cached, so each run is read once."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._names: dict[str, dict[str, set[str]]] = {}

    async def check(self, rest: str, given: Mapping[str, Any]) -> None:
        """Raise OverLimit if an MLflow request would exceed Azure ML's limits for the run."""
        call, run = rest.rpartition("/runs/")[2], given.get("run_id") or given.get("run_uuid")
        added = dict(_added(call, given))
        if not added or not isinstance(run, str):
            return
        names = self._names.get(run) or await self._read(run)
        for kind, entries in added.items():
            together = names[kind] | entries.keys()
            if kind == "tags":
                check_entries("RunDto.Tags", dict.fromkeys(together, "") | entries, CODE)
            elif len(together) > LIMITS[kind][1]:
                raise OverLimit(*LIMITS[kind], len(together), CODE)
            names[kind] = together

    async def _read(self, run: str) -> dict[str, set[str]]:
        """Return the names that MLflow has stored for a run."""
        if len(self._names) >= MOST_RUNS:
            self._names.clear()
        status, body, _ = await self._ask("GET", "/api/2.0/mlflow/runs/get", urlencode({"run_id": run}), b"")
        data = json.loads(body)["run"].get("data", {}) if status == 200 else {}
        self._names[run] = {kind: _entries(data.get(kind)).keys() | set() for kind in ("metrics", "params", "tags")}
        return self._names[run]


def _added(call: str, given: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the values that a request adds to a run, by name, for each kind."""
    if call == "log-batch":
        yield from ((kind, _entries(given.get(kind))) for kind in ("metrics", "params", "tags"))
    elif call in ONE:
        yield ONE[call], _entries([given])


def _entries(rows: Any) -> dict[str, str]:
    found = [row for row in rows or () if isinstance(row, dict) and isinstance(row.get("key"), str)]
    return {row["key"]: str(row.get("value", "")) for row in found if not row["key"].startswith(OWN)}
