"""Diagnosis: each failed run has the cause of its failure, from the logs of its ranks, in its row and its archive."""

from __future__ import annotations

from shared.diagnosis.causes import Diagnosis
from shared.diagnosis.failed_run import with_diagnosis
from shared.kernel.parts import FeaturePart
from shared.runs import facts as runs
from shared.runs.features import Feature

FEATURE = Feature(
    parts=(FeaturePart("diagnosis", Diagnosis),),
    in_the_same_write={runs.RunBeingArchived: (with_diagnosis,)},
)
