"""Cache Azure ML's answers about clusters and their jobs: many questions cost one request."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from shared.clusters.forecast import Claim, begins, usual_start
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
    expected = current_sight.begins.get(run.name) if why.code in COMES else None
    return replace(why, expected_at=expected)


def _read_workspace(ports: ClusterPorts) -> Sight:
    try:
        clusters = {cluster.name: cluster for cluster in ports.clusters.list()}
        return Sight(ports.clock(), clusters, tuple(ports.jobs.active()), begins=_begins(ports, clusters))
    except TrainyardError as exc:
        return Sight(ports.clock(), {}, (), str(exc))


def _begins(ports: RunPorts, clusters: dict[str, Cluster]) -> dict[str, datetime]:
    """Forecast when the waiting runs of all clusters will start."""
    in_states = {state: in_state(ports.runs, state, RunFields.NODES) for state in LIVE}
    by_state = {state: list(itertools.islice(found, MOST_LIVE)) for state, found in in_states.items()}
    if any(len(runs) == MOST_LIVE for runs in by_state.values()):
        return {}
    live = [run for runs in by_state.values() for run in runs if workload(run).has_own_nodes]
    live.sort(key=lambda run: run.created_at)
    ended = ports.runs.page(RunFilter(state=RunState.COMPLETED), ENDED, fields=RunFields.NODES).runs if live else []
    now = ports.clock()
    expected: dict[str, datetime] = {}
    for name, cluster in clusters.items():
        claims = [_claim(ports.admission, run, now) for run in live if run.on_cluster == name]
        start = usual_start(_waits((run for run in ended if run.on_cluster == name), now))
        for run, seconds in begins(cluster, claims, start).items():
            expected[run] = now + timedelta(seconds=seconds)
    return expected


def _claim(admission: Admission, run: Run, now: datetime) -> Claim:
    usual, so_far = admission.usual_seconds(run), duration_seconds(run, now) or 0.0
    seconds = None if usual is None else usual - so_far
    begun = run.progress.state is RunState.RUNNING
    return Claim(run.name, workload(run).fewest_nodes(run), begun, seconds, (now - run.created_at).total_seconds())


def _waits(runs: Iterable[Run], now: datetime) -> list[float]:
    """Return the seconds of each run's wait for its first nodes."""
    uses = (use for run in runs for use in workload(run).uses(run, now))
    return [(use.waited[0].end - use.waited[0].begin).total_seconds() for use in uses if use.waited]
