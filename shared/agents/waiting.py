"""The tool `wait`: the state of some runs, and when to ask again. It never blocks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta

from shared.agents.shown_run import ENDED, METRICS_SHOWN, diagnosis, dollars, waits_for
from shared.agents.tools import Desk, ToolAnswer, arguments

SOONEST, LATEST = 5, 300  # seconds until the next question
SHARE = 4  # of the time so far: for a run of twelve minutes, three minutes

WaitArguments = arguments(
    "WaitArguments",
    "The runs to wait for.",
    [
        (
            "runs",
            Annotated[
                list[Annotated[str, Meta(min_length=1, max_length=63)]],
                Meta(min_length=1, max_length=10, description="Complete names of runs, as submit returned them."),
            ],
        )
    ],
)


def wait(desk: Desk, asked: Any) -> ToolAnswer:
    now = desk.clock()
    runs = [desk.call("get_run", path={"run": name}) for name in dict.fromkeys(asked.runs)]
    going = [run for run in runs if run["state"] not in ENDED or (run["state"] == "completed" and not is_kept(run))]
    facts: dict[str, Any] = {"runs": [_state(run) for run in runs], "all_ended": not going}
    if going:
        facts["ask_again_in_seconds"] = min(seconds_until(run, now) for run in going)
    outside = {run["run"]: words for run in runs if (words := _words(run))}
    return ToolAnswer(facts, outside, advice=() if going else ("compare the runs, or inspect one.",))


def is_kept(run: dict[str, Any]) -> bool:
    """Return whether the run's archive is complete, or was abandoned."""
    return bool(run["archived_at"] or run["gave_up_at"])


def _state(run: dict[str, Any]) -> dict[str, Any]:
    state = {"run": run["run"], "state": run["state"], "seconds": round(run["duration_seconds"] or 0)}
    ended = {"dollars": dollars(run), "archived": bool(run["archived_at"])}
    return {**state, **ended, **waits_for(run), **diagnosis(run)[0]}


def _words(run: dict[str, Any]) -> dict[str, Any]:
    words = diagnosis(run)[1]
    if last := dict(list(run["metrics"]["last"].items())[:METRICS_SHOWN]):
        words["metrics_last"] = last
    if run["cause"]:
        words["cause"] = run["cause"]
    return words


def seconds_until(run: dict[str, Any], now: datetime) -> int:
    """Return after how many seconds a question about the run may get a new answer.

    For a run that waits for nodes, this is the expected start; for other runs, a share of the run's time so far.
    """
    expected = (run["waiting"] or {}).get("expected_at")
    if expected:
        left = (datetime.fromisoformat(str(expected)) - now).total_seconds()
    else:
        began = datetime.fromisoformat(str(run["created_at"]))
        left = (run["duration_seconds"] or (now - began).total_seconds()) / SHARE
    return round(min(max(left, SOONEST), LATEST))
