"""The store of the sweeps' studies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from shared.jobs.search import Sweep
from shared.kernel.parts import FeatureStore
from shared.sweeps.model import Trial, TrialState
from shared.sweeps.sampling import Draw


class Journal(Protocol):
    """An append-only list of logs, numbered from 0. tests/fakes/sweeps.py and the tables pass the same tests."""

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """The logs from this number on, in order."""

    def append_at(self, number: int, logs: list[dict[str, Any]]) -> None:
        """Write these logs, at most 100, from this number on.

        Raises Changed, and writes none, if a log exists there.
        """


class Study(Protocol):
    """A sweep's trials in the state of the read, and changes until `commit` makes them visible."""

    @property
    def trials(self) -> list[Trial]:
        """Every trial, by number, including the changes."""

    @property
    def room(self) -> int:
        """How many more changes fit into the commit."""

    def add(self, drawn: Draw) -> int:
        """Add a trial with the drawn values, and return the trial's number."""

    def add_values(self, number: int, values: Sequence[float]) -> None:
        """Add values of a running trial's metric."""

    def end(self, number: int, state: TrialState, value: float | None, dollars: float = 0.0) -> None:
        """End a trial, with the best value and the cost in dollars. Counts as two changes."""

    def commit(self) -> None:
        """Write all changes together. Raises Changed, and writes none, if another write came after the study was read.

        Do not read this study after the commit: another check may already use it.
        """


class Studies(Protocol):
    """The studies of sweeps, by the sweeps' names."""

    def open(self, name: str, sweep: Sweep) -> Study:
        """The current study; a new study has no trials. Reads one partition, or only the partition's new part."""

    def trials(self, name: str, sweep: Sweep) -> list[Trial]:
        """The current trials of the study, read-only."""


STUDIES: FeatureStore[Studies] = FeatureStore("studies")
