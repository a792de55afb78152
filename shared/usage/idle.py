"""Idle GPUs: watch the runs with GPUs, and warn of idle ones or end them, as the administrator chose.

One request to Azure Monitor in five minutes is enough for all jobs up to MOST_JOBS. With more jobs, the next check
requests the following runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from shared.jobs.ports import Jobs
from shared.kernel.clock import Clock
from shared.kernel.memory import Topic
from shared.runs.codes import CancelCode
from shared.runs.features import RunFinding
from shared.runs.model import Run
from shared.runs.ports import RunPorts
from shared.usage.model import Measurement, Metric, NodeUsage, together
from shared.usage.ports import MOST_JOBS, NODE_METRICS
from shared.usage.reading import GRAIN, measurable_part

LATE = timedelta(minutes=10)  # a later value no longer counts
EACH = timedelta(minutes=5)
# A timer is never exactly on time, so an answer is used for slightly less than the time between two checks.
ASKED = Topic[dict[str, NodeUsage]]("GPUs of live runs", EACH - timedelta(seconds=10))


def watch(ports: RunPorts, runs: Sequence[Run]) -> dict[str, RunFinding]:
    """Return the runs whose GPUs are idle, with a sentence. Raises Unavailable if Azure Monitor does not answer."""
    rules, now = ports.rules, ports.clock()
    old = [run for run in runs if now - run.progress.history[-1].at >= rules.idle_gpus_after]
    jobs = _in_rotation({run.name: _jobs_with_gpus(ports.jobs, ports.clock, run) for run in old}, now)
    asked = [job for of_run in jobs.values() for job in of_run]
    if not asked:
        return {}
    since = now - rules.idle_gpus_after - LATE
    used = ports.memory.answer(ASKED, now, lambda: ports.store(NODE_METRICS).gpus(asked, since, now))
    found = {}
    for name, of_run in jobs.items():
        usage = together(used[job] for job in of_run if job in used)
        if words := idle(usage, now, rules.idle_gpus_after, rules.idle_gpu_percent):
            found[name] = RunFinding(words, CancelCode.IDLE_GPUS if rules.cancel_idle_gpus else None, "idle GPUs")
    return found


def idle(usage: NodeUsage, now: datetime, quiet: timedelta, percent: float) -> str | None:
    """Return why the GPUs count as idle: each was below `percent` in each measured minute of the last `quiet`.

    None if a GPU was busy, if minutes are missing, or if the newest sample is older than LATE.
    """
    gpus = usage.of(Metric.GPU)
    if not gpus or any(not _is_covered(each.points, now, quiet) for each in gpus):
        return None
    busiest = max(point.value for each in gpus for point in _last(each.points, quiet))
    if busiest >= percent:
        return None
    minutes = quiet / timedelta(minutes=1)
    return f"Its GPUs have been idle for {minutes:.0f} min: at most {busiest:.0f} % of their time in use."


def _last(points: Sequence[Measurement], quiet: timedelta) -> list[Measurement]:
    """Return the samples of the last `quiet` before the end of the newest one."""
    begin = points[-1].at + GRAIN - quiet
    return [point for point in points if point.at >= begin]


def _is_covered(points: Sequence[Measurement], now: datetime, quiet: timedelta) -> bool:
    """Return whether each minute of the last `quiet` has a sample, and the newest sample is not too old."""
    return bool(points) and now - points[-1].at <= LATE and len(_last(points, quiet)) >= quiet // GRAIN


def _jobs_with_gpus(jobs: Jobs, clock: Clock, run: Run) -> Iterable[str]:
    measurable = measurable_part(jobs, clock, run)
    return measurable.jobs if measurable and measurable.gpus else ()


def _in_rotation(jobs: dict[str, Iterable[str]], now: datetime) -> dict[str, tuple[str, ...]]:
    """Return the jobs of as many runs as one request takes, starting with other runs at each check."""
    names = [name for name, of_run in jobs.items() if of_run]
    first = int(now.timestamp() // EACH.total_seconds()) * MOST_JOBS % max(len(names), 1)
    chosen: dict[str, tuple[str, ...]] = {}
    room = MOST_JOBS
    for name in (*names[first:], *names[:first]):
        of_run = tuple(jobs[name])[-MOST_JOBS:]
        if len(of_run) <= room:
            chosen[name], room = of_run, room - len(of_run)
    return chosen
