"""Studies of sweeps in Optuna's format, on Trainyard's own journal.

A check of a sweep reads the journal once, or only what is new since this process's last check. Its changes are drafted,
and then written in one transaction directly after the last log that was read: so decisions based on an older state are
never written.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import BaseJournalBackend
from optuna.study import StudyDirection

from shared.jobs.search import Sweep
from shared.sweeps.model import Trial, TrialState
from shared.sweeps.ports import Journal, Study
from shared.sweeps.sampling import Draw, distributions

optuna.logging.set_verbosity(logging.ERROR)
MOST_OPEN = 20  # studies that a process caches
MOST_CHANGES = 100  # per transaction
DOLLARS = "dollars"  # attribute of a finished trial
OWN = "of_sweep"  # attribute of trials that a sweep started
_STATES = {
    TrialState.RUNNING: optuna.trial.TrialState.RUNNING,
    TrialState.COMPLETED: optuna.trial.TrialState.COMPLETE,
    TrialState.STOPPED: optuna.trial.TrialState.PRUNED,
    TrialState.FAILED: optuna.trial.TrialState.FAIL,
}
_OURS = {theirs: ours for ours, theirs in _STATES.items()} | {optuna.trial.TrialState.WAITING: TrialState.RUNNING}


class _Draft(BaseJournalBackend):
    """The journal as of `refresh`, followed by drafts."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._read, self._reading = 0, True
        self.drafts: list[dict[str, Any]] = []

    def refresh(self) -> None:
        self._reading = True

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        if self._reading:
            for log in self._journal.read_logs(log_number_from):
                self._read += 1
                yield log
            self._reading = False
        yield from self.drafts[max(0, log_number_from - self._read) :]

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        self.drafts += json.loads(json.dumps(logs))

    def commit(self) -> None:
        self._journal.append_at(self._read, self.drafts)
        self._read, self.drafts = self._read + len(self.drafts), []


class JournalStudies:
    """Implements shared.sweeps.ports.Studies. One thread at a time works on a sweep."""

    def __init__(self, journal: Callable[[str], Journal]) -> None:
        self._journal = journal
        self._open: OrderedDict[str, JournalStudy] = OrderedDict()
        self._lock = threading.Lock()

    def trials(self, name: str, sweep: Sweep) -> list[Trial]:
        study = self._opened(name, sweep)
        trials = study.trials
        if study.room == MOST_CHANGES:  # a new study still has to write its start, which a check does
            self._keep(study)
        return trials

    def open(self, name: str, sweep: Sweep) -> Study:
        return self._opened(name, sweep)

    def _opened(self, name: str, sweep: Sweep) -> JournalStudy:
        with self._lock:
            study = self._open.pop(name, None)
        if study is None or not study.refreshed():
            study = JournalStudy(self._journal(name), name, sweep, self._keep)
        return study

    def _keep(self, study: JournalStudy) -> None:
        """Cache the study. Only a study whose drafts were written equals its journal."""
        with self._lock:
            self._open[study.name] = study
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)


class JournalStudy:
    """Implements shared.sweeps.ports.Study."""

    def __init__(self, journal: Journal, name: str, sweep: Sweep, keep: Callable[[JournalStudy], None]) -> None:
        self.name, self._sweep, self._keep = name, sweep, keep
        self._over: dict[int, Trial] = {}  # finished trials never change
        self._draft = _Draft(journal)
        self._storage = JournalStorage(self._draft)
        direction = StudyDirection.MAXIMIZE if sweep.maximize else StudyDirection.MINIMIZE
        try:
            self._id = self._storage.get_study_id_from_name(name)
        except KeyError:
            self._id = self._storage.create_new_study([direction], name)
            if sweep.metric:
                self._storage.set_study_system_attr(self._id, "study:metric_names", [sweep.metric])

    def refreshed(self) -> bool:
        """Read what is new. Return False for a study with drafts."""
        self._draft.refresh()
        return not self._draft.drafts

    @property
    def trials(self) -> list[Trial]:
        return [self._read(each) for each in self._storage.get_all_trials(self._id, deepcopy=False)]

    def _read(self, trial: optuna.trial.FrozenTrial) -> Trial:
        if not trial.state.is_finished():
            return _trial(trial)
        if trial.number not in self._over:
            self._over[trial.number] = _trial(trial)
        return self._over[trial.number]

    @property
    def room(self) -> int:
        return MOST_CHANGES - len(self._draft.drafts)

    def add(self, drawn: Draw) -> int:
        trial = optuna.create_trial(
            params=dict(drawn),
            distributions=distributions(self._sweep),
            state=optuna.trial.TrialState.RUNNING,
            user_attrs={OWN: True},
        )
        trial.datetime_start = datetime.now(UTC)
        identity = self._storage.create_new_trial(self._id, trial)
        return self._storage.get_trial_number_from_id(identity)

    def add_values(self, number: int, values: Sequence[float]) -> None:
        identity = self._identity(number)
        count = len(self._storage.get_trial(identity).intermediate_values)
        for step, value in enumerate(values, count + 1):
            self._storage.set_trial_intermediate_value(identity, step, value)

    def end(self, number: int, state: TrialState, value: float | None, dollars: float = 0.0) -> None:
        self._storage.set_trial_user_attr(self._identity(number), DOLLARS, dollars)
        values = None if value is None or state is TrialState.FAILED else [value]
        self._storage.set_trial_state_values(self._identity(number), _STATES[state], values)

    def commit(self) -> None:
        if self._draft.drafts:
            self._draft.commit()
        self._keep(self)

    def _identity(self, number: int) -> int:
        return self._storage.get_trial_id_from_study_id_trial_number(self._id, number)


def _trial(trial: optuna.trial.FrozenTrial) -> Trial:
    values = [value for _, value in sorted(trial.intermediate_values.items())] or list(trial.values or ())
    attributes, best = trial.user_attrs, trial.values[0] if trial.values else None
    return Trial(
        trial.number, trial.params, _OURS[trial.state], values, attributes.get(DOLLARS), OWN in attributes, best
    )
