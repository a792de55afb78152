"""Diagnosis: each failed run has the cause of its failure, from the logs of its ranks, in its row and its archive."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from shared.diagnosis.causes import Diagnosis
from shared.diagnosis.failed_run import notice_facts, with_diagnosis
from shared.kernel.parts import FeaturePart, View
from shared.runs import facts as runs
from shared.runs.features import Feature
from shared.runs.model import Run

SHOWN = Annotated[Diagnosis | None, Meta(description="Null for a run that did not fail, or is not archived yet.")]


def shown(run: Run) -> Any:
    """Return the run's diagnosis as plain values."""
    return msgspec.to_builtins(run.feature(Diagnosis))


FEATURE = Feature(
    parts=(FeaturePart("diagnosis", Diagnosis, view=View(SHOWN, shown)),),
    notice_facts=notice_facts,
    in_the_same_write={runs.RunBeingArchived: (with_diagnosis,)},
)
