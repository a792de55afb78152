"""Check a running run once a minute, without a viewer: the chain of messages for subscriptions and for `on_hang`.

A check sends one request for the run's log. The checks read the nodes' measurements once the log is silent, and every
five minutes; each minute while somebody reads the record. Runs without a chain are checked by the answers to their
viewers (viewed.py, decision 106).
"""

from __future__ import annotations

from datetime import timedelta

from shared.diagnosis.facts import RunIsSick
from shared.diagnosis.health import EACH, RunHealth
from shared.diagnosis.messages import CheckHealth, WatchRun
from shared.diagnosis.on_hang import acted_on, end
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.errors import NotFound
from shared.kernel.memory import Topic
from shared.kernel.versioned import Stored
from shared.runs.facts import RunReconciled, RunStarted
from shared.runs.model import Run, RunState
from shared.runs.ports import RunPorts
from shared.runs.progress.workloads import workload

SUBSCRIBED = Topic[bool]("whether anyone wants notices of sick runs", EACH)
VIEWS = Topic[bool]("looks at runs that were passed on", timedelta(minutes=4), most=1000)


def can_be_checked(run: Run) -> bool:
    """Return whether the run is running, on nodes of its own."""
    is_running = run.progress.state is RunState.RUNNING and run.cancel.asked_at is None
    return is_running and workload(run).has_own_nodes


def begin_checks(ports: RunPorts, fact: RunStarted | RunReconciled) -> None:
    """Start the checks of the run, if its route or a subscription demands them; or remove ailments that nobody has
    confirmed for a long time.
    """
    run, its = fact.run, fact.run.feature(RunHealth) or RunHealth()
    if not can_be_checked(run) or its.is_checked(now := ports.clock()):
        return
    if its.is_stale(now) or is_wanted(ports, run):
        ports.queues.send(WatchRun(run.name))


def pass_on_view(ports: RunPorts, run: Run) -> None:
    """Report to the chain that somebody views the run. A process reports a view once in four minutes."""

    def send() -> bool:
        ports.queues.send(WatchRun(run.name, viewed=True))
        return True

    ports.memory.answer(VIEWS, ports.clock(), send, run.name)


def is_wanted(ports: RunPorts, run: Run) -> bool:
    """Return whether the run's route or a subscription demands checks, even if nobody reads the run's record."""
    route, audience = ports.routes.get(run.asked.route), ports.audience
    if route is not None and route.on_hang:
        return True
    return audience is not None and ports.memory.answer(SUBSCRIBED, ports.clock(), lambda: audience.wants("sick"))


def watch_run(ports: RunPorts, message: WatchRun) -> None:
    """Record the view, remove stale ailments, and start a chain of checks if it is wanted and none is active. An ended
    run stays unchanged.
    """

    def note(stored: Stored[Run]) -> None:
        run, now = stored.value, ports.clock()
        before = run.feature(RunHealth) or RunHealth()
        if not can_be_checked(run):
            return
        health = before.viewed(now) if message.viewed else before
        health = health.ended() if health.is_stale(now) else health
        begins = not before.is_checked(now) and is_wanted(ports, run)
        if begins:
            health = health.begun(ports.new_token(), now)
        if health != before:
            ports.runs.update(stored, run.having(health))
        if begins:
            ports.queues.send(CheckHealth(run.name, health.chain))

    try:
        compare_and_set(ports.clock, f"Run {message.watched}", lambda: ports.runs.get(message.watched), note)
    except NotFound:
        return


def check_health(ports: RunPorts, message: CheckHealth) -> None:
    """Read the run's log and nodes, record the problems, act as the route demands, and queue the next check.

    The chain ends when the run is not running, when a newer chain starts, or when nobody demands it any more.
    """
    try:
        stored = ports.runs.get(message.checked)
    except NotFound:
        return
    run, now = stored.value, ports.clock()
    before = run.feature(RunHealth) or RunHealth()
    if not can_be_checked(run) or before.chain != message.chain:
        return
    if not is_wanted(ports, run):
        ports.runs.update(stored, run.having(before.ended()))
        return
    from shared.diagnosis.examine import observe, problems  # not at a cold start
    from shared.diagnosis.observed import Observed

    observed = observe(ports.jobs, ports.blobs, run, Observed.of(message.observed))
    found = problems(ports, run, observed, before.is_viewed(now))
    health = before.checked(found, now)
    health = acted_on(ports.routes.get(run.asked.route), health, now)
    for ailment in health.new_since(before):
        ports.happened(RunIsSick(run, ailment))
    if health != before:
        ports.runs.update(stored, run.having(health))
    if health.acted_on and health.acted_on != before.acted_on:
        end(ports, run, health)
        return
    ports.queues.send(CheckHealth(run.name, message.chain, observed.carried()), EACH.total_seconds())
