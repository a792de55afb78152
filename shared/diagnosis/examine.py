"""Examine a running run once: read its log with one request, measure its nodes, and find what is wrong."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import islice

from shared.diagnosis.causes import Cause
from shared.diagnosis.failed_run import causes_of
from shared.diagnosis.next_steps import while_running
from shared.diagnosis.observed import Observed
from shared.diagnosis.own_causes import live_ailments
from shared.jobs.model import JobFolderPart
from shared.jobs.ports import Jobs
from shared.kernel.errors import NotFound
from shared.kernel.storage import Blobs
from shared.runs.features import ailments as of_features
from shared.runs.features import node_pulses
from shared.runs.model import Run
from shared.runs.ports import RunPorts
from shared.runs.progress.workloads import workload
from shared.runs.pulse import Ailment, NodePulse, Pulse

READ = 256 << 10  # bytes of the log per request
MEASURED_EACH = 5  # checks, while nobody reads the record
SILENT = timedelta(seconds=30)
RANKS_LISTED = 1000
GONE = timedelta(minutes=5)  # a node that was not measured for this time, while others were, has left the run


def problems(ports: RunPorts, run: Run, observed: Observed, is_viewed: bool) -> list[Ailment]:
    """Return what is wrong with the run, from what was observed of its log, and from its nodes.

    The nodes are measured if somebody views the run, if the log is silent, or in every MEASURED_EACH-th check.
    """
    pulse = observed.pulse(workload(run).nodes_changed_at(run), ports.clock(), ())
    asks = is_viewed or pulse.silence >= SILENT or observed.checks % MEASURED_EACH == 0
    pulse = replace(pulse, nodes=_nodes(ports, run, pulse) if asks else ())
    from shared.diagnosis.live import ailments  # its patterns are compiled on first use

    own = live_ailments(causes_of(ports.routes, ports.trainers, run), pulse.text)
    found = (*ailments(pulse), *own, *map(_of_the_list, of_features(run, pulse)))
    route = ports.routes.get(run.asked.route)
    on_hang = route.on_hang if route else ""
    return [replace(each, advice=while_running(run, each, on_hang)) for each in found]


def _of_the_list(ailment: Ailment) -> Ailment:
    """Return a feature's ailment with a cause of the closed list; another word becomes the ailment's own name."""
    if ailment.cause in [*Cause]:
        return ailment
    return replace(ailment, cause=Cause.NOT_KNOWN.value, name=ailment.name or ailment.cause)


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


def _nodes(ports: RunPorts, run: Run, pulse: Pulse) -> tuple[NodePulse, ...]:
    """Return the measurements of the nodes that have not left the run."""
    found = node_pulses(ports, run)
    newest = max((node.at for node in found), default=pulse.now)
    return tuple(node for node in found if newest - node.at <= GONE)
