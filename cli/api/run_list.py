"""Lists of runs: reading page by page, sorting, and finding differing parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import CliError
from .client import Api

STATES = ("received", "submitted", "queued", "running", "completed", "failed", "canceled")
PAGE = 1000
SCANNED = 5000  # the most runs to sort
LOOKED_AT = 100_000  # the newest runs, which are searched for a condition
HELD_OUT = ("", "test_", "val_", "validation_", "train_")
FIELDS = {"duration": "duration_seconds", "began": "created_at", "run": "run", "state": "state", "nodes": "nodes"}

Run = dict[str, Any]


@dataclass
class RunPage:
    """Some runs, whether more may exist, and the number of searched runs, newest first."""

    runs: list[Run]
    more: bool
    looked_at: int
    hint: str = ""  # names in a condition that no run has, if no run was found

    @property
    def gave_up(self) -> bool:
        return self.more and self.looked_at >= LOOKED_AT


def matching(api: Api, query: dict[str, str], limit: int, everything: bool = False) -> RunPage:
    """Return up to `limit` runs that match the query, newest first. With `everything`, return up to SCANNED runs,
    for sorting."""
    runs: list[Run] = []
    token: str | None = ""
    looked_at, hint, most = 0, "", SCANNED if everything else limit
    while token is not None and len(runs) < most and looked_at < LOOKED_AT:
        answer = api.get("runs", **query, limit=min(most - len(runs), PAGE), details="true", **{"continue": token})
        runs += answer["runs"]
        looked_at += answer.get("looked_at") or PAGE  # an older deployment does not send this
        token, hint = answer.get("continue"), answer.get("hint", "")
    return RunPage(runs[:most], token is not None or len(runs) > most, looked_at, hint)


def ordered(runs: list[Run], by: str) -> list[Run]:
    """Return the runs sorted by this value, descending for a name that begins with `-`. Runs without the value come
    last. Raises CliError if no run has the value."""
    name, reverse = by.removeprefix("-"), by.startswith("-")
    having = [(value, run) for run in runs if (value := value_of(run, name)) is not None]
    if runs and not having:
        sortable_names = {name for run in runs for name in (*(run.get("parameters") or {}), *_best(run))} | {
            *FIELDS,
            *COMPUTED,
        }
        there = f"There are: {', '.join(sorted(sortable_names))}."
        raise CliError(f"None of these runs has the parameter, metric or field {name!r}. {there}", "unknown_name")
    numbers = all(isinstance(value, int | float) for value, _ in having)
    having.sort(key=lambda pair: pair[0] if numbers else str(pair[0]), reverse=reverse)
    return [run for _, run in having] + [run for run in runs if value_of(run, name) is None]


def value_of(run: Run, name: str) -> Any:
    """Return the value of a field, a parameter, a metric (the best value) or a tag of the run; None if the run has
    none of this name."""
    if name in FIELDS:
        return run.get(FIELDS[name])
    if name in COMPUTED:
        return COMPUTED[name](run)
    if name in (parameters := run.get("parameters") or {}):
        return parameters[name]
    best = _best(run)
    metric = next((part + name for part in HELD_OUT if part + name in best), "")
    return best[metric] if metric else (run.get("tags") or {}).get(name)


def _best(run: Run) -> dict[str, Any]:
    return (run.get("metrics") or {}).get("best") or {}


def cost_of(run: Run) -> float | None:
    """Return the cost of the run so far, in dollars, or None if none is known."""
    cost = run.get("cost")
    return float(cost["training"] + cost["allocation"] + cost["idle"]) if cost else None


def used_of(run: Run) -> float | None:
    """Return how busy the run's GPUs were, in percent, or else its processors; None if this was not measured."""
    usage = run.get("usage") or {}
    gpu: float | None = usage.get("gpu")
    return gpu if gpu is not None else usage.get("cpu")


COMPUTED: dict[str, Callable[[Run], float | None]] = {"cost": cost_of, "used": used_of}


def differing(runs: list[Run]) -> dict[str, list[str]]:
    """Return, for each experiment, the parameters with several values among the experiment's runs. Experiments are
    compared separately, because their parameters differ anyway.
    """
    kinds: dict[str, list[Run]] = {}
    for run in runs:
        kinds.setdefault(run.get("experiment", ""), []).append(run)
    return {kind: _differing(its) for kind, its in kinds.items()}


def _differing(runs: list[Run]) -> list[str]:
    having = [run["parameters"] for run in runs if run.get("parameters")]
    names = dict.fromkeys(name for values in having for name in values)
    return [name for name in names if len({str(values[name]) for values in having if name in values}) > 1]


def own(api: Api, query: dict[str, str], limit: int, everything: bool = False) -> RunPage:
    """Return your own runs, as `matching` does: runs with your object id, and runs with your name and no object id,
    such as runs of drops.

    Raises CliError if this Trainyard does not know your name.
    """
    name, object_id = _me(api)
    parts = [matching(api, {**query, "owner": who}, limit, everything) for who in (object_id, name) if who]
    by_name = {run["run"]: run for part in parts for run in part.runs if run.get("owner_id", "") in ("", object_id)}
    runs = sorted(by_name.values(), key=lambda run: str(run["created_at"]), reverse=True)
    most = SCANNED if everything else limit
    more = len(runs) > most or any(part.more for part in parts)
    return RunPage(runs[:most], more, max(part.looked_at for part in parts), parts[0].hint if not runs else "")


def own_rows(api: Api, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return your own leases, schedules or subscriptions: rows with your object id, and rows with your name and no
    object id. Raises CliError if this Trainyard does not know your name."""
    name, object_id = _me(api)
    own_names = {(object_id, True), (name, False)} - {("", True), ("", False)}
    return [row for row in rows if (row.get("owner_id") or row["owner"], bool(row.get("owner_id"))) in own_names]


def _me(api: Api) -> tuple[str, str]:
    """Return your name and object id in this Trainyard. Raises CliError if both are unknown."""
    me = api.get("me")
    if not (me["name"] or me.get("id")):
        raise CliError("Trainyard does not know your name. Set TRAINYARD_USER, or sign in with Entra ID.")
    return str(me["name"]), str(me.get("id") or "")
