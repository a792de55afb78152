"""Jobs: their submission, their events, their archive, and the timer that asks after them."""

from __future__ import annotations

import os

import azure.functions as func

from functions import telemetry
from functions.attribution import attributed
from functions.going_on import submit_run
from functions.keyed_lock import KeyedLock
from functions.on_demand import on_demand
from shared.bootstrap import schedules as the_schedules
from shared.bootstrap import studies as the_studies
from shared.bootstrap import system as the_system
from shared.kernel import places
from shared.kernel.index_settings import reconcile_schedule

with on_demand():
    from shared import reconcile
    from shared.deadlines import look as dates
    from shared.events import announce, incoming
    from shared.runs import data, names
    from shared.runs.progress import follow, hourly_reconcile
    from shared.runs.results import archive
    from shared.sweeps import look

blueprint = func.Blueprint()
STORAGE = "AzureWebJobsStorage"
_one_at_a_time = KeyedLock()  # of runs: the events of one come several at once, and mostly say the same


@blueprint.queue_trigger("message", places.SUBMISSIONS, STORAGE)
@attributed
def submissions(message: func.QueueMessage) -> None:
    """A run whose job is to be put to Azure ML."""
    submit_run(the_system(), incoming.decode(message.get_body()))


@blueprint.queue_trigger("message", places.JOB_EVENTS, STORAGE)
@attributed
def job_events(message: func.QueueMessage) -> None:
    """A run event of Azure ML that Event Grid put on the queue."""
    _follow(incoming.decode(message.get_body()))


@blueprint.event_grid_trigger("event")
@attributed
def job_event(event: str) -> None:
    """The same event, from an Event Grid subscription that calls the function directly."""
    _follow(incoming.decode(event.encode()))


def _follow(event: incoming.Json) -> None:
    if job := incoming.job_of(event):
        with telemetry.span("follow run", run=names.run_of_job(job)), _one_at_a_time.of(names.run_of_job(job)):
            follow.follow_job(the_system(), job, incoming.status_of(event))


@blueprint.queue_trigger("message", places.RUN_LOOKS, STORAGE)
@attributed
def run_looks(message: func.QueueMessage) -> None:
    """A look at a sweep, at the runs of an hour that events may have missed, or at the data of a run that started."""
    request = incoming.decode(message.get_body())
    if "sweep" in request:
        sweep, number = incoming.text(request, "sweep"), request.get("number")
        with telemetry.span("look at sweep", run=sweep), _one_at_a_time.of(sweep):
            look.look_at_sweep(the_system(), the_studies(), sweep, number)
    elif "data_of" in request:
        run = incoming.text(request, "data_of")
        with telemetry.span("check data", run=run):
            data.check_data(the_system(), run)
    elif "paced" in request:
        run = incoming.text(request, "paced")
        with telemetry.span("look at pace", run=run), _one_at_a_time.of(run):
            dates.look_at_pace(the_system(), run, request.get("token"))
    else:
        with telemetry.span("look at runs"):
            hourly_reconcile.look_at_hour(the_system(), incoming.text(request, "hour"))


@blueprint.queue_trigger("message", places.ARCHIVES, STORAGE)
@attributed
def archives(message: func.QueueMessage) -> None:
    """A final run whose outputs are to be copied."""
    run = incoming.text(incoming.decode(message.get_body()), "run")
    with telemetry.span("archive run", run=run):
        archive.archive_run(the_system(), run)


@blueprint.queue_trigger("message", places.ANNOUNCEMENTS, STORAGE)
@attributed
def announcements(message: func.QueueMessage) -> None:
    """A lifecycle event of our own, on its way to the topic."""
    announce.publish(the_system(), incoming.decode(message.get_body()))


@blueprint.timer_trigger("timer", reconcile_schedule(os.environ))
@attributed
def reconcile_timer(timer: func.TimerRequest) -> None:
    """Make true what events did not tell."""
    try:
        with telemetry.span("reconcile"):
            reconcile.reconcile(the_system(), the_schedules())
    finally:
        telemetry.measure_queues(the_system())
