"""Items that need a person this morning, current runs, and events since yesterday, in one answer of few requests.

A part that can't be read is empty and named in `unknown`: if the workspace is unavailable, the other parts still
answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

from shared.api import status, today_items
from shared.api.records import WaitingRun, waiting_run
from shared.api.today_items import Champion
from shared.clusters.azureml_cache import sight, waiting
from shared.kernel.encode import Json, plain
from shared.kernel.errors import TrainyardError
from shared.kernel.memory import Topic
from shared.money import api as money
from shared.ports import AllPorts
from shared.runs.find_run import find_run
from shared.runs.model import Run, RunState
from shared.runs.ports import RunFilter, Runs
from shared.schedules.ports import Schedules

NEWEST = 100  # runs among which failed and completed ones are found; one request
MOST = 50  # items of each list
CHAMPIONS = 10  # versions that completed runs are compared with; two requests each
SHOWN = timedelta(seconds=5)
TODAY = Topic[Json]("today", SHOWN)
LIVE = (RunState.RUNNING, RunState.QUEUED, RunState.SUBMITTED, RunState.RECEIVED)
T = TypeVar("T")


class NeedsYou(Struct):
    """An item that waits for a person. Its further fields depend on `kind`."""

    kind: Annotated[str, Meta(description="failed, late, rejected, budget, poison or idle.")]
    name: Annotated[str, Meta(description="The run, drop, project, queue or cluster.")]
    why: str
    at: datetime | None
    at_most: Annotated[float | None, Meta(description="What a failed run may cost if it is repeated.")] = None
    spent: float = 0.0
    reserved: float = 0.0
    month: Annotated[float, Meta(description="A project's budget for the month, in dollars.")] = 0.0
    messages: int = 0
    lease: Annotated[str, Meta(description="The lease that holds idle nodes.")] = ""
    nodes: int = 0
    until: datetime | None = None


class RunningToday(Struct):
    run: str
    started_at: datetime | None
    cost: Annotated[float | None, Meta(description="Dollars so far; null if unknown.")]
    at_most: Annotated[float | None, Meta(description="The greatest possible cost; null if no price is known.")]
    done_share: Annotated[float | None, Meta(description="From 0 to 1, of a run with a date or with steps.")]
    epochs: Annotated[int | None, Meta(description="How many epochs the run trains; null if nobody said.")]
    done_by: datetime | None
    late: bool
    headline: str | None


class Rival(Struct):
    """The version or run that a completed run is compared with."""

    name: Annotated[str, Meta(description="A version as model/number, or a run.")]
    value: float
    better: Annotated[bool | None, Meta(description="Whether the run is better; null if equal, or if nobody knows.")]


class CompletedToday(Struct):
    run: str
    at: datetime
    metric: str | None
    value: Annotated[float | None, Meta(description="Of the saved model.")]
    champion: Annotated[Rival | None, Meta(description="The version at the alias of the experiment's model.")]
    before: Annotated[Rival | None, Meta(description="The completed run before it of the same experiment.")]


class MovedToday(Struct):
    model: str
    alias: str
    version: int
    at: datetime
    by: str
    why: str


class StartsNext(Struct):
    schedule: str
    what: Annotated[str, Meta(description="The trainer or template.")]
    at: datetime


class SpentToday(Struct):
    """Dollars for nodes on whole days in UTC."""

    today: float
    yesterday: float


class Today(Struct):
    needs: list[NeedsYou]
    running: list[RunningToday]
    waiting: list[WaitingRun]
    completed: Annotated[list[CompletedToday], Meta(description="Within 24 hours, among the newest 100 runs.")]
    promotions: list[MovedToday]
    spent: SpentToday | None
    next: list[StartsNext]
    unknown: Annotated[dict[str, str], Meta(description="Parts that could not be read, and why.")]
    empty: Annotated[bool, Meta(description="Whether there is no run and no drop yet.")]


@dataclass
class _Reading:
    """Reads one part after another, and records each part that can't be read, with the reason."""

    unknown: dict[str, str] = field(default_factory=dict)

    def part(self, name: str, read: Callable[[], list[T]]) -> list[T]:
        try:
            return read()[:MOST]
        except TrainyardError as exc:
            self.unknown[name] = str(exc)
            return []


def get_today(ports: AllPorts, schedules: Schedules) -> Annotated[Json, Today]:
    """Return the items that need a person, the current runs, and the events since yesterday. At most SHOWN old."""
    return ports.memory.answer(TODAY, ports.clock(), lambda: _today(ports, schedules))


def _today(ports: AllPorts, its_schedules: Schedules) -> Json:
    if error := status.storage_error(ports):
        return _NOTHING | {"unknown": {"storage": str(error)}}
    now, reading = ports.clock(), _Reading()
    newest = reading.part("runs", lambda: [run for run in ports.runs.newest(NEWEST) if run.removed.at is None])
    live = reading.part("live runs", lambda: _live(ports.runs))
    needs = [
        *today_items.failed_runs(newest, now),
        *today_items.late_runs(live),
        *reading.part("drops", lambda: today_items.rejected_drops(ports.drops.rejected(MOST))),
        *reading.part("budgets", lambda: today_items.budgets(money.budgets(ports))),
        *reading.part("queues", lambda: today_items.poison(status.queues(ports)["queues"])),
        *reading.part("leases", lambda: _idle(ports, now)),
    ]
    lists = {
        "needs": needs,
        "running": [today_items.running(run) for run in live if run.progress.state is RunState.RUNNING],
        "waiting": reading.part(
            "clusters", lambda: [waiting_run(run, waiting(ports, run)) for run in live if _waits(run)]
        ),
        "completed": today_items.completed(
            newest, reading.part("champions", lambda: _champions(ports, newest, now)), now
        ),
        "promotions": reading.part("models", lambda: today_items.promotions(ports.models.all(), now)),
        "next": reading.part("schedules", lambda: _next(its_schedules)),
    }
    spent = reading.part("costs", lambda: [_spent(ports, now)])
    return lists | {
        "spent": spent[0] if spent else None,
        "unknown": reading.unknown,
        "empty": not (newest or reading.unknown or ports.drops.listed(limit=1)),
    }


_NOTHING: Json = {"spent": None, "unknown": {}, "empty": False}
_NOTHING |= {name: [] for name in ("needs", "running", "waiting", "completed", "promotions", "next")}


def _live(runs: Runs) -> list[Run]:
    """Return up to MOST live runs of each state, newest first."""
    pages = (runs.page(RunFilter(state=state), MOST).runs for state in LIVE)
    return [run for page in pages for run in page]


def _waits(run: Run) -> bool:
    return run.progress.state is not RunState.RUNNING


def _champions(ports: AllPorts, newest: list[Run], now: datetime) -> list[Champion]:
    """Return the versions at up to CHAMPIONS aliases, the latest moved first, each with the experiment of its run."""
    if not today_items.completed(newest, (), now):
        return []
    found = []
    for model, number in today_items.champion_numbers(ports.models.all(), ports.routes)[:CHAMPIONS]:
        version = ports.models.version(model, number)
        run = find_run(ports.runs, version.run) if version else None
        if version and run:
            found.append(Champion(version, run.asked.experiment))
    return found


def _idle(ports: AllPorts, now: datetime) -> list[Json]:
    leases = [lease for lease in ports.leases.open() if lease.holds(now)]
    return today_items.idle_leased(sight(ports).clusters.values() if leases else (), leases, now)


def _spent(ports: AllPorts, now: datetime) -> Json:
    """Return the dollars of this and the previous day in UTC, as the costs report has them."""
    since = (now - timedelta(days=1)).date().isoformat()
    return today_items.spent(money.get_costs(ports, money.CostsQuery(since=since))["days"], now)


def _next(its_schedules: Schedules) -> list[Json]:
    """Return the firings of schedules within the next week, earliest first."""
    due = sorted((each.next_at, each) for each in its_schedules.all() if each.next_at and not each.paused)
    return [
        {"schedule": each.id, "what": str(each.request.get("trainer") or each.request.get("template") or ""), "at": at}
        for at, each in ((plain(at), each) for at, each in due)
    ]
