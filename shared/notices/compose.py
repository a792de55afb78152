"""Turn a lifecycle event into the notice that a person reads. The event holds names; the run's record has the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from shared.kernel.errors import Unavailable
from shared.notices.model import Notice, NoticeKind
from shared.runs.decide import is_over
from shared.runs.features import features
from shared.runs.find_run import find_run
from shared.runs.model import FINAL, Run, RunState
from shared.runs.ports import Runs
from shared.runs.views.summary import first_line, model_metrics

METRICS_TOLD = 4
_KINDS = {
    RunState.COMPLETED: NoticeKind.COMPLETED,
    RunState.FAILED: NoticeKind.FAILED,
    RunState.CANCELED: NoticeKind.CANCELED,
}
_Maker = Callable[[Runs, Notice, dict[str, Any]], Notice | None]


def compose(runs: Runs, kind: str, subject: str, at: datetime, data: dict[str, Any]) -> Notice | None:
    """Return the notice for an event; None for a kind without notices, or if its run no longer exists."""
    made = _MAKERS.get(kind)
    return made(runs, Notice(f"{kind}:{subject}", NoticeKind.TEST, "", at), data) if made else None


def _archived(runs: Runs, notice: Notice, data: dict[str, Any]) -> Notice | None:
    run = _run(runs, data)
    if run is None:
        return None
    if not is_over(run):  # the event precedes the write of the run's end
        raise Unavailable(f"Run {run.name} is archived, but its record has not been updated yet.")
    words = f"Run {run.name} {run.progress.state}" + (f" on {run.asked.drop}" if run.asked.drop else "")
    return _of_run(notice, run, _KINDS[run.progress.state], f"{words}.", {"archive": str(data.get("output", ""))})


def _given_up(runs: Runs, notice: Notice, data: dict[str, Any]) -> Notice | None:
    run = _run(runs, data)
    if run is None:
        return None
    words = {"archive error": run.archiving.error}
    return _of_run(
        notice, run, NoticeKind.FAILED, f"Trainyard could not archive run {run.name}, and stopped trying.", words
    )


def _evicted(runs: Runs, notice: Notice, data: dict[str, Any]) -> Notice | None:
    run = _run(runs, data)
    if run is None:
        return None
    return _of_run(notice, run, NoticeKind.EVICTED, f"Run {run.name} lost its nodes {data.get('evictions')} times.", {})


def _late(runs: Runs, notice: Notice, data: dict[str, Any]) -> Notice | None:
    run = _run(runs, data)
    if run is None:
        return None
    hint = "Let it continue, cancel it, or continue it on more nodes."
    return _of_run(
        notice, run, NoticeKind.LATE, f"Run {run.name} will be late: {data.get('why', '')}", {"what to do": hint}
    )


def _sick(runs: Runs, notice: Notice, data: dict[str, Any]) -> Notice | None:
    run = _run(runs, data)
    if run is None:
        return None
    title = f"Run {run.name} needs attention. {data.get('why', '')}"
    return _of_run(notice, run, NoticeKind.SICK, title, {"what to do": str(data.get("advice", ""))})


def _idle(_: Runs, notice: Notice, data: dict[str, Any]) -> Notice:
    title = f"Cluster {data.get('cluster')} has {_nodes(data.get('nodes'))} and has been idle for an hour."
    return _plain(notice, NoticeKind.IDLE, title, data)


def _budget(_: Runs, notice: Notice, data: dict[str, Any]) -> Notice:
    title = str(data.get("why") or f"The budget of {data.get('project')} is nearly used up.")
    return _plain(notice, NoticeKind.BUDGET, title, {name: value for name, value in data.items() if name != "why"})


def _poison(_: Runs, notice: Notice, data: dict[str, Any]) -> Notice:
    title = f"A message of the queue {data.get('queue')} failed five times and is now in the poison queue."
    hint = "`status` shows it, `admin replay` returns it to its queue when the cause is fixed."
    return _plain(notice, NoticeKind.POISON, title, {"queue": data.get("queue"), "what to do": hint})


def _alias(_: Runs, notice: Notice, data: dict[str, Any]) -> Notice:
    model, alias, after = data.get("model"), data.get("alias"), data.get("after")
    title = f"{model}@{alias} is {model}/{after} now." if after else f"Model {model} no longer has the alias {alias}."
    facts = {"before": data.get("before") or "none", "by": data.get("by"), "why": data.get("why")}
    return _plain(notice, NoticeKind.MODEL, title, facts)


def _lost(_: Runs, notice: Notice, data: dict[str, Any]) -> Notice:
    title = f"Run {data.get('run')} did not become {data.get('model')}'s champion."
    return _plain(notice, NoticeKind.MODEL, title, {"why": data.get("why")})


def _schedule(_: Runs, notice: Notice, data: dict[str, Any]) -> Notice:
    title = f"Schedule {data.get('schedule')} could not start its run: {data.get('why')}"
    facts = {name: value for name, value in data.items() if name not in ("schedule", "why")}
    hint = f"`schedule log {data.get('schedule')}` shows its firings. The schedule tries again at its next firing."
    return replace(
        _plain(notice, NoticeKind.SCHEDULE, title, facts | {"what to do": hint}), route=str(data.get("route", ""))
    )


def _test(_: Runs, notice: Notice, data: dict[str, Any]) -> Notice:
    return _plain(notice, NoticeKind.TEST, "This is a test of a Trainyard subscription.", data)


_MAKERS: dict[str, _Maker] = {
    "RunArchived": _archived,
    "RunGivenUp": _given_up,
    "RunEvicted": _evicted,
    "RunWillBeLate": _late,
    "RunIsSick": _sick,
    "ClusterIdle": _idle,
    "BudgetWarned": _budget,
    "BudgetReached": _budget,
    "GrantUsed": _budget,
    "AliasMoved": _alias,
    "ChallengeLost": _lost,
    "MessagePoisoned": _poison,
    "ScheduleFailed": _schedule,
    "Test": _test,
}


def _run(runs: Runs, data: dict[str, Any]) -> Run | None:
    return find_run(runs, str(data.get("run", "")))


def _plain(notice: Notice, kind: NoticeKind, title: str, facts: dict[str, Any]) -> Notice:
    return Notice(notice.id, kind, title, notice.at, {name: str(value) for name, value in facts.items()})


def _of_run(notice: Notice, run: Run, kind: NoticeKind, title: str, facts: dict[str, str]) -> Notice:
    best = [f"{name} {value:.4g}" for name, value in list(model_metrics(run).items())[:METRICS_TOLD]]
    of_features = [each.notice_facts(run) for each in features() if each.notice_facts]
    run_facts = {
        **{name: value for found in of_features for name, value in found.items()},
        "why": first_line(run) if kind is not NoticeKind.COMPLETED else "",
        "experiment": run.asked.experiment,
        "cluster": f"{run.asked.cluster}, {_nodes(run.asked.nodes)}",
        "took": _duration(run),
        "metrics": ", ".join(best),
        "owner": run.people.owner,
    }
    return Notice(notice.id, kind, title, notice.at, run_facts | facts, run.name, run.asked.route, run.asked.experiment)


def _nodes(count: object) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _duration(run: Run) -> str:
    if run.progress.state not in FINAL:
        return ""  # the time so far says nothing about the run
    return str(timedelta(seconds=round((run.progress.history[-1].at - run.created_at).total_seconds())))
