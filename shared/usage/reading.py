"""The usage of a run: from Azure Monitor while it has the samples, and from the run's archive afterwards.

Azure Monitor keeps samples for 93 days, and its values arrive some minutes late. So the archive, which is written when
the run ends, may lack the last minutes. These minutes are read from Azure Monitor while it has them.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.jobs.ports import Jobs
from shared.jobs.vm_size import gpus_of
from shared.kernel.clock import Clock
from shared.kernel.errors import NotFound, TrainyardError
from shared.kernel.memory import Topic
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blobs
from shared.runs.facts import RunBeingArchived
from shared.runs.model import Run
from shared.runs.ports import RunPorts
from shared.runs.progress.workloads import workload
from shared.runs.results.outputs import archive_folder
from shared.usage.model import NodeUsage, UsageSummary, of_rows, rows, summary, together
from shared.usage.ports import MOST_JOBS, NODE_METRICS

log = logging.getLogger(__name__)

FILE = "usage.jsonl"
FILE_LIMIT = 64 << 20  # bytes; a sample takes about 300
GRAIN = timedelta(minutes=1)  # of Azure Monitor's samples
LEAST = timedelta(minutes=1)  # a run on nodes for a shorter time is not asked about when it is archived
KEPT = timedelta(days=93)  # by Azure Monitor
# Viewers share one request. A check every minute is never exactly on time, and should get a new answer.
LOOKED_UP = Topic[dict[str, NodeUsage]]("usage of a run", GRAIN - timedelta(seconds=5), most=100)


@dataclass(frozen=True)
class Measurable:
    """The jobs of a run, and the period in which they had nodes. `gpus` is False if no node has a GPU."""

    jobs: tuple[str, ...]
    begin: datetime
    end: datetime
    gpus: bool


def usage_of(ports: RunPorts, run: Run) -> NodeUsage:
    """Return the use of the run's nodes; empty for a run that was not measured.

    Sends at most one request a minute for the nodes of a run, and one for their GPUs. Raises Unavailable if Azure
    Monitor does not answer and there is no archive.
    """
    now, measurable = ports.clock(), measurable_part(ports.jobs, ports.clock, run)
    if measurable is None:
        return NodeUsage()
    its = run.feature(UsageSummary)
    is_complete = its is not None and its.until is not None and its.until >= measurable.end - 2 * GRAIN
    if is_complete or now - measurable.end > KEPT:
        return archived(ports.blobs, run)
    try:
        measured = together(_cached(ports, run, measurable).values())
    except TrainyardError:
        if its is None:
            raise
        measured = NodeUsage()
    return measured or archived(ports.blobs, run)


def usage_by_job(ports: RunPorts, run: Run) -> dict[str, NodeUsage]:
    """Return the use of the nodes of a running run, by job, with at most as many requests as `usage_of`."""
    measurable = measurable_part(ports.jobs, ports.clock, run)
    return _cached(ports, run, measurable) if measurable else {}


def _cached(ports: RunPorts, run: Run, measurable: Measurable) -> dict[str, NodeUsage]:
    return ports.memory.answer(LOOKED_UP, ports.clock(), lambda: _ask(ports, measurable), run.name)


def archived(blobs: Blobs, run: Run) -> NodeUsage:
    """Return the usage in the run's archive; empty if the archive has none."""
    try:
        data = blobs.read(OUTPUT_CONTAINER, f"{archive_folder(run)}/{FILE}", FILE_LIMIT)
        return of_rows(json.loads(line) for line in data.splitlines())
    except NotFound:
        return NodeUsage()
    except (KeyError, TypeError, ValueError) as error:
        log.warning("%s of run %s can't be read: %r", FILE, run.name, error)
        return NodeUsage()


def with_usage(ports: RunPorts, fact: RunBeingArchived) -> Run:
    """Return the run with its usage in a few numbers, and write all samples into its archive.

    An archive never fails because of missing usage: a run that Azure Monitor does not know has no usage.
    """
    run = fact.run
    try:
        measurable = measurable_part(ports.jobs, ports.clock, run)
        if measurable is None or measurable.end - measurable.begin < LEAST:
            return run
        usage = together(_ask(ports, measurable).values())
        found = summary(usage)
        if found is None:
            return run
        text = "".join(f"{json.dumps(row, separators=(',', ':'))}\n" for row in rows(usage))
        ports.blobs.write(OUTPUT_CONTAINER, f"{archive_folder(run)}/{FILE}", text.encode(), "application/x-ndjson")
        return run.having(found)
    except TrainyardError as error:
        log.warning("run %s is archived without its usage: %s", run.name, error)
        return run


def measurable_part(jobs: Jobs, clock: Clock, run: Run) -> Measurable | None:
    """Return the jobs and times to request from Azure Monitor; None for a run that never had nodes of its own."""
    kind = workload(run)
    uses = kind.uses(run, clock()) if kind.has_own_nodes else []
    spans = [span for use in uses for span in use.ran]
    names = tuple(dict.fromkeys(kind.jobs(run).values()))
    if not spans or not names:
        return None
    sizes = [jobs.vm_size(use.cluster) if use.cluster else "" for use in uses]
    gpus = any(not size or gpus_of(size) != 0 for size in sizes)
    return Measurable(names, min(span.begin for span in spans), max(span.end for span in spans), gpus)


def _ask(ports: RunPorts, measurable: Measurable) -> dict[str, NodeUsage]:
    metrics, span = ports.store(NODE_METRICS), (measurable.begin - GRAIN, measurable.end + GRAIN)
    found: dict[str, NodeUsage] = {}
    for first in range(0, len(measurable.jobs), MOST_JOBS):
        jobs = measurable.jobs[first : first + MOST_JOBS]
        of_nodes = metrics.nodes(jobs, *span)
        of_gpus = metrics.gpus(jobs, *span) if measurable.gpus else {}
        for job in {**of_nodes, **of_gpus}:
            found[job] = together(usage[job] for usage in (of_nodes, of_gpus) if job in usage)
    return found
