"""Where the studies of sweeps are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from shared.jobs.search import Sweep
from shared.runs.ports import RunPorts
from shared.sweeps.model import Trial, TrialState
from shared.sweeps.sampling import Draw


class Journal(Protocol):
    """Logs, numbered from 0, that are never changed. tests/fakes/studies.py and the tables pass the same tests."""

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """The logs from this number on, in their order."""

    def append_at(self, number: int, logs: list[dict[str, Any]]) -> None:
        """Write these logs, at most 100, from this number on. Raises Changed, and writes none, if one is there."""


class Study(Protocol):
    """A sweep's trials as they were read, and changes that nobody sees before `commit`."""

    @property
    def trials(self) -> list[Trial]:
        """All trials, by number, with the changes."""

    @property
    def room(self) -> int:
        """How many changes more one commit takes."""

    def add(self, drawn: Draw) -> int:
        """A trial with what was drawn for it; returns its number."""

    def tell(self, number: int, values: Sequence[float]) -> None:
        """Further values of a running trial's metric."""

    def end(self, number: int, state: TrialState, value: float | None, dollars: float = 0.0) -> None:
        """The end of a trial, with its best value and what it cost. Takes two changes."""

    def commit(self) -> None:
        """Write all changes at once. Raises Changed, and writes none, if somebody wrote since the study was read.

        Then it may be another look's: whoever has committed reads it no more.
        """


class Studies(Protocol):
    """The studies of sweeps, by the sweeps' names."""

    def open(self, name: str, sweep: Sweep) -> Study:
        """The study as it is now; a new one has no trials. One partition is read, or what is new of it."""

    def trials(self, name: str, sweep: Sweep) -> list[Trial]:
        """Its trials as they are now, to be looked at."""


class SweepPorts(RunPorts, Protocol):
    """Those of runs, and what sweeps learned."""

    @property
    def studies(self) -> Studies: ...
