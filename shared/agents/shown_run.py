"""A run as the tools show it: its facts, and the text that its program and people wrote. Pure."""

from __future__ import annotations

from typing import Any

from shared.agents.tools import ToolAnswer

Json = dict[str, Any]
METRICS_SHOWN = 20
ENDED = ("completed", "failed", "canceled")
_FACTS = (
    *("run", "state", "kind", "created_at", "duration_seconds", "archived_at", "cluster", "nodes", "attempts"),
    *("timeout_seconds", "estimated_cost", "greatest_cost", "from_run", "continues", "retry_of", "saved_step"),
)
_WORDS = ("experiment", "drop", "owner", "parameters", "tags", "cause", "cancel_why", "archive_error")


def entry(run: Json) -> tuple[Json, Json]:
    """Return a run of a list: its facts, and its text from outside."""
    best = run["best"] or {}
    facts = {name: run[name] for name in ("run", "state", "created_at", "cluster", "nodes", "duration_seconds")}
    words = {name: run[name] for name in ("experiment", "parameters", "tags", "owner") if run[name]}
    if best:
        words["best"] = {best["metric"]: best["value"]}
    return facts, words


def shown(run: Json) -> ToolAnswer:
    """Return a run with its cost, its results, and why the run failed or waits."""
    facts = {name: run[name] for name in _FACTS if run.get(name) not in (None, "", 0)}
    words: Json = {name: run[name] for name in _WORDS if run.get(name)}
    facts["dollars"] = dollars(run)
    facts |= waits_for(run)
    if waiting := run["waiting"]:
        words["waiting"] = waiting["why"]
    words |= _metrics(run["metrics"])
    words["notes"] = [note["text"] for note in run["notes"][-5:]]
    diagnosed, said = diagnosis(run)
    facts |= diagnosed
    words |= said
    left = len(run["metrics"]["last"]) - METRICS_SHOWN
    cut = (f"{left} more metrics.",) if left > 0 else ()
    return ToolAnswer(facts, words, cut, _advice(run))


def waits_for(run: Json) -> Json:
    """Return what a run waits for, and the expected end of the wait if known; {} for a run that does not wait."""
    if not (waiting := run["waiting"]):
        return {}
    return {"waits_for": waiting["code"]} | ({"expected_at": until} if (until := waiting["expected_at"]) else {})


def dollars(run: Json) -> float:
    """Return the cost of a run so far."""
    cost = run["cost"]
    return round(cost["training"] + cost["allocation"] + cost["idle"], 4) if cost else 0.0


def diagnosis(run: Json) -> tuple[Json, Json]:
    """Return why a run failed, or the problems of a running run: codes and advice, and the quoted lines."""
    facts: Json = {}
    words: Json = {}
    if found := run.get("diagnosis"):
        facts["diagnosis"] = {name: found[name] for name in ("cause", "certainty") if found.get(name)}
        words["diagnosis"] = {name: found[name] for name in ("summary", "where", "advice") if found.get(name)}
        words["diagnosis"]["evidence"] = [line["text"] for line in found["evidence"]]
        words["change"] = {**found["change"], **found["change_job"]}
    ailments = (run.get("health") or {}).get("ailments", [])
    if ailments and run["state"] not in ENDED:
        facts["health"] = [each["cause"] for each in ailments]
        words["health"] = [{name: each[name] for name in ("summary", "evidence", "advice")} for each in ailments]
    return facts, words


def _metrics(metrics: Json) -> Json:
    shown = {kind: dict(list(metrics[kind].items())[:METRICS_SHOWN]) for kind in ("of_model", "best", "last")}
    return {f"metrics_{kind}": values for kind, values in shown.items() if values}


def _advice(run: Json) -> tuple[str, ...]:
    if run["state"] == "failed":
        return ("logs has the lines around the failure. Submit again only with a change that the diagnosis supports.",)
    if run["state"] not in ENDED:
        return ("wait says when to ask again. If the metrics can no longer win, cancel it and keep the money.",)
    if run["state"] == "completed" and not run["archived_at"]:
        return ("Its archive is not complete yet, so its model can't be promoted now.",)
    return ()
