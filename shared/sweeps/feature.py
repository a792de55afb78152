"""Sweeps: many trials of one training. The sweep and each trial are runs.

look.py advances a sweep, decide.py and sampling.py make the decisions, parent.py is the kind of the sweep's own run,
and trial_run.py makes the runs of the trials.
"""

from __future__ import annotations

from shared.kernel.parts import FeaturePart
from shared.runs import facts as runs
from shared.runs.features import Feature, RunOutline
from shared.runs.model import Run
from shared.sweeps.checks import check_budget_has_prices
from shared.sweeps.compare import trials_to_compare
from shared.sweeps.model import SweepSummary, TrialOf
from shared.sweeps.parent import SweepParent
from shared.sweeps.reactions import check_sweep, check_sweep_of_trial

SWEEP = FeaturePart(
    "sweep",
    SweepSummary,
    column="sweep_standing",  # the previous version has the name of a trial's sweep in the column `sweep`
    hidden=("trials_beyond", "sweep_look"),
    was_there=lambda row: row.get("kind") == SweepParent.kind and row.get("trials_ended") is not None,
    in_rows=True,
)
TRIAL = FeaturePart("trial", TrialOf, was_there=lambda row: bool(row.get("sweep")), in_rows=True)


def sweep_of(run: Run) -> str:
    """Return the name of the sweep of which the run is a trial; '' for another run."""
    trial = run.feature(TrialOf)
    return trial.sweep if trial else ""


def outline_of(run: Run) -> RunOutline:
    sweep = run.feature(SweepSummary)
    if sweep is None:
        return RunOutline()
    return RunOutline(
        dollars=sweep.dollars, parts=sweep.begun, done_share=sweep.ended / sweep.most if sweep.most else None
    )


FEATURE = Feature(
    parts=(SWEEP, TRIAL),
    workloads=(SweepParent(),),
    check=check_budget_has_prices,
    part_of=sweep_of,
    outline=outline_of,
    instead_of=trials_to_compare,
    reactions={
        runs.RunSubmitted: (check_sweep,),
        runs.RunReconciled: (check_sweep,),
        runs.RunStarted: (check_sweep_of_trial,),
        runs.CancelCarriedOut: (check_sweep,),
        runs.RunEnded: (check_sweep_of_trial,),
    },
)
