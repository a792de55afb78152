"""The studies of sweeps in memory, which pass the same tests as the studies in tables, and sweeps for tests."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

from optuna.storages.journal import BaseJournalBackend

from shared.adapters.sweeps.studies import JournalStudies
from shared.kernel.errors import Changed
from shared.runs.model import Run
from shared.sweeps.model import SweepSummary, TrialOf
from shared.sweeps.ports import STUDIES
from tests.fakes.ports import Crashing


class MemoryJournal(BaseJournalBackend):
    def __init__(self) -> None:
        self.logs: list[dict[str, Any]] = []

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        yield from copy.deepcopy(self.logs[log_number_from:])

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        self.append_at(len(self.logs), logs)

    def append_at(self, number: int, logs: list[dict[str, Any]]) -> None:
        if number < len(self.logs):
            raise Changed(f"There are {len(self.logs)} logs already.")
        self.logs += copy.deepcopy(logs)


def studies(journals: dict[str, Any], words: Iterable[str] = ()) -> JournalStudies:
    """Return the studies in these journals, as a new process has them."""
    words = iter(words)
    return JournalStudies(lambda name: Crashing(journals.setdefault(name, MemoryJournal()), words))


def stores(journals: dict[str, Any], words: Iterable[str] = ()) -> dict[str, Any]:
    """Return the stores of sweeps, as the System has them."""
    return {STUDIES.name: studies(journals, words)}


def sweep_of(run: Run) -> str:
    """Return the sweep whose trial the run is; '' for another run."""
    trial = run.feature(TrialOf)
    return trial.sweep if trial else ""


def standing_of(sweep: Run) -> SweepSummary:
    standing = sweep.feature(SweepSummary)
    assert standing is not None
    return standing
