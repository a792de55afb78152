"""Facts about runs with a deadline."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from shared.kernel.facts import Fact
from shared.runs.model import Run


@dataclass(frozen=True)
class RunWillBeLate(Fact):
    """The work is larger than stated: the run will end at `done_at`, after its deadline. `why` explains the delay.

    Published before the row records it.
    """

    run: Run
    done_at: datetime
    why: str
