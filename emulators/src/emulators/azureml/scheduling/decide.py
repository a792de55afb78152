"""The scheduler's decisions for one cluster, as values. No I/O and no clock.

A job starts when all the nodes that it needs are idle at the same time (gang scheduling). The queue is first in, first
out: a job that waits for nodes blocks the jobs behind it. A job that needs more nodes than the cluster's maximum blocks
no other job; it waits, with a reason, for a higher maximum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from emulators.azureml.kernel.models import Node, NodeState, Scale

LEAVING_SECONDS = 0.3  # how long a leaving or preempted node is shown


@dataclass(frozen=True)
class Waiting:
    """A queued job and the required number of nodes."""

    job: str
    needs: int


@dataclass(frozen=True)
class Start:
    job: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Decision:
    """The next actions for a cluster. `reasons` has why each remaining job is queued. `wake_in` is the number of
    seconds after which time alone allows more actions."""

    forget: tuple[Node, ...] = ()  # nodes that have left
    ready: tuple[Node, ...] = ()  # nodes that have been prepared, and are idle now
    start: tuple[Start, ...] = ()
    leave: tuple[Node, ...] = ()
    add: int = 0
    reasons: Mapping[str, str] = field(default_factory=dict)
    wake_in: float | None = None


def decide(
    scale: Scale, nodes: Sequence[Node], queue: Sequence[Waiting], now: float, node_start_seconds: float
) -> Decision:
    """Decide for a cluster with these nodes and this queue (oldest first). A repeated decision is harmless."""

    def due(node: Node, after: float) -> bool:
        return now - node.since >= after

    going = [n for n in nodes if n.state in (NodeState.LEAVING, NodeState.PREEMPTED) and n.job is None]
    preparing = [n for n in nodes if n.state is NodeState.PREPARING]
    ready = [n for n in preparing if due(n, node_start_seconds)]
    idle = [n for n in nodes if n.state is NodeState.IDLE] + ready
    running = sum(n.state is NodeState.RUNNING for n in nodes)
    starts = _starts(queue, idle[: max(0, scale.maximum - running)], scale.maximum)
    started = {s.job for s in starts}
    waiting = [w for w in queue if w.job not in started]
    taken = {n.id for s in starts for n in s.nodes}
    idle = [n for n in idle if n.id not in taken]
    preparing = [n for n in preparing if n not in ready]
    busy = running + len(taken)

    live = busy + len(idle) + len(preparing)
    demand = busy + sum(w.needs for w in waiting if w.needs <= scale.maximum)
    target = max(scale.minimum, min(demand, scale.maximum))
    leave = _leaving(idle, preparing, live - target, live - scale.maximum, now - scale.idle_seconds)
    stay = [n for n in idle if n not in leave] if live > target else []
    return Decision(
        forget=tuple(n for n in going if due(n, LEAVING_SECONDS)),
        ready=tuple(ready),
        start=tuple(starts),
        leave=tuple(leave),
        add=max(0, target - live),
        reasons=_reasons(waiting, scale, len(idle), max(0, target - busy - len(idle))),
        wake_in=_wake_in(
            now,
            ((going, LEAVING_SECONDS), (preparing, node_start_seconds), (stay, scale.idle_seconds)),
        ),
    )


def _starts(queue: Sequence[Waiting], idle: Sequence[Node], maximum: int) -> list[Start]:
    starts: list[Start] = []
    free = list(idle)
    for waiting in queue:
        if waiting.needs > maximum:
            continue
        if waiting.needs > len(free):
            break
        starts.append(Start(waiting.job, tuple(free[: waiting.needs])))
        free = free[waiting.needs :]
    return starts


def _leaving(
    idle: Sequence[Node], preparing: Sequence[Node], spare: int, excess: int, idle_before: float
) -> list[Node]:
    """Return the nodes to release. Nodes above the maximum are released at once, those being prepared first.
    Unneeded nodes are released after the idle time."""
    leave = [*preparing, *idle][: max(0, excess)]
    rested = [n for n in idle if n not in leave and n.since <= idle_before and n.state is NodeState.IDLE]
    return leave + sorted(rested, key=lambda n: n.since)[: max(0, spare - len(leave))]


def _reasons(waiting: Sequence[Waiting], scale: Scale, idle: int, coming: int) -> dict[str, str]:
    reasons: dict[str, str] = {}
    ahead: str | None = None
    for job in waiting:
        if job.needs > scale.maximum:
            reasons[job.job] = f"The job needs {job.needs} nodes and the cluster may have {scale.maximum}."
        elif ahead:
            reasons[job.job] = f"Job {ahead} is ahead in the queue."
        else:
            ahead = job.job
            reasons[job.job] = f"Waiting for {job.needs} nodes: {idle} idle, {coming} being allocated."
    return reasons


def _wake_in(now: float, groups: Iterable[tuple[Sequence[Node], float]]) -> float | None:
    moments = [node.since + after - now for nodes, after in groups for node in nodes]
    return max(0.0, min(moments)) if moments else None
