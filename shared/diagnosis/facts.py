"""Facts about the health of running runs."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.facts import Fact
from shared.runs.model import Run
from shared.runs.pulse import Ailment


@dataclass(frozen=True)
class RunIsSick(Fact):
    """A running run makes no progress, or soon will not. Published before the row records it."""

    run: Run
    ailment: Ailment
