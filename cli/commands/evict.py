"""The command evict, which takes nodes away as Azure evicts low-priority nodes, to show how the training reacts."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from ..api.phases import FINAL
from ..errors import CliError
from ..nodes.preempt import preempt
from ..nodes.preemption_trace import Replay, Trace, read_trace
from ..results import EvictedNode, prints
from ..session import Session, command, user_path
from ..show import png
from . import options
from .values import seconds

Node = Annotated[
    int | None, Option(min=0, metavar="N", help="The node, counted from 0. Default: a random running node.")
]
Every = Annotated[
    str, Option(metavar="TIME", help="Evict again and again, with this pause, until the run has ended: 60s, 5m.")
]
Notice = Annotated[
    str, Option(metavar="TIME", help="Local cloud: announce the eviction this long before, as Azure does: 30s.")
]
TraceFile = Annotated[
    str, Option(metavar="FILE", help="JSON of available nodes over time: [{time: seconds, nodes: N}, ...].")
]
Speed = Annotated[float, Option(min=0.001, metavar="N", help="Replay the trace this many times faster.")]
ReplayPng = Annotated[
    Path | None,
    Option("--png", metavar="FILE", help="With --trace: draw nodes and loss over time. Needs the extra `png`."),
]

LOOK_SECONDS = 1.0


@command
@prints(EvictedNode, each_line=True)
def evict(
    session: Session,
    run: options.Run,
    node: Node = None,
    every: Every = "",
    trace: TraceFile = "",
    speed: Speed = 1.0,
    notice: Notice = "",
    file: ReplayPng = None,
) -> None:
    """Evict a node from a running run, as a preemption does.

    On the local cloud, the processes of the node get SIGTERM and then SIGKILL, and the job fails as preempted, as
    in Azure; the run submits another job, which continues from the last checkpoint. --notice announces the eviction
    first. The eviction is recorded without a requester. In a deployment, the job of one member of an elastic run is
    canceled, and the run submits another.

    With --trace, nodes are evicted whenever the trace has fewer nodes than the run.

    Example: trainyard evict cifar-0123456789abcdef --node 0 --every 60s
    """
    ahead = seconds(notice) if notice else 0.0
    if ahead and not session.profile.azureml:
        raise CliError("Only the local cloud announces an eviction (--notice).", "not_local")
    if file and not trace:
        raise CliError("--png draws the replay of a trace: also give --trace FILE.", "no_trace")
    if trace:
        seen = _replay(session, run, Trace(Path(trace).stem, read_trace(Path(trace)), speed), ahead)
        if file:
            _draw(session, seen, user_path(file))
        return
    pause = seconds(every) if every else 0.0
    while True:
        row = session.api.get("runs", run)
        if row["state"] in FINAL:
            break
        _evict_and_print(session, row, node, ahead, patient=bool(pause))
        if not pause or not _still_runs(session, run, pause):
            return
    if not pause:
        raise CliError(f"Run {run} is {row['state']}; none of its jobs is running.", "not_running")


def _replay(session: Session, run: str, trace: Trace, ahead: float) -> Replay:
    """At each moment of the trace, evict the nodes by which the run exceeds the trace."""
    seen = Replay(run, trace, time.time())
    for moment in trace.moments:
        if not _still_runs(session, run, max(0.0, moment.time / trace.speed - seen.seconds())):
            break
        row = session.api.get("runs", run)
        members = (row.get("elastic") or {}).get("members", [])
        running = [member["member"] for member in members if member["state"] == "running"]
        session.remark(f"{moment.time:.0f} s: {moment.nodes} nodes in the trace, {len(running)} running")
        for chosen in running[moment.nodes :]:
            if _evict_and_print(session, row, chosen, ahead, patient=True):
                seen.taken.append(seen.seconds())
    return seen


def _draw(session: Session, seen: Replay, file: Path) -> None:
    """Write the picture of a replay, with the run's metrics if there are any."""
    series = session.api.get("runs", seen.run, "metrics")["series"]
    png.draw_replay(seen.curves(series), seen.taken, f"{seen.run}, {seen.trace.title}", file)
    if session.as_json:
        session.print_json_line({"run": seen.run, "png": str(file.resolve())})
    else:
        session.out.print(str(file), soft_wrap=True)


def _evict_and_print(session: Session, run: dict[str, Any], node: int | None, ahead: float, patient: bool) -> bool:
    """Evict a node and print the result. Returns False if the eviction failed and `patient` is set; otherwise the
    error is raised."""
    try:
        evicted = _evict(session, run, node, ahead)
    except CliError as exc:
        if not patient:
            raise
        session.remark(str(exc), "yellow")
        return False
    if session.as_json:
        session.print_json_line(evicted)
    else:
        when = f"will be evicted in {ahead:g} s" if ahead else "was evicted"
        session.out.print(f"{evicted['job']}: node {evicted['node']} {when}.", soft_wrap=True)
    return True


def _still_runs(session: Session, run: str, pause: float) -> bool:
    """Wait for `pause` seconds. Returns False as soon as the run has ended."""
    until = time.monotonic() + pause
    while time.monotonic() < until:
        if session.api.get("runs", run)["state"] in FINAL:
            return False
        time.sleep(min(LOOK_SECONDS, pause))
    return True


def _evict(session: Session, run: dict[str, Any], node: int | None, ahead: float) -> EvictedNode:
    elastic = run.get("elastic")
    running = [m["member"] for m in elastic["members"] if m["state"] == "running"] if elastic else []
    if elastic and not running:
        raise CliError(f"No member of run {run['run']} is running.", "not_running")
    chosen = random.choice(running) if elastic and node is None else node or 0  # noqa: S311  # no secret
    if session.profile.azureml:
        return preempt(session.profile, run, chosen, ahead)
    answer = session.api.post("runs", run["run"], "members", str(chosen), "evict")
    return {"run": run["run"], "job": answer["job"], "node": chosen}
