"""Decide a run's greatest cost, whether the project can afford the run, and the consequences of a used-up budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median

import msgspec

from shared.jobs.kinds import kind_of
from shared.money.ledger import IDLE_TAIL
from shared.money.model import Account, Quote, Reserved, month_of
from shared.money.policy import Budget
from shared.runs.model import Run
from shared.runs.ports import Refusal

WARNED, REACHED = "BudgetWarned", "BudgetReached"  # events
ALLOWANCE_SECONDS = 1800  # per node: its allocation, and its idle time until it is released
UNSEEN = timedelta(hours=1)  # after this time, a reservation whose run was never recorded (after a crash) is released
_DAY = 86_400
_CENT = 0.005


@dataclass(frozen=True)
class Consequence:
    """A consequence of a budget's state: with `event`, an event to announce; without, runs to cancel.

    `subject` is the subject of the event (a project's month, or a run). Each subject is announced once.
    """

    why: str
    event: str = ""
    subject: str = ""
    cancel: tuple[str, ...] = ()


def quote(run: Run, price: float | None, seconds_before: list[float]) -> Quote:
    """Estimate the run's cost. `seconds_before` are the durations in seconds of earlier runs of this kind.

    The greatest cost covers the time limit plus the allowance, on all nodes; for a pipeline, the sum over its steps. A
    preempted job that restarts does so within its limit.
    """
    if price is None:
        return Quote(why=f"No price is known for the nodes of {run.asked.cluster}.")
    most = _node_seconds(run) * price / 3600
    if not seconds_before:
        return Quote(None, most, price, "No run of this kind has completed yet, so there is no estimate.")
    usual = run.asked.nodes * median(seconds_before) * price / 3600
    return Quote(min(usual, most), most, price)


def most_of_sweep(run: Run, price: float) -> float:
    """Return the greatest cost in dollars of a sweep's trials, each up to the trial's time limit.

    A sweep with a budget costs at most the budget plus the allowance of the trials that run when the budget is reached.
    """
    sweep, hourly = run.asked.request.sweep, run.asked.request.node_count * price / 3600
    if sweep is None:
        raise AssertionError(f"run {run.name} is not a sweep")
    most = sweep.most_trials * hourly * ((run.asked.request.timeout_seconds or _DAY) + ALLOWANCE_SECONDS)
    return min(most, sweep.budget + sweep.at_once * hourly * ALLOWANCE_SECONDS) if sweep.budget else most


def _node_seconds(run: Run) -> float:
    job = run.asked.request
    parts = [each for each in kind_of(job).parts(job) if not each.is_pipeline]
    limit = job.timeout_seconds or _DAY
    if not parts:
        return run.asked.nodes * (limit + ALLOWANCE_SECONDS)
    return sum(
        each.trials * each.job.node_count * ((each.job.timeout_seconds or limit) + ALLOWANCE_SECONDS) for each in parts
    )


def admit(budget: Budget, account: Account, run: Run, cost: Quote, now: datetime) -> Account | Refusal:
    """Reserve the run's greatest cost in the account, or refuse the run. A repeat changes nothing.

    The reservation is at most the budget's limit per run, because a run is ended when it reaches that limit.
    """
    account = of_month(account, now)
    if run.name in account.reserved:
        return account
    if cost.greatest is None:
        return Refusal("no_price", f"Project {account.project} has a budget, so its runs need a price. {cost.why}")
    if budget.run is not None and (cost.estimated or 0.0) > budget.run:
        return Refusal(
            "over_budget",
            f"The run is estimated at ${cost.estimated:.2f}; project {account.project} allows ${budget.run:.2f} a run.",
        )
    most = cost.greatest if budget.run is None else min(cost.greatest, budget.run)
    if budget.month is not None and (refusal := _month_refuses(budget.month, budget, account, most)):
        return refusal
    return replace(account, reserved=account.reserved | {run.name: Reserved(most, now)})


def _month_refuses(amount: float, budget: Budget, account: Account, most: float) -> Refusal | None:
    project, month = f"Project {account.project}", _words(account.month)
    if account.reached_at or account.spent >= amount * budget.refuse / 100:
        used = f"{project} has spent ${account.spent:.2f} of its ${amount:.2f} for {month}"
        return Refusal("over_budget", f"{used}; from {budget.refuse:g} % on, no run starts.")
    if account.committed + most > amount + _CENT:
        left = max(0.0, amount - account.committed)
        reserved = max(0.0, account.committed - account.spent)
        return Refusal(
            "over_budget",
            f"The run may cost ${most:.2f}. {project} has ${left:.2f} left for {month} (${amount:.2f} budget, "
            f"${account.spent:.2f} spent, ${reserved:.2f} reserved by running jobs). Lower timeout_seconds or the "
            "nodes, wait for runs to end, or ask for a larger budget.",
        )
    return None


def of_month(account: Account, now: datetime) -> Account:
    """Return the account in the month of `now`. A new month starts with nothing spent and keeps the runs'
    reservations.
    """
    month = month_of(now)
    if account.month >= month:
        return account
    return Account(account.project, month, reserved=account.reserved)


@dataclass(frozen=True)
class Spent:
    """The ledger's figures of a project: this month's total, and each run's total over all months, with the run's
    end.
    """

    month: float
    runs: Mapping[str, float]
    ended: Mapping[str, datetime]
    live: frozenset[str]


def update_account(account: Account, spent: Spent, now: datetime) -> Account:
    """Return the account updated from the ledger.

    A finished run keeps its reservation while its nodes may idle; then the unused part is released. A live run without
    a reservation, because it began before the budget existed, gets an empty one.
    """
    account = of_month(account, now)
    held = {run: Reserved(0.0, now) for run in spent.live} | account.reserved
    kept = {}
    for run, reserved in held.items():
        ended = spent.ended.get(run)
        patience = IDLE_TAIL if ended else UNSEEN
        if run in spent.live or now - (ended or reserved.at) < patience:
            kept[run] = msgspec.structs.replace(reserved, spent=spent.runs.get(run, reserved.spent), ended=ended)
    return replace(account, spent=spent.month, reserved=kept)


def consequences(budget: Budget, account: Account, now: datetime) -> tuple[Account, list[Consequence]]:
    """Return the consequences of the spending, and the account with the announced consequences and their times."""
    month = f"{account.project}/{_words(account.month)}"
    words = f"Project {account.project} has spent ${account.spent:.2f}"
    marks = _Marks(account.warned_at, account.reached_at)
    marks, outcomes = _judge(budget, budget.month, account.spent, marks, now, Consequence(words, subject=month))
    if any(consequence.cancel for consequence in outcomes):
        live = tuple(run for run, held in account.reserved.items() if held.ended is None)
        outcomes = [replace(c, cancel=live) if c.cancel else c for c in outcomes]
    reserved = dict(account.reserved)
    for run, held in account.reserved.items():
        if held.ended is None:
            about = Consequence(f"Run {run} has cost ${held.spent:.2f}", subject=run, cancel=(run,))
            its, more = _judge(budget, budget.run, held.spent, _Marks(held.warned_at, held.reached_at), now, about)
            reserved[run] = msgspec.structs.replace(held, warned_at=its.warned_at, reached_at=its.reached_at)
            outcomes += more
    return replace(account, warned_at=marks.warned_at, reached_at=marks.reached_at, reserved=reserved), outcomes


@dataclass(frozen=True)
class _Marks:
    warned_at: datetime | None
    reached_at: datetime | None


def _judge(
    budget: Budget, amount: float | None, spent: float, marks: _Marks, now: datetime, about: Consequence
) -> tuple[_Marks, list[Consequence]]:
    """Apply the same three steps to a month's amount or a run's amount: warn, reached, and after the grace period
    cancel.
    """
    outcomes = []
    if amount is None:
        return marks, []
    if marks.warned_at is None and spent >= amount * budget.warn / 100:
        marks = replace(marks, warned_at=now)
        why = f"{about.why}, {budget.warn:g} % of its ${amount:.2f} or more."
        outcomes.append(Consequence(why, WARNED, about.subject))
    if marks.reached_at is None and spent >= amount:
        marks = replace(marks, reached_at=now)
        outcomes.append(Consequence(f"{about.why}, all of its ${amount:.2f}.", REACHED, about.subject))
    if marks.reached_at and now - marks.reached_at >= timedelta(seconds=budget.grace_seconds):
        outcomes.append(Consequence(f"{about.why}, all of its ${amount:.2f}.", cancel=about.cancel or ("*",)))
    return marks, outcomes


def _words(month: str) -> str:
    return f"{month[:4]}-{month[4:]}"
