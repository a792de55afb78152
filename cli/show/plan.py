"""The summary of a dry run: the work and its cluster, the possible cost, and the obstacles to starting. Pure."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType

from ..files.job_form import SCHEME
from ..terminal_text import Text, one_line
from .costs import before
from .tables import facts_table


def plan(answer: dict[str, Any]) -> RenderableType:
    """Return the summary of a dry run's answer. The job itself is printed only with --json."""
    facts = {name: Text(one_line(text)) for name, text in {**_job(answer["job"]), **_costs(answer)}.items() if text}
    return Group(facts_table(facts), *_verdict(answer["reasons"]), Text("The whole job: --json", "dim"))


def _job(job: dict[str, Any]) -> dict[str, str]:
    inputs: dict[str, Any] = job.get("inputs") or {}
    read = [f"{name} {value['path']}" for name, value in inputs.items() if isinstance(value, dict) and "path" in value]
    values = [f"{name}={value}" for name, value in inputs.items() if not isinstance(value, dict)]
    return {
        "run": str(job.get("name", "")),
        "experiment": str(job.get("experiment_name", "")),
        "kind": "" if job.get("type", "command") == "command" else str(job["type"]),
        "cluster": str(job.get("compute", "")).removeprefix(SCHEME),
        "nodes": str((job.get("resources") or {}).get("instance_count", "")),
        "command": str(job.get("command", "")).strip().partition("\n")[0],
        "steps": ", ".join(job.get("jobs") or {}),
        "environment": _environment(job.get("environment")),
        "data": ", ".join(read),
        "parameters": " ".join(values),
        "time limit": _limit(job.get("limits") or {}),
    }


def _environment(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("image") or value.get("name") or "of the job's own")
    return str(value or "").removeprefix(SCHEME)


def _limit(limits: dict[str, Any]) -> str:
    return f"{limits['timeout']} s" if "timeout" in limits else ""


def _costs(answer: dict[str, Any]) -> dict[str, str]:
    cost, date = answer["cost"], answer.get("date")
    project = f" of project {cost['project']}" if cost["project"] else ""
    return {
        f"cost{project}": before(cost["estimated"], cost["greatest"], cost["price_from"]),
        "date": date["why"] if date else "",
    }


def _verdict(reasons: list[dict[str, Any]]) -> list[Text]:
    return [Text(f"not now: {one_line(each['message'])}", "yellow") for each in reasons] or [
        Text("It could start now.", "green")
    ]
