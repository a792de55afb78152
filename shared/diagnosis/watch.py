"""Check a running run once a minute while somebody views it, and record its problems (decision 106).

A run is viewed if somebody reads its record, subscribes to notices of the kind `sick`, or sets `on_hang` on the route.
A check sends one request for the run's log. The checks read the nodes' measurements each minute while somebody reads
the record; otherwise once the log is silent, and every five minutes.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import islice

from shared.diagnosis.facts import RunIsSick
from shared.diagnosis.failed_run import trainers_causes
from shared.diagnosis.health import EACH, RunHealth
from shared.diagnosis.messages import CheckHealth, WatchRun
from shared.diagnosis.next_steps import while_running
from shared.diagnosis.observed import Observed
from shared.diagnosis.on_hang import acted_on, end
from shared.diagnosis.own_causes import live_ailments
from shared.jobs.model import JobFolderPart
from shared.jobs.ports import Jobs
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.errors import NotFound
from shared.kernel.memory import Topic
from shared.kernel.storage import Blobs
from shared.kernel.versioned import Stored
from shared.runs.facts import RunReconciled, RunStarted, RunViewed
from shared.runs.features import ailments as of_features
from shared.runs.features import node_pulses
from shared.runs.model import Run, RunState
from shared.runs.ports import RunPorts
from shared.runs.progress.workloads import workload
from shared.runs.pulse import NodePulse, Pulse

READ = 256 << 10  # bytes of the log per check
MEASURED_EACH = 5  # checks, while nobody reads the record
SILENT = timedelta(seconds=30)
RANKS_LISTED = 1000
GONE = timedelta(minutes=5)  # a node that was not measured for this time, while others were, has left the run
SUBSCRIBED = Topic[bool]("whether anyone wants notices of sick runs", EACH)
VIEWS = Topic[bool]("looks at runs that were passed on", timedelta(minutes=4), most=1000)


def begin_checks(ports: RunPorts, fact: RunStarted | RunReconciled) -> None:
    """Start the checks of the run, if its route or a subscription demands them."""
    run, its = fact.run, fact.run.feature(RunHealth) or RunHealth()
    if _can_be_checked(run) and not its.is_checked(ports.clock()) and is_wanted(ports, run):
        ports.queues.send(WatchRun(run.name))


def pass_on_view(ports: RunPorts, fact: RunViewed) -> None:
    """Report that somebody views the run, so that it is checked. A process reports a view once in four minutes."""
    run = fact.run
    if not _can_be_checked(run):
        return

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
    """Record the view, and start a chain of checks unless one is active. An ended run stays unchanged."""

    def note(stored: Stored[Run]) -> None:
        run, now = stored.value, ports.clock()
        before = run.feature(RunHealth) or RunHealth()
        if not _can_be_checked(run):
            return
        health = before.viewed(now) if message.viewed else before
        begins = not before.is_checked(now)
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

    The chain ends when the run is not running, when a newer chain starts, or when nobody views the run any more.
    """
    try:
        stored = ports.runs.get(message.checked)
    except NotFound:
        return
    run, now = stored.value, ports.clock()
    before = run.feature(RunHealth) or RunHealth()
    if not _can_be_checked(run) or before.chain != message.chain:
        return
    if not before.is_viewed(now) and not is_wanted(ports, run):
        ports.runs.update(stored, run.having(before.ended()))
        return
    observed = observe(ports.jobs, ports.blobs, run, Observed.of(message.observed))
    pulse = observed.pulse(workload(run).nodes_changed_at(run), now, ())
    pulse = replace(pulse, nodes=_nodes(ports, run, before, pulse, observed.checks))
    from shared.diagnosis.live import ailments  # its patterns are compiled on first use

    own = live_ailments(trainers_causes(ports.routes, ports.trainers, run), pulse.text)
    found = [
        replace(each, advice=while_running(run, each)) for each in (*ailments(pulse), *own, *of_features(run, pulse))
    ]
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


def observe(jobs: Jobs, blobs: Blobs, run: Run, before: Observed) -> Observed:
    """Send one request for the log: read the new bytes, or list the logs of all ranks of one of the run's jobs."""
    kind = workload(run)
    before = replace(before, changed=kind.nodes_changed_at(run).timestamp())
    if not before.wants_list:
        return before.read(blobs.grown(before.container, before.log, before.at, READ))
    names = sorted(kind.running_jobs(run)) or [run.name]
    job = names[before.checks % len(names)]
    number = next((number for number, name in kind.jobs(run).items() if name == job), 0)
    try:
        place = jobs.folder(job).inside(JobFolderPart.LOGS)
    except NotFound:  # a workspace without the datastore of the logs
        return before.listed("", {})
    logs = {}
    for blob in islice(blobs.list(place), RANKS_LISTED):
        rank = jobs.rank_of(blob.name.removeprefix(place.prefix))
        if rank is not None and blob.last_modified is not None:
            logs[rank + RANKS_LISTED * number] = (blob.name, blob.size, blob.last_modified)
    return before.listed(place.container, logs)


def _nodes(ports: RunPorts, run: Run, health: RunHealth, pulse: Pulse, checks: int) -> tuple[NodePulse, ...]:
    """Return the measurements of the nodes, if it is time to read them."""
    asks = health.is_viewed(ports.clock()) or pulse.silence >= SILENT or checks % MEASURED_EACH == 0
    found = node_pulses(ports, run) if asks else ()
    newest = max((node.at for node in found), default=pulse.now)
    return tuple(node for node in found if newest - node.at <= GONE)


def _can_be_checked(run: Run) -> bool:
    is_running = run.progress.state is RunState.RUNNING and run.cancel.asked_at is None
    return is_running and workload(run).has_own_nodes
