"""What follows from what happened: for each fact that a noun states, all that it causes, in order.

Each of these may run twice, since a fact is stated again by whoever repeats a step that died. None of them is the only
way to its end: an archive, a submission and a look at a cluster come again by the reconcile timer and the sweep, which
also charge what the nodes cost. An event of our own is queued if the topic doesn't take it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shared.clusters import facts as clusters
from shared.clusters import keep_warm as warm
from shared.clusters import look
from shared.drops import facts as drops
from shared.drops import record_run as recording
from shared.events import facts as messages
from shared.events.announce import announce, tell
from shared.kernel.facts import Fact
from shared.models import facts as models
from shared.models.challenge import is_challenger
from shared.models.messages import Challenge
from shared.money import facts as money
from shared.notices.decide import crossed, is_idle_too_long
from shared.ports import AllPorts
from shared.runs import data
from shared.runs import facts as runs
from shared.runs.features import features
from shared.runs.model import Run
from shared.runs.progress.transitions import ask_for_archive, ask_for_submission
from shared.runs.results import archive as archives
from shared.schedules import facts as schedules


def submit(ports: AllPorts, fact: runs.RunRecorded) -> None:
    ask_for_submission(ports.queues, fact.run)


def announce_submitted(ports: AllPorts, fact: runs.RunSubmitted) -> None:
    run = fact.run
    announce(ports, "RunSubmitted", run.name, {"run": run.name, "drop": run.asked.drop, "cluster": run.asked.cluster})


def compare_data(ports: AllPorts, fact: runs.RunTakesStep) -> Run:
    """Whether it trains, or trained, on the data that it was made for."""
    return data.compare_at_step(ports, fact.run, fact.moved)


def judge_data(ports: AllPorts, fact: runs.RunBeingArchived) -> Run:
    """The last word on its data, which may take minutes."""
    return data.verdict_at_end(ports, fact.run)


def archive_at_once(ports: AllPorts, fact: runs.RunTakesStep) -> Run:
    """A small run's archive is there when its row says that it is over."""
    return archives.archive_at_once(ports, fact.run) if fact.archives else fact.run


def archive(ports: AllPorts, fact: runs.RunEnded) -> None:
    """A run that was archived by its last step needs no other."""
    if fact.run.archive.at is None:
        ask_for_archive(ports.queues, fact.run.name)


def keep_warm(ports: AllPorts, fact: runs.RunEnded) -> None:
    """The lease that it asked for, if it ever had a job."""
    if fact.run.asked.keep_warm_seconds and fact.run.jobs.job and fact.run.asked.cluster:
        warm.keep_warm(ports, fact.run)


def look_at_cluster(ports: AllPorts, fact: runs.RunStarted | runs.RunEnded) -> None:
    """Nodes came into use, or are free. A sweep has none."""
    if fact.run.asked.cluster:
        look.ask_for_look_soon(ports, fact.run.asked.cluster)


def announce_archived(ports: AllPorts, fact: runs.RunArchived) -> None:
    """Notices wait for the row that says so."""
    run = fact.run
    data = {"run": run.name, "state": run.progress.state, "output": fact.output}
    announce(ports, "RunArchived", run.name, data)
    tell(ports, "RunArchived", run.name, data, fact.seconds)


def tell_of_evictions(ports: AllPorts, fact: runs.RunLosesNodes) -> None:
    """Once, when it has become often."""
    if crossed(fact.before, fact.after):
        tell(ports, "RunEvicted", fact.run.name, {"run": fact.run.name, "evictions": fact.after})


def tell_of_lost_archive(ports: AllPorts, fact: runs.ArchiveGivenUp) -> None:
    tell(ports, "RunGivenUp", fact.run.name, {"run": fact.run.name})


def announce_sealed(ports: AllPorts, fact: drops.DropSealed) -> None:
    drop = fact.drop
    announce(ports, "DropSealed", f"{drop.key}/{drop.generation}", {"drop": str(drop.key), "run": drop.run})


def announce_at_zero(ports: AllPorts, fact: clusters.ClusterAtZero) -> None:
    name = fact.cluster.name
    announce(ports, "ClusterAtZero", f"{name}/{fact.at.isoformat()}", {"cluster": name})


def tell_of_idleness(ports: AllPorts, fact: clusters.ClusterIdles) -> None:
    """Once for each such time, when it has lasted too long."""
    if is_idle_too_long(fact.at - fact.since):
        name, since = fact.cluster.name, fact.since.isoformat()
        tell(
            ports, "ClusterIdle", f"{name}/{since}", {"cluster": name, "nodes": fact.cluster.nodes, "idle since": since}
        )


def tell_of_budget(ports: AllPorts, fact: money.BudgetWarned | money.BudgetReached) -> None:
    data = {"project": fact.project, "why": fact.why}
    announce(ports, type(fact).__name__, fact.subject, data)
    tell(ports, type(fact).__name__, fact.subject, data)


def tell_of_alias(ports: AllPorts, fact: models.AliasMoved) -> None:
    """Under its place in the history, which nothing else has."""
    line = fact.change
    data = {
        "model": line.model, "alias": line.alias, "before": line.before, "after": line.after, "by": line.by,
        "why": line.why,
    }  # fmt: skip
    announce(ports, "AliasMoved", f"{line.model}/{line.order}", data)
    tell(ports, "AliasMoved", f"{line.model}/{line.order}", data)


def tell_of_lost_challenge(ports: AllPorts, fact: models.ChallengeLost) -> None:
    tell(ports, "ChallengeLost", fact.run, {"model": fact.model, "run": fact.run, "why": fact.why})


def challenge(ports: AllPorts, fact: runs.RunArchived) -> None:
    """Where the run's route names a model: after the row says that it is archived."""
    if is_challenger(ports.routes, fact.run):
        ports.queues.send(Challenge(fact.run.name), fact.seconds)


def tell_of_poison(ports: AllPorts, fact: messages.MessagePoisoned) -> None:
    """Each message once: the same text is the same message."""
    tell(ports, "MessagePoisoned", f"{fact.queue}/{fact.digest}", {"queue": fact.queue})


def tell_of_failed_schedule(ports: AllPorts, fact: schedules.ScheduleFailed) -> None:
    """Each firing once."""
    data = {"schedule": fact.schedule.id, "why": fact.firing.why, "at": fact.firing.at.isoformat()}
    data |= {"owner": fact.schedule.owner, "route": fact.schedule.route}
    tell(ports, "ScheduleFailed", f"{fact.schedule.id}/{fact.firing.order}", data)


IN_THE_SAME_WRITE: dict[type[Fact], tuple[Callable[[AllPorts, Any], Run], ...]] = {
    runs.RunTakesStep: (compare_data, archive_at_once),
    runs.RunBeingArchived: (judge_data,),
}
_OF_EVERY_RUN: dict[type[Fact], tuple[Callable[[AllPorts, Any], None], ...]] = {
    drops.DropComplete: (recording.record_run,),
    drops.DropSealed: (announce_sealed,),
    runs.RunRecorded: (submit,),
    runs.RunSubmitted: (announce_submitted,),
    runs.RunStarted: (look_at_cluster,),
    runs.CancelCarriedOut: (),
    runs.RunLosesNodes: (tell_of_evictions,),
    runs.RunReconciled: (),
    runs.RunEnded: (archive, keep_warm, look_at_cluster),
    runs.RunArchived: (announce_archived, challenge),
    runs.ArchiveGivenUp: (tell_of_lost_archive,),
    clusters.ClusterAtZero: (announce_at_zero,),
    clusters.ClusterIdles: (tell_of_idleness,),
    money.BudgetWarned: (tell_of_budget,),
    money.BudgetReached: (tell_of_budget,),
    models.AliasMoved: (tell_of_alias,),
    models.ChallengeLost: (tell_of_lost_challenge,),
    schedules.ScheduleFailed: (tell_of_failed_schedule,),
    messages.MessagePoisoned: (tell_of_poison,),
}


def _with_features() -> dict[type[Fact], tuple[Callable[[AllPorts, Any], None], ...]]:
    """What every run has comes first, then the features, in the order of their list."""
    table = dict(_OF_EVERY_RUN)
    for feature in features():
        for fact, more in feature.reactions.items():
            table[fact] = (*table.get(fact, ()), *more)
    return table


REACTIONS = _with_features()


def written_with(ports: AllPorts, fact: runs.RunTakesStep | runs.RunBeingArchived) -> Run:
    """The run with what follows from the fact in the write that makes it true; each is told what those before add."""
    for reaction in IN_THE_SAME_WRITE[type(fact)]:
        fact = replace(fact, run=reaction(ports, fact))
    return fact.run


def react(ports: AllPorts, fact: Fact) -> None:
    """Do all that follows from the fact. Raises what the first that fails raises; a repeat begins with the first."""
    for reaction in REACTIONS[type(fact)]:
        reaction(ports, fact)
