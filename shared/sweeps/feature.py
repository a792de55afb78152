"""Sweeps: many trials of one training. The sweep and each trial are runs.

look.py advances a sweep, decide.py and sampling.py make the decisions, parent.py is the kind of the sweep's own run,
and trial_run.py makes the runs of the trials.
"""

from __future__ import annotations

from shared.kernel.parts import FeaturePart
from shared.runs import facts as runs
from shared.runs.features import Feature
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
)
TRIAL = FeaturePart("trial", TrialOf, was_there=lambda row: bool(row.get("sweep")))
FEATURE = Feature(
    parts=(SWEEP, TRIAL),
    workloads=(SweepParent(),),
    check=check_budget_has_prices,
    instead_of=trials_to_compare,
    reactions={
        runs.RunSubmitted: (check_sweep,),
        runs.RunReconciled: (check_sweep,),
        runs.RunStarted: (check_sweep_of_trial,),
        runs.CancelCarriedOut: (check_sweep,),
        runs.RunEnded: (check_sweep_of_trial,),
    },
)
