"""Usage: each run records how its nodes were used, from Azure Monitor's measurements of every job."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from shared.kernel.parts import Cell, FeaturePart
from shared.runs import facts as runs
from shared.runs.features import Feature
from shared.runs.model import Run
from shared.usage.idle import watch
from shared.usage.model import UsageSummary
from shared.usage.pulse import node_pulses
from shared.usage.reading import with_usage

USED = Annotated[
    float | None,
    Meta(description="How busy its GPUs were, in percent, or else its processors; null if not measured."),
]


def used(run: Run) -> float | None:
    """Return how busy the run's GPUs were, in percent, or else its processors; None if this was not measured."""
    found = run.feature(UsageSummary)
    if found is None:
        return None
    return found.cpu if found.gpu is None else found.gpu


FEATURE = Feature(
    parts=(FeaturePart("usage", UsageSummary, cell=Cell("used", USED, used)),),
    in_the_same_write={runs.RunBeingArchived: (with_usage,)},
    watch=watch,
    node_pulses=node_pulses,
)
