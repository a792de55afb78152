"""What happens to runs with a date."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from shared.kernel.facts import Fact
from shared.runs.model import Run


@dataclass(frozen=True)
class RunWillBeLate(Fact):
    """The run's work is larger than was said: it will be done at `done_at`, after its date, and `why` says so. Stated
    before the row says so."""

    run: Run
    done_at: datetime
    why: str
