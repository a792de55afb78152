"""Move runs when no event does, by the hour.

Runs are looked at by the hour in which they were made. One message asks for one hour; its look reads the hour's runs
that are not settled in pages, lists Azure ML's jobs of that hour in pages, and follows those that differ. So ten
thousand live runs cost some hundred requests, where asking for each would cost ten thousand
([decision 11](../../docs/adr/0011-looks-by-the-hour.md)).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from shared.jobs.model import JobStatus
from shared.kernel.errors import BadInput, Changed, TrainyardError
from shared.kernel.versioned import Stored
from shared.runs.decide import is_over
from shared.runs.facts import ArchiveGivenUp, RunReconciled
from shared.runs.messages import CheckHour
from shared.runs.model import Run, RunState
from shared.runs.names import hour_has_passed, start_of_hour
from shared.runs.ports import RunPorts
from shared.runs.progress.follow import explained, follow
from shared.runs.progress.transitions import (
    ask_for_archive,
    ask_for_submission,
    transition,
)
from shared.runs.progress.workloads import workload

log = logging.getLogger(__name__)

PATIENCE = timedelta(seconds=60)  # a message sent within that time is probably on its way still
AGAIN_SECONDS = 20.0  # an hour that was looked at so shortly ago is not looked at again
APART_SECONDS = 10.0  # between the looks at two hours: all at once would hold up the events
ALL_WITHIN_SECONDS = 240.0  # less than the timer's period
RUNS_A_PAGE = 2000
BUDGET = timedelta(seconds=40)  # of one look, after which no page is begun; what is left goes on in the next
LONGEST = timedelta(minutes=4)  # for a page; functionTimeout, 10 minutes, ends the worker
ASKED_ALONE = 50  # jobs that the list did not show and that are asked for one by one, in one look
ARCHIVE_TRIES = 12  # until archiving a run is given up
SUBMIT_FOR = timedelta(days=1)  # until submitting a run is given up


def ask_for_looks(ports: RunPorts) -> None:
    """Ask for a look at every hour in which runs were made that may not be settled, one after the other."""
    hours = ports.runs.hours()
    apart = min(APART_SECONDS, ALL_WITHIN_SECONDS / max(len(hours), 1))
    for number, hour in enumerate(reversed(hours)):
        ports.queues.send(CheckHour(hour), int(number * apart))


def look_at_hour(ports: RunPorts, message: CheckHour) -> None:
    """Reconcile every unsettled run of the hour. One that fails stops no other; its error is raised last.

    Does nothing if another look at this hour was a moment ago. An hour in which all are settled is taken off the list
    once no run can be added to it.
    """
    hour = message.hour
    try:
        start_of_hour(hour)
    except ValueError as exc:
        raise BadInput(f"{hour[:40]!r} is not an hour like 20260131T08.") from exc
    if not ports.runs.claim_hour(hour, ports.clock(), AGAIN_SECONDS):
        return
    look = _HourLook(ports, hour, ports.clock())
    look.all_pages()
    if look.errors:
        raise look.errors[0]


@dataclass
class _HourLook:
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
            self.unsettled += sum(stored.value.archive.gave_up_at is None for stored in live)
            whole = self._page(live)
            if whole and len(page) < RUNS_A_PAGE:
                break
            if not whole or self._took(BUDGET):  # the runs' rows remember nothing of a look: it begins anew
                self.ports.queues.send(CheckHour(self.hour), AGAIN_SECONDS)
                return
            before = page[-1].value
        if not self.unsettled and hour_has_passed(self.hour, self.ports.clock()):
            self.ports.runs.drop_hour(self.hour)

    def _took(self, time: timedelta) -> bool:
        return self.ports.clock() - self.began > time

    def _page(self, page: list[Stored[Run]]) -> bool:
        """Look after these runs. False: not after all of them, since that takes too long."""
        going = [stored for stored in page if not is_over(stored.value)]
        names = {job for stored in going for job in workload(stored.value).live_jobs(stored.value)}
        seen = self._listed(names) if names else {}
        for stored in page:
            if self._took(LONGEST):
                return False
            try:
                self._look_after(stored, seen)
            except Changed:
                continue  # someone else was quicker, and knows more
            except TrainyardError as exc:
                log.warning("look at run %s: %s", stored.value.name, exc)
                self.errors.append(exc)
        return True

    def _listed(self, names: set[str]) -> dict[str, JobStatus]:
        """Azure ML's statuses of these jobs, listed after their rows were read, so newer."""
        seen: dict[str, JobStatus] = {}
        try:
            for status in self.ports.jobs.listed(self.hour):
                if status.name in names:
                    seen[status.name] = status
                    if len(seen) == len(names):
                        break
        except TrainyardError as exc:  # archives and submissions go on without it
            self.errors.append(exc)
            self.alone = 0
        return seen

    def _look_after(self, stored: Stored[Run], listed: dict[str, JobStatus]) -> None:
        run, now = stored.value, self.ports.clock()
        if run.archive.gave_up_at is not None:
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
        whole = self.ports.runs.get(run.name)  # with its request, which a page leaves out
        if whole.etag != stored.etag:
            raise Changed(f"Run {run.name} changed since its page was read; what was listed may be older.")
        follow(self.ports, whole, explained(self.ports.jobs, seen))

    def _archive(self, stored: Stored[Run]) -> None:
        """Request the archive again, after twice the last wait, or abandon it."""
        run = stored.value
        if self.ports.clock() - run.progress.history[-1].at < PATIENCE * 2**run.archive.tries:
            return
        if run.archive.tries < ARCHIVE_TRIES:
            self.ports.runs.update(
                stored, replace(stored.value, archive=replace(stored.value.archive, tries=run.archive.tries + 1))
            )
            ask_for_archive(self.ports.queues, run.name)
            return
        why = run.archive.error or "Its archive did not come about; the poison messages of the queue archives say why."
        log.error("run %s: archiving is given up. %s", run.name, why)
        self.ports.happened(ArchiveGivenUp(run))
        self.ports.runs.update(
            stored,
            replace(stored.value, archive=replace(stored.value.archive, gave_up_at=self.ports.clock(), error=why)),
        )
