"""The diagnosis of a failed run, made when the run is archived."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from shared.clusters.ports import ClusterPorts
from shared.diagnosis.advice import advice, summary
from shared.diagnosis.causes import Cause, Certainty, Diagnosis, QuotedLine
from shared.diagnosis.change import advised_change, advised_job_change, reached_time_limit
from shared.diagnosis.next_steps import after_failure
from shared.diagnosis.own_causes import OwnCause, causes_of_kind, own_causes, refined, trainer_of
from shared.jobs.model import UNKNOWN_FAILURE
from shared.jobs.ports import Jobs
from shared.jobs.route import Routes
from shared.kernel.errors import BadSetting, TrainyardError
from shared.kernel.storage import Blobs
from shared.money.admission import clusters
from shared.runs.facts import RunBeingArchived
from shared.runs.model import Run, RunState
from shared.runs.progress.workloads import workload
from shared.runs.results.rank_log import rank_log

LOG_BYTES = 1 << 20  # of the end of each rank's log
RANKS_READ = 8
log = logging.getLogger(__name__)


def with_diagnosis(ports: ClusterPorts, fact: RunBeingArchived) -> Run:
    """Return the run with its diagnosis if the run failed or reached its time limit.

    Reads the end of at most RANKS_READ logs. If a log can't be read, the run has no diagnosis: an archive never fails
    because of a diagnosis.
    """
    run = fact.run
    if run.feature(Diagnosis) is not None:
        return run
    if reached_time_limit(run):
        return with_changes(ports, run, _of_time_limit(run))
    if run.progress.state is not RunState.FAILED:
        return run
    from shared.diagnosis.judge import diagnose_ranks  # its patterns are compiled on first use

    try:
        logs = list(_logs(ports.jobs, ports.blobs, run))
    except TrainyardError as error:
        log.warning("%s has no diagnosis, because its logs can't be read: %s", run.name, error)
        return run
    failure = run.progress.failure or UNKNOWN_FAILURE
    texts = {each.rank: each.text for each in logs}
    found = diagnose_ranks(texts, failure.summary, failure.exit_code or None)
    found = with_signal(found, failure.exit_code, ports.jobs.rank_of(PurePosixPath(failure.log).name))
    found = refined(found, causes_of(ports.routes, ports.trainers, run), texts)
    if any(each.is_cut for each in logs):  # the numbers of lines are not known
        found = replace(found, evidence=tuple(replace(quote, number=0) for quote in found.evidence))
    return with_changes(ports, run, found)


def with_signal(found: Diagnosis, exit_code: int, rank: int | None) -> Diagnosis:
    """Return the diagnosis of a process that a signal ended, if no log shows a cause: a process that crashes writes
    nothing. `rank` is the process whose log the platform names.
    """
    names = {code: each.name for each in signal.Signals for code in (-each, 128 + each)}  # Python's form, and a shell's
    if found.cause is not Cause.NOT_KNOWN or exit_code not in names:
        return found
    cause = Cause.RANK_FIRST_FAILED
    said = f"{summary(cause, rank).removesuffix('.')}: signal {names[exit_code]} ended it."
    return replace(found, cause=cause, certainty=Certainty.LIKELY, summary=said, rank=rank, advice=advice(cause))


def with_changes(ports: ClusterPorts, run: Run, found: Diagnosis) -> Run:
    """Return the run with its diagnosis and the advised changes. If a parameter helps, the job itself is not
    changed.
    """
    said = found.evidence[0].text if found.evidence else ""
    change = advised_change(found.cause, run.asked.parameters, said)
    if change:
        return _with_steps(run, replace(found, change=change))
    try:
        sizes = {name: cluster.vm_size for name, cluster in clusters(ports).items()}
    except TrainyardError as error:
        log.warning("no larger machine is named for %s: %s", run.name, error)
        sizes = {}
    route = ports.routes.get(run.asked.route)
    change_job = advised_job_change(found.cause, run, sizes, route.limits if route else ports.limits)
    return _with_steps(run, replace(found, change_job=change_job))


def _with_steps(run: Run, found: Diagnosis) -> Run:
    return run.having(replace(found, advice=after_failure(run, found)))


def _of_time_limit(run: Run) -> Diagnosis:
    cause = Cause.TIME_LIMIT
    quote = QuotedLine(0, run.cancel.why or run.progress.history[-1].why)
    return Diagnosis(cause, Certainty.CERTAIN, summary(cause), (quote,), advice=advice(cause))


def causes_of(routes: Routes, trainers: Path, run: Run) -> Sequence[OwnCause]:
    """Return the causes that the run's trainer and its kind of run add. A file that can't be read adds none."""
    route = routes.get(run.asked.route)
    trainer = route.trainer if route else trainer_of(trainers, run.asked.request)
    return (*_readable(lambda: own_causes(trainers, trainer)), *_readable(lambda: causes_of_kind(workload(run))))


def _readable(read: Callable[[], Sequence[OwnCause]]) -> Sequence[OwnCause]:
    try:
        return read()
    except BadSetting as error:
        log.warning("causes are left out: %s", error)
        return ()


def notice_facts(run: Run) -> dict[str, str]:
    """Return the cause of a failed run and the first step to take, for the notice of the failure."""
    found = run.feature(Diagnosis)
    return {"cause": found.summary, "what to do": next(iter(found.advice), "")} if found else {}


@dataclass(frozen=True)
class _LogEnd:
    """The end of a rank's log. `is_cut`: the beginning of the log is missing."""

    rank: int
    text: str
    is_cut: bool


def _logs(jobs: Jobs, blobs: Blobs, run: Run) -> Iterator[_LogEnd]:
    first = rank_log(jobs, blobs, run, 0)
    for rank in sorted({0, *first.ranks})[:RANKS_READ]:
        found = first if rank == 0 else rank_log(jobs, blobs, run, rank)
        if found.blob:
            begin = max(0, found.blob.size - LOG_BYTES)
            data = blobs.read_from(found.container, found.blob.name, begin, LOG_BYTES)
            yield _LogEnd(rank, data.decode("utf-8", "replace"), begin > 0)
