"""Deadlines: finish a run by a given time at the lowest cost, on low-priority and dedicated nodes.

intake.py gives a run its deadline, look.py and decide.py make the decision at each check, and plan.py computes the
plan. kinds.py lists how each kind of run holds nodes; one_job.py is the kind of one job.
"""

from __future__ import annotations

from shared.deadlines.answers import DateCosts
from shared.deadlines.facts import RunWillBeLate
from shared.deadlines.intake import date_of, with_date
from shared.deadlines.kinds import holding
from shared.deadlines.model import Date
from shared.deadlines.reactions import announce_lateness, begin_pace, queue_pace_check, restart_pace_checks
from shared.kernel.parts import FeaturePart
from shared.runs import facts as runs
from shared.runs.features import BeforeStart, Feature, RunOutline
from shared.runs.model import Run

DATE = FeaturePart(
    "date",
    Date,
    hidden=("pool", "pools", "sightings", "next_look"),
    was_there=lambda row: bool(row.get("done_by")),
)


def price_on(run: Run, cluster: str) -> float | None:
    date = run.feature(Date)
    if date and cluster == date.due.dedicated_cluster:
        return date.due.dedicated_price
    return date.due.low_price if date and cluster in date.due.low_clusters else None


def mended(run: Run) -> Run:
    date = run.feature(Date)
    return holding(run).mended(run, date) if date else run


def outline_of(run: Run) -> RunOutline:
    date = run.feature(Date)
    if date is None:
        return RunOutline()
    return RunOutline(done_by=date.due.done_by, done_share=date.pace.done_share, late_since=date.pace.late_since)


FEATURE = Feature(
    parts=(DATE,),
    begin=with_date,
    before_start=(BeforeStart("date", DateCosts, date_of),),
    reactions={
        runs.RunRecorded: (begin_pace,),
        runs.RunStarted: (queue_pace_check,),
        runs.RunLosesNodes: (queue_pace_check,),
        runs.RunReconciled: (restart_pace_checks,),
        RunWillBeLate: (announce_lateness,),
    },
    price_on=price_on,
    outline=outline_of,
    mend=mended,
)
