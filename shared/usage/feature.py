"""Usage: each run says how its nodes were used, from what Azure Monitor measures of every job."""

from __future__ import annotations

from shared.kernel.parts import FeaturePart
from shared.runs import facts as runs
from shared.runs.features import Feature
from shared.usage.idle import watch
from shared.usage.model import UsageSummary
from shared.usage.pulse import node_pulses
from shared.usage.reading import with_usage

FEATURE = Feature(
    parts=(FeaturePart("usage", UsageSummary),),
    in_the_same_write={runs.RunBeingArchived: (with_usage,)},
    watch=watch,
    node_pulses=node_pulses,
)
