"""One check of a run with a deadline: the progress, the nodes to hold, and the resulting steps.

Each check queues the message of the next check. Lost nodes and new nodes trigger an early check. The hourly reconcile
restarts the chain of checks if it was lost.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from shared.clusters.model import Cluster
from shared.clusters.ports import ClusterPorts, Clusters
from shared.deadlines.changes_of_nodes import PATIENCE, measured
from shared.deadlines.decide import choose, is_affordable, keeper_pays
from shared.deadlines.facts import RunWillBeLate
from shared.deadlines.holding import HeldNodes
from shared.deadlines.kinds import holding
from shared.deadlines.messages import CheckPace
from shared.deadlines.model import Date, Pace, span
from shared.deadlines.outlook import plan_for, terms_of
from shared.deadlines.plan import HOUR, NodeChoice, Plan, WorkLeft
from shared.deadlines.pools import LIKELY, prospect
from shared.deadlines.sightings import with_sightings
from shared.jobs.ports import WorkspacePorts
from shared.kernel.errors import TrainyardError
from shared.kernel.versioned import Stored
from shared.runs.decide import is_over
from shared.runs.model import Run
from shared.runs.node_use import worked_seconds
from shared.runs.progress.workload import NextStep
from shared.runs.progress.workloads import workload
from shared.runs.views.downsample import Point
from shared.runs.views.metrics import EPOCH, Cursor, Series, since

log = logging.getLogger(__name__)

DONE = "done"  # the metric with which a trainer reports the completed share of its work, from 0 to 1
EARLY = 0.1  # share of the work; before it, the pace is not meaningful
LARGER = 1.02  # factor above the stated work that is more than a rounding error


def plan_of(run: Run, date: Date) -> Plan:
    """The run's plan. A run has one plan from start to end."""
    due = date.due
    left = (due.done_by - run.created_at).total_seconds()
    low, dedicated = due.low_price * run.asked.nodes, due.dedicated_price * run.asked.nodes
    terms = terms_of(low, dedicated, due.change_seconds, left, holding(run).overlaps, date.pace.change_measured)
    return plan_for(terms, due.pool, left, left - due.takes_seconds)


def check_pace(ports: ClusterPorts, message: CheckPace) -> None:
    """Choose the nodes of the run until the next check, record the choice, and act on it.

    A message with the row's token belongs to the run's chain of checks and queues its successor. A message with an
    older token is a repeat and does nothing. Raises Changed if the row changed meanwhile: the message is then delivered
    again.
    """
    name, token = message.paced, message.token
    stored = ports.runs.get(name)
    run, now, date = stored.value, ports.clock(), stored.value.feature(Date)
    if date is None or is_over(run) or run.cancel.asked_at is not None or token not in (None, date.pace.next_look):
        return
    step = plan_of(run, date).terms.step
    following = date.pace.next_look if token is None else now.isoformat()
    if run.jobs.job:
        _steer(ports, stored, date, following)
    elif token is not None:  # the run is being submitted
        ports.runs.update(stored, run.having(replace(date, pace=replace(date.pace, next_look=following))))
    if token is not None:
        ports.queues.send(CheckPace(name, following), step)


def _steer(ports: ClusterPorts, stored: Stored[Run], date: Date, following: str) -> None:
    run, now = stored.value, ports.clock()
    series, clusters = _series(ports, run), _clusters(ports.clusters)
    date = _with_change(run, date, series)
    date = with_sightings(date, clusters, holding(run).nodes(run, date, now).requests, now)
    idle = {name: clusters[name].idle_nodes if name in clusters else 0 for name in date.due.low_clusters}
    roomy = max(idle, key=lambda name: idle[name])
    pace = judge(run, date, _share(run, series), idle[roomy], now)
    date = replace(date, pace=replace(pace, next_look=following))
    steps = holding(run).steer(run, date, pace.holds or NodeChoice.NONE, roomy, now)
    if pace.late_since == now and pace.done_at:
        ports.happened(RunWillBeLate(run, pace.done_at, pace.holds_why))
    after = ports.runs.update(stored, steps.run.having(date))
    for job in steps.to_cancel:
        ports.jobs.cancel(job)
    sent = workload(run).act(ports, after.value, NextStep(after.value, run.progress.state))
    if (submitted := workload(run).after_submission(after.value, sent)) != after.value:
        ports.runs.update(after, submitted)


def judge(run: Run, date: Date, told: float | None, free: int, now: datetime) -> Pace:
    """The run's progress, and the nodes to hold.

    `told`: the completed share according to the run's metrics, None without them. `free`: low-priority nodes that are
    up and idle.
    """
    due, pace, plan, nodes = date.due, date.pace, plan_of(run, date), holding(run).nodes(run, date, now)
    worked = worked_seconds(workload(run).uses(run, now), run.asked.nodes)
    share = max(pace.done_share, min(1.0, told if told is not None else worked / due.takes_seconds))
    takes, worked = due.takes_seconds, max(0.0, worked - pace.lost_seconds)
    if told is not None and told >= max(EARLY, pace.done_share) and worked / told > takes * LARGER:
        takes = worked / told
    now_done = share if told is None else min(1.0, told)  # less than before while lost steps are repeated
    work, left = takes * (1 - now_done), (due.done_by - now).total_seconds()
    standing = replace(_standing(run, date, nodes, free, work, left, now), money=_money_left(run, date, now))
    hold = choose(plan, standing)
    if hold in (NodeChoice.NONE, NodeChoice.LOW) and _one_keeps(run, date, nodes, plan, standing):
        hold = NodeChoice.ONE if is_affordable(plan.terms, standing, NodeChoice.ONE, run.asked.nodes) else hold
    done_at = now + timedelta(seconds=work + (0.0 if nodes.works else date.change_seconds))
    late = done_at > due.done_by
    return replace(
        pace,
        done_share=share,
        line_share=max(0.0, 1 - max(0.0, left - plan.terms.reserve) / takes),
        holds=hold,
        holds_why=_why(hold, standing, plan, late, done_at),
        done_at=done_at,
        paced_at=now,
        late_since=pace.late_since or (now if late else None),
    )


def _money_left(run: Run, date: Date, now: datetime) -> float:
    """The dollars left for the rest of the run, within the announced cost.

    A wait for nodes counts as paid for the usual time at most: without nodes, waiting costs nothing. Runs of a version
    that announced less than dedicated nodes may cost have no limit.
    """
    due, nodes = date.due, run.asked.nodes
    if due.cost_at_worst < due.dedicated_price * nodes * (due.takes_seconds + 2 * due.change_seconds) / HOUR:
        return math.inf
    paid = 0.0
    for use in workload(run).uses(run, now):
        price = due.dedicated_price if use.cluster == due.dedicated_cluster else due.low_price
        waits = sum(s.nodes * min((s.end - s.begin).total_seconds(), date.change_seconds) for s in use.waited)
        paid += price * (waits + sum(s.nodes * (s.end - s.begin).total_seconds() for s in use.ran)) / HOUR
    return due.cost_at_worst - paid


def _one_keeps(run: Run, date: Date, nodes: HeldNodes, plan: Plan, now: WorkLeft) -> bool:
    """Whether one dedicated node should keep the members' state, until returning members have joined it."""
    joining = date.pace.holds is NodeChoice.ONE and nodes.low_runs and now.age < date.change_seconds
    pays = keeper_pays(plan.terms, date.due.pool, now.age, run.asked.nodes, date.pace.pause_measured)
    return joining or (nodes.in_danger and pays)


def _standing(run: Run, date: Date, nodes: HeldNodes, free: int, work: float, left: float, now: datetime) -> WorkLeft:
    """The inputs for the plan. Awaited nodes count as available while they may come."""
    age, change = (now - nodes.low_since).total_seconds(), date.change_seconds
    coming = nodes.on_low and not nodes.low_runs and _may_come(run, date, age, now)
    available = nodes.low_runs or coming or (not nodes.on_low and free >= run.asked.nodes)
    replaced = nodes.on_low and nodes.low_runs and age >= change
    starting = 0.0 if nodes.works else max(0.0, change - age)
    return WorkLeft(left, work, _held(nodes, available, replaced), available, age, starting)


def _may_come(run: Run, date: Date, age: float, now: datetime) -> bool:
    """Whether the run counts on the low-priority nodes that it awaits: if any of its clusters is likely to have some.

    A run that can't ask while dedicated nodes work counts on them for twice the usual time in any case.
    """
    if not holding(run).overlaps and age < PATIENCE * date.change_seconds:
        return True
    at, sightings, change = now.timestamp(), date.pace.sightings, date.change_seconds
    models = date.due.models.items()
    return any(prospect(model, sightings.get(name), at, change).chance >= LIKELY for name, model in models)


def _held(nodes: HeldNodes, available: bool, replaced: bool) -> NodeChoice:
    """`replaced`: the low-priority nodes work, even if dedicated nodes are still held."""
    if nodes.dedicated:
        return NodeChoice.BOTH if replaced else NodeChoice.DEDICATED
    return NodeChoice.LOW if available else NodeChoice.NONE


def _why(hold: NodeChoice, now: WorkLeft, plan: Plan, late: bool, done_at: datetime) -> str:
    spare = f"{span(max(0.0, now.slack))} more than it needs"
    if late:
        return f"The work is larger than stated: on dedicated nodes it will be done at {done_at:%Y-%m-%d %H:%M} UTC."
    if hold is NodeChoice.DEDICATED and now.slack < plan.terms.reserve + plan.terms.step:
        return f"Dedicated nodes: only {spare}, so nothing else meets the date."
    if hold is NodeChoice.DEDICATED:
        return f"Dedicated nodes: waiting for low-priority ones is expected to cost more. It has {spare}."
    if hold is NodeChoice.ONE:
        return f"One dedicated node keeps the state until low-priority ones are back: it has {spare}."
    if hold is NodeChoice.NONE or not now.available:
        return f"It waits for low-priority nodes: it has {spare}."
    return f"Low-priority nodes, while there are some: it has {spare}."


def _series(ports: WorkspacePorts, run: Run) -> Series:
    """The metrics of progress; empty if unreadable."""
    try:
        return since(ports, run, Cursor(), f"{DONE},{EPOCH}")
    except TrainyardError as exc:
        log.warning("run %s: how far it is can't be read: %s", run.name, exc)
        return {}


def _with_change(run: Run, date: Date, series: Series) -> Date:
    """The deadline with the measured times of the changes of nodes until now."""
    changes = holding(run).changes(run, date)
    rows = [(step, time) for step, _, time in series.get(DONE) or series.get(EPOCH) or [] if time is not None]
    change, pause, lost = measured(date.due.change_seconds, changes.waits, changes.joined, rows)
    pace = replace(date.pace, change_measured=change, pause_measured=pause, lost_seconds=lost)
    return replace(date, pace=pace)


def _share(run: Run, series: Series) -> float | None:
    """The completed share: from the metric `done`, else from the parameter `epochs`; None without both."""
    if series.get(DONE):
        return max(0.0, series[DONE][-1][1] or 0.0)
    epochs = run.asked.parameters.get("epochs")
    return share_of_epochs(series.get(EPOCH, []), epochs) if isinstance(epochs, int) and epochs > 0 else None


def share_of_epochs(points: Sequence[Point], epochs: int) -> float | None:
    """The completed share of `epochs`, from the epoch at each step; None before the first epoch has ended."""
    steps = [(step, epoch) for step, epoch, _ in points if epoch is not None]
    if not steps or steps[-1][1] == steps[0][1]:
        return None
    (first, base), (last, epoch) = steps[0], steps[-1]
    began = next(step for step, at in steps if at == epoch)
    of_one = (began - first) / (epoch - base)
    return min(1.0, (epoch - base + (last - began) / of_one) / epochs) if of_one > 0 else None


def _clusters(clusters: Clusters) -> dict[str, Cluster]:
    try:
        return {each.name: each for each in clusters.list()}
    except TrainyardError:
        return {}
