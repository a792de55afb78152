"""The reactions to facts: for each stated fact, the functions to run, in order.

Each reaction may run twice, because a repeat of a step that crashed states its fact again. No reaction is the only way
to its effect: the reconcile and scaling timers repeat an archive, a submission and a check of a cluster, and the
scaling timer also charges what the nodes cost. When the Event Grid topic refuses an event of ours, the event is queued.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shared.clusters import checks
from shared.clusters import facts as clusters
from shared.clusters import keep_warm as warm
from shared.clusters.ports import ClusterPorts
from shared.drops import facts as drops
from shared.drops import record_run as recording
from shared.events import facts as messages
from shared.events.announce import announce, queue_notice
from shared.events.ports import EventPorts
from shared.jobs.ports import WorkspacePorts
from shared.kernel.facts import Fact
from shared.kernel.ports import StoragePorts
from shared.models import facts as models
from shared.models.challenge import is_challenger
from shared.models.messages import Challenge
from shared.money import facts as money
from shared.notices.decide import crossed, is_idle_too_long
from shared.ports import AllPorts
from shared.removals import remove
from shared.removals.ports import RemovalPorts
from shared.runs import data
from shared.runs import facts as runs
from shared.runs.features import features
from shared.runs.model import Run
from shared.runs.ports import RunPorts
from shared.runs.progress.transitions import ask_for_archive, ask_for_submission
from shared.runs.results import archive as archives
from shared.schedules import facts as schedules


def submit(ports: StoragePorts, fact: runs.RunRecorded) -> None:
    ask_for_submission(ports.queues, fact.run)


def announce_submitted(ports: EventPorts, fact: runs.RunSubmitted) -> None:
    run = fact.run
    announce(ports, "RunSubmitted", run.name, {"run": run.name, "drop": run.asked.drop, "cluster": run.asked.cluster})


def compare_data(ports: RunPorts, fact: runs.RunAdvances) -> Run:
    """Compare the drop's data with the data that the run was made for, when its jobs gain or lose nodes and when it
    ends.
    """
    return data.compare_at_step(ports, fact.run, fact.moved)


def judge_data(ports: RunPorts, fact: runs.RunBeingArchived) -> Run:
    """Give the final verdict on the run's data, which may take minutes."""
    return data.verdict_at_end(ports, fact.run)


def archive_at_once(ports: RunPorts, fact: runs.RunAdvances) -> Run:
    """Archive a small run before the run's row records the end."""
    return archives.archive_at_once(ports, fact.run) if fact.archives else fact.run


def archive(ports: StoragePorts, fact: runs.RunEnded) -> None:
    """Queue the archive, unless the run's last step already wrote the archive."""
    if fact.run.archive.at is None:
        ask_for_archive(ports.queues, fact.run.name)


def keep_warm(ports: ClusterPorts, fact: runs.RunEnded) -> None:
    """Make the lease that the run requested, if the run ever had a job."""
    if fact.run.asked.keep_warm_seconds and fact.run.jobs.job and fact.run.asked.cluster:
        warm.keep_warm(ports, fact.run)


def check_cluster(ports: ClusterPorts, fact: runs.RunStarted | runs.RunEnded) -> None:
    """Queue a check of the run's cluster, because nodes came into use or became free. A sweep has no cluster."""
    if fact.run.asked.cluster:
        checks.queue_check_soon(ports, fact.run.asked.cluster)


def announce_archived(ports: EventPorts, fact: runs.RunArchived) -> None:
    """Announce the archived run. Notices wait until the run's row records the archive."""
    run = fact.run
    data = {"run": run.name, "state": run.progress.state, "output": fact.output}
    announce(ports, "RunArchived", run.name, data)
    queue_notice(ports, "RunArchived", run.name, data, fact.seconds)


def notify_of_evictions(ports: EventPorts, fact: runs.RunLosesNodes) -> None:
    """Notify once, when the run's evictions become frequent."""
    if crossed(fact.before, fact.after):
        queue_notice(ports, "RunEvicted", fact.run.name, {"run": fact.run.name, "evictions": fact.after})


def notify_of_lost_archive(ports: EventPorts, fact: runs.ArchiveGivenUp) -> None:
    queue_notice(ports, "RunGivenUp", fact.run.name, {"run": fact.run.name})


def announce_sealed(ports: EventPorts, fact: drops.DropSealed) -> None:
    drop = fact.drop
    announce(ports, "DropSealed", f"{drop.key}/{drop.generation}", {"drop": str(drop.key), "run": drop.run})


def finish_removal(ports: RemovalPorts, fact: drops.DropWaitsForRemoval) -> None:
    """Resend the removal for which the drop waits."""
    remove.finish(ports, fact.drop)


def announce_at_zero(ports: EventPorts, fact: clusters.ClusterAtZero) -> None:
    name = fact.cluster.name
    announce(ports, "ClusterAtZero", f"{name}/{fact.at.isoformat()}", {"cluster": name})


def notify_of_idleness(ports: EventPorts, fact: clusters.ClusterIdles) -> None:
    """Notify once per idle period, when the period has lasted too long."""
    if is_idle_too_long(fact.at - fact.since):
        name, since = fact.cluster.name, fact.since.isoformat()
        queue_notice(
            ports, "ClusterIdle", f"{name}/{since}", {"cluster": name, "nodes": fact.cluster.nodes, "idle since": since}
        )


def notify_of_budget(ports: EventPorts, fact: money.BudgetWarned | money.BudgetReached) -> None:
    data = {"project": fact.project, "why": fact.why}
    announce(ports, type(fact).__name__, fact.subject, data)
    queue_notice(ports, type(fact).__name__, fact.subject, data)


def announce_alias(ports: EventPorts, fact: models.AliasMoved) -> None:
    """Announce the move under its unique place in the model's history."""
    line = fact.change
    data = {
        "model": line.model, "alias": line.alias, "before": line.before, "after": line.after, "by": line.by,
        "why": line.why,
    }  # fmt: skip
    announce(ports, "AliasMoved", f"{line.model}/{line.order}", data)
    queue_notice(ports, "AliasMoved", f"{line.model}/{line.order}", data)


def notify_of_lost_challenge(ports: EventPorts, fact: models.ChallengeLost) -> None:
    queue_notice(ports, "ChallengeLost", fact.run, {"model": fact.model, "run": fact.run, "why": fact.why})


def challenge(ports: WorkspacePorts, fact: runs.RunArchived) -> None:
    """Queue a challenge if the run's route names a model. The run's row already says that the run is archived."""
    if is_challenger(ports.routes, fact.run):
        ports.queues.send(Challenge(fact.run.name), fact.seconds)


def notify_of_poison(ports: EventPorts, fact: messages.MessagePoisoned) -> None:
    """Notify once per poison message. Messages with equal texts count as one."""
    queue_notice(ports, "MessagePoisoned", f"{fact.queue}/{fact.digest}", {"queue": fact.queue})


def notify_of_failed_schedule(ports: EventPorts, fact: schedules.ScheduleFailed) -> None:
    """Notify once per firing."""
    data = {"schedule": fact.schedule.id, "why": fact.firing.why, "at": fact.firing.at.isoformat()}
    data |= {"owner": fact.schedule.owner, "route": fact.schedule.route}
    queue_notice(ports, "ScheduleFailed", f"{fact.schedule.id}/{fact.firing.order}", data)


IN_THE_SAME_WRITE: dict[type[Fact], tuple[Callable[[AllPorts, Any], Run], ...]] = {
    runs.RunAdvances: (compare_data, archive_at_once),
    runs.RunBeingArchived: (judge_data,),
}
_OF_EVERY_RUN: dict[type[Fact], tuple[Callable[[AllPorts, Any], None], ...]] = {
    drops.DropComplete: (recording.record_run,),
    drops.DropSealed: (announce_sealed,),
    drops.DropWaitsForRemoval: (finish_removal,),
    runs.RunRecorded: (submit,),
    runs.RunSubmitted: (announce_submitted,),
    runs.RunStarted: (check_cluster,),
    runs.CancelCarriedOut: (),
    runs.RunLosesNodes: (notify_of_evictions,),
    runs.RunReconciled: (),
    runs.RunEnded: (archive, keep_warm, check_cluster),
    runs.RunArchived: (announce_archived, challenge),
    runs.ArchiveGivenUp: (notify_of_lost_archive,),
    clusters.ClusterAtZero: (announce_at_zero,),
    clusters.ClusterIdles: (notify_of_idleness,),
    money.BudgetWarned: (notify_of_budget,),
    money.BudgetReached: (notify_of_budget,),
    models.AliasMoved: (announce_alias,),
    models.ChallengeLost: (notify_of_lost_challenge,),
    schedules.ScheduleFailed: (notify_of_failed_schedule,),
    messages.MessagePoisoned: (notify_of_poison,),
}


def _with_features() -> dict[type[Fact], tuple[Callable[[AllPorts, Any], None], ...]]:
    """Return the table: the reactions of every run first, then the features' reactions, in the order of FEATURES."""
    table = dict(_OF_EVERY_RUN)
    for feature in features():
        for fact, more in feature.reactions.items():
            table[fact] = (*table.get(fact, ()), *more)
    return table


REACTIONS = _with_features()


def written_with(ports: AllPorts, fact: runs.RunAdvances | runs.RunBeingArchived) -> Run:
    """Return the run with every change for the fact's write. Each reaction sees the earlier changes."""
    of_features = (change for feature in features() for change in feature.in_the_same_write.get(type(fact), ()))
    for reaction in (*IN_THE_SAME_WRITE[type(fact)], *of_features):
        fact = replace(fact, run=reaction(ports, fact))
    return fact.run


def react(ports: AllPorts, fact: Fact) -> None:
    """Run every reaction to the fact, in order. Raises the first error; a repeat starts with the first reaction."""
    for reaction in REACTIONS[type(fact)]:
        reaction(ports, fact)
