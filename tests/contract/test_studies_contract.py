"""The journal of sweeps' studies, in memory and in tables: Optuna's own storage tests, and our additions.

Optuna writes and reads the same format, so studies of a version that used Optuna continue.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import cast

import optuna
import pytest
from azure.data.tables import TableServiceClient
from optuna.storages import JournalStorage
from optuna.storages.journal import BaseJournalBackend
from optuna.testing.pytest_storages import StorageTestCase

from shared.adapters.storage.account import StorageClients
from shared.adapters.sweeps.studies import JournalStudies
from shared.adapters.sweeps.study_table import TableJournal
from shared.jobs.search import CHOICE, Parameter, Sweep
from shared.kernel.errors import Changed
from shared.sweeps.model import TrialState
from shared.sweeps.ports import Journal
from tests.fakes.sweeps import MemoryJournal

SWEEP = Sweep({"lr": Parameter("loguniform", (), -7.0, -1.0), "size": Parameter(CHOICE, (32, 64))}, "accuracy")


@pytest.fixture(params=["memory", "table"])
def journal(request: pytest.FixtureRequest) -> Callable[[str], MemoryJournal | TableJournal]:
    """Returns the journal of a name, each time with another reader."""
    if request.param == "memory":
        kept: dict[str, MemoryJournal] = {}
        return lambda name: kept.setdefault(name, MemoryJournal())
    clients: StorageClients = request.getfixturevalue("own_clients")
    text = request.getfixturevalue("own_connection_string")
    clients.table.create_table_if_not_exists("studies")
    own = uuid.uuid4().hex
    return lambda name: TableJournal(partial(TableServiceClient.from_connection_string, text), f"{own} {name}")


class TestOptunasOwn(StorageTestCase):
    """Optuna's own requirements of every storage."""

    @pytest.fixture
    def storage(self, journal: Callable[[str], MemoryJournal | TableJournal]) -> JournalStorage:
        return _optunas(journal("a"))


def test_a_log_is_written_under_its_number_or_not_at_all(journal: Callable[[str], Journal]) -> None:
    """Of two writers behind the same log, the second writes nothing, not even entries that would fit."""
    one, other = journal("a"), journal("a")
    one.append_at(0, [{"n": 0}, {"n": 1, "long": "x" * 100_000}])
    with pytest.raises(Changed):
        other.append_at(1, [{"n": 7}, {"n": 8}])
    other.append_at(2, [{"n": 2}])
    assert [log["n"] for log in one.read_logs(0)] == [0, 1, 2]
    assert [len(log["long"]) for log in one.read_logs(1) if "long" in log] == [100_000]
    assert list(journal("b").read_logs(0)) == []


def test_changes_come_together_and_only_on_what_was_read(journal: Callable[[str], Journal]) -> None:
    """If two readers of a study decide at once, one decision is written whole; the other is not written, and its
    reader can try again."""
    studies, others = JournalStudies(journal), JournalStudies(journal)
    study = studies.open("run-1", SWEEP)
    assert [study.add({"lr": 0.01, "size": 32}), study.add({"lr": 0.1, "size": 64})] == [0, 1]
    rival = others.open("run-1", SWEEP)
    rival.add({"lr": 0.001, "size": 32})
    study.commit()
    with pytest.raises(Changed):
        rival.commit()
    again = others.open("run-1", SWEEP)
    assert [trial.drawn for trial in again.trials] == [{"lr": 0.01, "size": 32}, {"lr": 0.1, "size": 64}]
    again.add_values(0, [0.1, 0.4])
    again.add_values(1, [0.2])
    again.end(1, TrialState.STOPPED, 0.2)
    again.commit()
    seen = studies.open("run-1", SWEEP).trials
    assert [(trial.state, list(trial.told)) for trial in seen] == [
        (TrialState.RUNNING, [0.1, 0.4]),
        (TrialState.STOPPED, [0.2]),
    ]


def test_anyone_opens_a_sweeps_study(journal: Callable[[str], MemoryJournal | TableJournal]) -> None:
    """optuna.load_study reads the trials that a sweep wrote; the sweep sees trials of other writers, but not as its
    own."""
    studies = JournalStudies(journal)
    study = studies.open("run-1", SWEEP)
    study.add({"lr": 0.01, "size": 32})
    study.end(0, TrialState.COMPLETED, 0.9, 0.5)
    study.commit()
    loaded = optuna.load_study(study_name="run-1", storage=_optunas(journal("run-1")))
    assert (loaded.best_params, loaded.best_value) == ({"lr": 0.01, "size": 32}, 0.9)
    asked = loaded.ask({"lr": optuna.distributions.FloatDistribution(0.001, 0.1, log=True)})
    loaded.tell(asked, 0.95)
    own, foreign = studies.open("run-1", SWEEP).trials
    assert (own.own, own.dollars, own.told) == (True, 0.5, [0.9])
    assert (foreign.own, foreign.state, foreign.told) == (False, TrialState.COMPLETED, [0.95])
    assert foreign.drawn == asked.params


def test_a_study_that_optuna_wrote_goes_on(journal: Callable[[str], MemoryJournal | TableJournal]) -> None:
    """Trials of every state and kind of parameter are read as Optuna reads them, beside another study's trials.
    Then more trials are added, which Optuna reads."""
    kept = journal("run-1")
    storage = _optunas(kept)
    other = optuna.create_study(storage=storage, study_name="other")
    other.ask({"lr": optuna.distributions.FloatDistribution(0, 1)})
    written = optuna.create_study(storage=storage, study_name="run-1", direction="maximize")
    for number in range(4):
        trial = written.ask()
        trial.suggest_float("lr", 0.001, 0.1, log=True)
        trial.suggest_int("layers", 1, 9)
        trial.suggest_categorical("size", [32, "large", True])
        trial.set_user_attr("of_sweep", True)
        trial.report(0.1 * number, 1)
        trial.report(0.2, 2)
        if number == 1:
            written.tell(trial, state=optuna.trial.TrialState.PRUNED)
        elif number == 2:
            written.tell(trial, state=optuna.trial.TrialState.FAIL)
        elif number == 3:
            written.tell(trial, 0.75)
    written.enqueue_trial({"lr": 0.01})
    study = JournalStudies(journal).open("run-1", SWEEP)
    running, completed = TrialState.RUNNING, TrialState.COMPLETED
    assert [trial.state for trial in study.trials] == [
        running,
        TrialState.STOPPED,
        TrialState.FAILED,
        completed,
        running,
    ]
    assert [dict(trial.drawn) for trial in study.trials] == [trial.params for trial in written.trials]
    assert [list(trial.told) for trial in study.trials] == [
        [0.0, 0.2],
        [0.1, 0.2],
        [0.2, 0.2],
        [pytest.approx(0.3), 0.2],
        [],
    ]
    assert (study.trials[3].value, study.trials[3].own, study.trials[4].own) == (0.75, True, False)
    study.end(0, completed, 0.9, 0.5)
    study.add({"lr": 0.02, "size": 64})
    study.commit()
    loaded = optuna.load_study(study_name="run-1", storage=_optunas(journal("run-1")))
    assert (loaded.best_value, loaded.best_trial.number, loaded.trials[5].params) == (0.9, 0, {"lr": 0.02, "size": 64})
    assert loaded.trials[0].user_attrs["dollars"] == 0.5
    assert len(optuna.load_study(study_name="other", storage=_optunas(journal("run-1"))).trials) == 1


def _optunas(journal: MemoryJournal | TableJournal) -> JournalStorage:
    return JournalStorage(cast("BaseJournalBackend", journal))
