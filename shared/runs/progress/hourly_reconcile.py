"""Reconcile runs with Azure ML, one hour of creation per message, in case events were lost.

Runs are grouped by the hour in which they were created. One message reconciles one hour: it reads the hour's unfinished
runs in pages, lists Azure ML's jobs of the hour in pages, and follows the runs whose jobs differ. Ten thousand live
runs thus cost some hundred requests, instead of one request per run ([decision
11](../../docs/adr/0011-looks-by-the-hour.md)).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from shared.jobs.model import JobStatus
from shared.kernel.errors import BadInput, Changed, TrainyardError
from shared.kernel.storage import Queues
from shared.kernel.versioned import Stored
from shared.runs.decide import is_over
from shared.runs.facts import ArchiveGivenUp, RunReconciled
from shared.runs.messages import CheckHour
from shared.runs.model import Run, RunState
from shared.runs.names import hour_has_passed, start_of_hour
from shared.runs.ports import RunPorts, Runs
from shared.runs.progress.follow import explained, follow
from shared.runs.progress.transitions import (
    ask_for_archive,
    ask_for_submission,
    transition,
)
from shared.runs.progress.workloads import workload

log = logging.getLogger(__name__)

PATIENCE = timedelta(seconds=60)  # a message sent within this time is probably still on its way
AGAIN_SECONDS = 20.0  # an hour that was reconciled this recently is skipped
APART_SECONDS = 10.0  # between two hours, because reconciling all hours together would delay the events
ALL_WITHIN_SECONDS = 240.0  # less than the timer's period
RUNS_A_PAGE = 2000
BUDGET = timedelta(seconds=40)  # for one reconcile; no page is started afterwards, and the next reconcile continues
LONGEST = timedelta(minutes=4)  # for a page; functionTimeout, 10 minutes, ends the worker
ASKED_ALONE = 50  # jobs missing from the list that one reconcile requests one by one
ARCHIVE_TRIES = 12  # until archiving a run is abandoned
SUBMIT_FOR = timedelta(days=1)  # until submitting a run is abandoned


def queue_hourly_checks(runs: Runs, queues: Queues) -> None:
    """Queue a reconcile of every hour with possibly unfinished runs, one after the other."""
    hours = runs.hours()
    apart = min(APART_SECONDS, ALL_WITHIN_SECONDS / max(len(hours), 1))
    for number, hour in enumerate(reversed(hours)):
        queues.send(CheckHour(hour), int(number * apart))


def reconcile_hour(ports: RunPorts, message: CheckHour) -> None:
    """Reconcile every unfinished run of the hour. A failing run does not stop the others; the error is raised last.

    Does nothing if the hour was reconciled a moment ago. An hour without unfinished runs leaves the list once no run
    can be added to the hour.
    """
    hour = message.hour
    try:
        start_of_hour(hour)
    except ValueError as exc:
        raise BadInput(f"{hour[:40]!r} is not an hour like 20260131T08.") from exc
    if not ports.runs.claim_hour(hour, ports.clock(), AGAIN_SECONDS):
        return
    look = _HourCheck(ports, hour, ports.clock())
    look.all_pages()
    if look.errors:
        raise look.errors[0]


@dataclass
class _HourCheck:
    ports: RunPorts
    hour: str
    began: datetime
    errors: list[TrainyardError] = field(default_factory=list)
    alone: int = ASKED_ALONE
    unsettled: int = 0

    def all_pages(self) -> None:
        before: Run | None = None
        while True:
            page = self.ports.runs.unsettled(self.hour, RUNS_A_PAGE, before)
            live = [stored for stored in page if stored.value.progress.state is not RunState.BROKEN]
            self.unsettled += sum(stored.value.archiving.gave_up_at is None for stored in live)
            whole = self._page(live)
            if whole and len(page) < RUNS_A_PAGE:
                break
            if not whole or self.has_lasted(
                BUDGET
            ):  # rows keep no progress of a reconcile, so the next one starts over
                self.ports.queues.send(CheckHour(self.hour), AGAIN_SECONDS)
                return
            before = page[-1].value
        if not self.unsettled and hour_has_passed(self.hour, self.ports.clock()):
            self.ports.runs.drop_hour(self.hour)

    def has_lasted(self, time: timedelta) -> bool:
        return self.ports.clock() - self.began > time

    def _page(self, page: list[Stored[Run]]) -> bool:
        """Reconcile these runs. False if the time ended before the last run."""
        going = [stored for stored in page if not is_over(stored.value)]
        names = {job for stored in going for job in workload(stored.value).live_jobs(stored.value)}
        seen = self._listed(names) if names else {}
        for stored in page:
            if self.has_lasted(LONGEST):
                return False
            try:
                self._reconcile_run(stored, seen)
            except Changed:
                continue  # another process was faster and has newer data
            except TrainyardError as exc:
                log.warning("look at run %s: %s", stored.value.name, exc)
                self.errors.append(exc)
        return True

    def _listed(self, names: set[str]) -> dict[str, JobStatus]:
        """Azure ML's statuses of these jobs. The listing follows the reading of the rows, and so is newer."""
        seen: dict[str, JobStatus] = {}
        try:
            for status in self.ports.jobs.listed(self.hour):
                if status.name in names:
                    seen[status.name] = status
                    if len(seen) == len(names):
                        break
        except TrainyardError as exc:  # archives and submissions continue without the list
            self.errors.append(exc)
            self.alone = 0
        return seen

    def _reconcile_run(self, stored: Stored[Run], listed: dict[str, JobStatus]) -> None:
        run, now = stored.value, self.ports.clock()
        if run.archiving.gave_up_at is not None:
            return
        if is_over(run):
            self._archive(stored)
            return
        if run.cancel.asked_at is not None:
            ask_for_submission(self.ports.queues, run)
        elif run.progress.state is RunState.RECEIVED and now - run.created_at > SUBMIT_FOR:
            transition(self.ports, run.name, RunState.FAILED, "It could not be submitted for a day.")
            return
        elif not run.jobs.job and now - run.created_at > PATIENCE:
            ask_for_submission(self.ports.queues, run)
        self.ports.happened(RunReconciled(run))
        self._follow(stored, listed)

    def _follow(self, stored: Stored[Run], listed: dict[str, JobStatus]) -> None:
        run = stored.value
        seen: dict[str, JobStatus | None] = {}
        for job in workload(run).live_jobs(run):
            if job in listed:
                seen[job] = listed[job]
            elif run.progress.state is not RunState.RECEIVED and self.alone > 0:
                self.alone -= 1
                seen[job] = self.ports.jobs.status(job)
        if not workload(run).may_change(run, seen):
            return
        whole = self.ports.runs.get(run.name)  # with its request, which a page omits
        if whole.etag != stored.etag:
            raise Changed(f"Run {run.name} changed since its page was read; the list may be older.")
        follow(self.ports, whole, explained(self.ports.jobs, seen))

    def _archive(self, stored: Stored[Run]) -> None:
        """Request the archive again, after twice the previous wait, or abandon archiving."""
        run = stored.value
        if self.ports.clock() - run.progress.history[-1].at < PATIENCE * 2**run.archiving.tries:
            return
        if run.archiving.tries < ARCHIVE_TRIES:
            self.ports.runs.update(
                stored, replace(run, archiving=replace(run.archiving, tries=run.archiving.tries + 1))
            )
            ask_for_archive(self.ports.queues, run.name)
            return
        why = run.archiving.error or "It was not archived; the poison messages of the queue background say why."
        log.error("run %s: archiving is given up. %s", run.name, why)
        self.ports.happened(ArchiveGivenUp(run))
        self.ports.runs.update(
            stored,
            replace(run, archiving=replace(run.archiving, gave_up_at=self.ports.clock(), error=why)),
        )
