"""End jobs without a live run: a job that appears after the end of its run costs nodes, and nobody watches the job.

The timer reads the newest page of the workspace's jobs and one older page, whose place a cursor keeps. So each period
costs two requests to Azure ML, however many jobs there are, and every job is checked in turn.
"""

from __future__ import annotations

import logging

from shared.clusters.ports import ClusterPorts
from shared.jobs.ports import Jobs, LivePage
from shared.kernel.errors import BadInput
from shared.kernel.person import Person
from shared.runs.codes import Deed
from shared.runs.decide import is_over
from shared.runs.find_run import find_run
from shared.runs.names import run_of_job
from shared.runs.views.notes_and_tags import note_deed

log = logging.getLogger(__name__)

CURSOR = "jobs"
OWNER = Person("Trainyard")


def end_stray_jobs(ports: ClusterPorts) -> None:
    """Cancel the live jobs of ended runs, and record the cancels on the runs. Other people's jobs stay unchanged."""
    newest = ports.jobs.live_page()
    cursor = ports.drops.cursors([CURSOR]).get(CURSOR, "")
    older = _page_at(ports.jobs, cursor) if cursor else newest
    if older.token != cursor:
        ports.drops.move_cursor(CURSOR, older.token)
    live = {name for name, *_ in ports.runs.live()}
    for job in dict.fromkeys((*newest.jobs, *older.jobs)):
        if run_of_job(job) not in live:
            _end_if_stray(ports, job)


def _page_at(jobs: Jobs, cursor: str) -> LivePage:
    try:
        return jobs.live_page(cursor)
    except BadInput as exc:
        log.info("the walk through the jobs starts again: %s", exc)
        return LivePage((), "")


def _end_if_stray(ports: ClusterPorts, job: str) -> None:
    name = run_of_job(job)
    run = find_run(ports.runs, name)  # None for a job of another app in the workspace
    if run and is_over(run):
        log.warning("job %s runs, and its run %s is %s: it is canceled", job, name, run.progress.state)
        ports.jobs.cancel(job)
        note_deed(ports, name, f"ended job {job}, which started after the run's end", OWNER, Deed.OTHER)
