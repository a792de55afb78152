"""Cache Azure ML's answers about clusters and their jobs: many questions cost one request."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from shared.clusters.forecast import Claim, Forecast, forecast, usual_start
from shared.clusters.model import Cluster
from shared.clusters.ports import ClusterPorts
from shared.clusters.waiting import COMES, WAITING, Waiting, why_waiting
from shared.kernel.errors import TrainyardError
from shared.kernel.memory import Topic
from shared.runs.model import LIVE, Run, RunState
from shared.runs.ports import Admission, RunFields, RunFilter, RunPorts
from shared.runs.progress.workloads import workload
from shared.runs.views.run_list import in_state
from shared.runs.views.summary import duration_seconds

MOST_LIVE = 1000  # runs per state that a forecast reads; with more runs there is no forecast
ENDED = 100  # newest completed runs, which show how long new nodes take


@dataclass(frozen=True)
class Sight:
    at: datetime
    clusters: dict[str, Cluster]
    jobs: tuple[tuple[str, str], ...]  # (job, cluster) of unfinished jobs, newest first
    error: str = ""
    begins: dict[str, datetime] = field(default_factory=dict)  # when waiting runs will probably begin
    after: dict[str, tuple[str, ...]] = field(default_factory=dict)  # or the runs of unknown length before each


SIGHT = Topic[Sight]("clusters and jobs of Azure ML", timedelta(seconds=5))


def sight(ports: ClusterPorts) -> Sight:
    """Return Azure ML's answer of the last seconds. An error is cached, too."""
    return ports.memory.answer(SIGHT, ports.clock(), lambda: _read_workspace(ports))


def waiting(ports: ClusterPorts, run: Run) -> Waiting | None:
    """Return why this run has not started; None if it has started or is over."""
    if run.progress.state not in WAITING or not workload(run).has_own_nodes:
        return None
    current_sight = sight(ports)
    if current_sight.error and run.jobs.job:
        return Waiting("no_answer", f"Unknown: {current_sight.error}")
    own = set(workload(run).live_jobs(run))
    ahead: list[str] = []
    for job, cluster in current_sight.jobs:
        if job in own:
            ahead = []  # the jobs from here on were submitted before it
        elif cluster == run.on_cluster:
            ahead.append(job)
    why = why_waiting(run, current_sight.clusters.get(run.on_cluster), ahead[::-1])
    if why.code not in COMES:
        return why
    after = current_sight.after.get(run.name, ())
    return replace(why, expected_at=current_sight.begins.get(run.name), after=after)


def _read_workspace(ports: ClusterPorts) -> Sight:
    try:
        clusters = {cluster.name: cluster for cluster in ports.clusters.list()}
        jobs, (begins, after) = tuple(ports.jobs.active()), _forecasts(ports, clusters)
        return Sight(ports.clock(), clusters, jobs, begins=begins, after=after)
    except TrainyardError as exc:
        return Sight(ports.clock(), {}, (), str(exc))


def _forecasts(ports: RunPorts, clusters: dict[str, Cluster]) -> tuple[dict[str, datetime], dict[str, tuple[str, ...]]]:
    """Forecast when the waiting runs of all clusters will start, or after which runs."""
    in_states = {state: in_state(ports.runs, state, RunFields.NODES) for state in LIVE}
    by_state = {state: list(itertools.islice(found, MOST_LIVE)) for state, found in in_states.items()}
    if any(len(runs) == MOST_LIVE for runs in by_state.values()):
        return {}, {}
    live = [run for runs in by_state.values() for run in runs if workload(run).has_own_nodes]
    live.sort(key=lambda run: run.created_at)
    ended = ports.runs.page(RunFilter(state=RunState.COMPLETED), ENDED, fields=RunFields.NODES).runs if live else []
    now = ports.clock()
    found: dict[str, Forecast] = {}
    for name, cluster in clusters.items():
        claims = [_claim(ports.admission, run, now) for run in live if run.on_cluster == name]
        start = usual_start(_waits((run for run in ended if run.on_cluster == name), now))
        found[name] = forecast(cluster, claims, start)
    begins = {run: now + timedelta(seconds=s) for each in found.values() for run, s in each.seconds.items()}
    return begins, {run: after for each in found.values() for run, after in each.after.items()}


def _claim(admission: Admission, run: Run, now: datetime) -> Claim:
    usual, so_far = admission.usual_seconds(run), duration_seconds(run, now) or 0.0
    seconds = None if usual is None else usual - so_far
    begun = run.progress.state is RunState.RUNNING
    return Claim(run.name, workload(run).fewest_nodes(run), begun, seconds, (now - run.created_at).total_seconds())


def _waits(runs: Iterable[Run], now: datetime) -> list[float]:
    """Return the seconds of each run's wait for its first nodes."""
    uses = (use for run in runs for use in workload(run).uses(run, now))
    return [(use.waited[0].end - use.waited[0].begin).total_seconds() for use in uses if use.waited]
