"""Studies of sweeps on Trainyard's own journal, in the format of Optuna's journals, which Optuna reads and continues.

A check of a sweep reads the journal once, or only what is new since this process's last check. Its changes are drafted,
and then written in one transaction directly after the last log that was read: so decisions based on an older state are
never written.

The format is that of optuna/storages/journal/_storage.py, versions 3 to 5. Trials have numbers in each study of the
journal, and ids across all studies.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from shared.jobs.search import CHOICE, NORMAL, Drawn, Parameter, Sweep
from shared.kernel.errors import BadInput
from shared.sweeps.model import Trial, TrialState
from shared.sweeps.ports import Journal, Study
from shared.sweeps.sampling import Draw, is_int

MOST_OPEN = 20  # studies that a process caches
MOST_CHANGES = 100  # per transaction
DOLLARS = "dollars"  # attribute of a finished trial
OWN = "of_sweep"  # attribute of trials that a sweep started
CREATE_STUDY, SET_STUDY_ATTRIBUTE, CREATE_TRIAL, SET_PARAMETER, SET_STATE, SET_VALUE, SET_ATTRIBUTE = (
    0,
    3,
    4,
    5,
    6,
    7,
    8,
)
MAXIMIZE, MINIMIZE = 2, 1
_STATES = {TrialState.RUNNING: 0, TrialState.COMPLETED: 1, TrialState.STOPPED: 2, TrialState.FAILED: 3}
_OURS = {theirs: ours for ours, theirs in _STATES.items()} | {4: TrialState.RUNNING}  # 4: waiting in a queue
Log = Mapping[str, Any]


@dataclass
class _Record:
    """One trial of the journal."""

    id: int
    state: TrialState
    drawn: dict[str, Drawn] = field(default_factory=dict)
    told: dict[int, float] = field(default_factory=dict)  # by step
    values: Sequence[float] = ()
    attributes: dict[str, Any] = field(default_factory=dict)

    def trial(self, number: int) -> Trial:
        told = [value for _, value in sorted(self.told.items())] or list(self.values)
        best = self.values[0] if self.values else None
        own = OWN in self.attributes
        return Trial(number, self.drawn, self.state, told, self.attributes.get(DOLLARS), own, best)


class _Replay:
    """The trials of the study with this name, after the applied logs."""

    def __init__(self, name: str) -> None:
        self._name, self.id = name, -1
        self._studies: list[str] = []
        self.ids = 0  # trials of all studies so far
        self._by_id: dict[int, _Record] = {}
        self.records: list[_Record] = []

    @property
    def exists(self) -> bool:
        return self.id >= 0

    def apply(self, log: Log) -> None:
        """Apply one log. Changes of ended trials are void, as in Optuna."""
        kind = log["op_code"]
        if kind == CREATE_STUDY and log["study_name"] not in self._studies:
            self._studies.append(log["study_name"])
            if log["study_name"] == self._name:
                self.id = len(self._studies) - 1
        elif kind == CREATE_TRIAL and 0 <= log["study_id"] < len(self._studies):
            self.ids += 1
            if log["study_id"] == self.id:
                record = _created(self.ids - 1, log)
                self.records.append(record)
                self._by_id[record.id] = record
        elif (changed := self._by_id.get(log.get("trial_id", -1))) and changed.state is TrialState.RUNNING:
            _change(changed, log)


def _created(identity: int, log: Log) -> _Record:
    spaces = log.get("distributions") or {}
    drawn = {name: _outer(spaces[name], value) for name, value in (log.get("params") or {}).items()}
    told = {int(step): value for step, value in (log.get("intermediate_values") or {}).items()}
    value = log.get("value")
    values = log.get("values") or ([] if value is None else [value])
    return _Record(identity, _OURS[log.get("state", 0)], drawn, told, values, dict(log.get("user_attrs") or {}))


def _change(record: _Record, log: Log) -> None:
    kind = log["op_code"]
    if kind == SET_PARAMETER:
        record.drawn[log["param_name"]] = _outer(log["distribution"], log["param_value_internal"])
    elif kind == SET_STATE:
        record.state = _OURS[log["state"]]
        record.values = log["values"] or record.values
    elif kind == SET_VALUE:
        record.told[int(log["step"])] = log["intermediate_value"]
    elif kind == SET_ATTRIBUTE:
        record.attributes |= log["user_attr"]


def _outer(space: str, value: float) -> Drawn:
    """The value for a number of the journal: the number itself, or the choice at this index."""
    read = json.loads(space)
    if read["name"] == "CategoricalDistribution":
        choice: Drawn = read["attributes"]["choices"][int(value)]
        return choice
    return int(value) if read["name"].startswith("Int") else float(value)


def _inner(parameter: Parameter, value: Drawn) -> float:
    if parameter.kind == CHOICE:
        return parameter.values.index(value)
    if isinstance(value, str):
        raise BadInput(f"{value!r} is not a number.")
    return value


def distribution(parameter: Parameter) -> str:
    """The parameter's range as Optuna writes it in a journal. Normal kinds are drawn as quantiles."""
    if parameter.kind == CHOICE:
        return json.dumps({"name": "CategoricalDistribution", "attributes": {"choices": list(parameter.values)}})
    low, high = parameter.ends if parameter.kind not in NORMAL else (0.0, 1.0)
    log = parameter.is_log and parameter.kind not in NORMAL
    step: float | None = parameter.step if parameter.kind not in NORMAL and not log else 0.0
    if parameter.kind not in NORMAL and is_int(parameter):
        whole = {"log": log, "step": int(parameter.step or 1), "low": int(low), "high": int(high)}
        return json.dumps({"name": "IntDistribution", "attributes": whole})
    ends = {"low": float(low), "high": float(high)}
    return json.dumps({"name": "FloatDistribution", "attributes": {"step": step or None, **ends, "log": log}})


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
        """Cache the study. Only a study without unwritten drafts equals its journal."""
        with self._lock:
            self._open[study.name] = study
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)


class JournalStudy:
    """Implements shared.sweeps.ports.Study. The journal as of `refreshed`, followed by drafts."""

    def __init__(self, journal: Journal, name: str, sweep: Sweep, keep: Callable[[JournalStudy], None]) -> None:
        self.name, self._sweep, self._keep = name, sweep, keep
        self._journal, self._read = journal, 0
        self._drafts: list[dict[str, Any]] = []
        self._over: dict[int, Trial] = {}  # finished trials never change
        self._replay = _Replay(name)
        self.refreshed()
        if not self._replay.exists:
            self._draft(CREATE_STUDY, study_name=name, directions=[MAXIMIZE if sweep.maximize else MINIMIZE])
            if sweep.metric:
                attribute = {"study:metric_names": [sweep.metric]}
                self._draft(SET_STUDY_ATTRIBUTE, study_id=self._replay.id, system_attr=attribute)

    def refreshed(self) -> bool:
        """Read the new logs. Return False, and read nothing, for a study with drafts."""
        if self._drafts:
            return False
        for log in self._journal.read_logs(self._read):
            self._read += 1
            self._replay.apply(log)
        return True

    @property
    def trials(self) -> list[Trial]:
        return [self._trial(number, record) for number, record in enumerate(self._replay.records)]

    def _trial(self, number: int, record: _Record) -> Trial:
        if record.state is TrialState.RUNNING:
            return record.trial(number)
        if number not in self._over:
            self._over[number] = record.trial(number)
        return self._over[number]

    @property
    def room(self) -> int:
        return MOST_CHANGES - len(self._drafts)

    def add(self, drawn: Draw) -> int:
        space = self._sweep.space
        params = {name: _inner(space[name], value) for name, value in drawn.items()}
        spaces = {name: distribution(parameter) for name, parameter in space.items()}
        self._draft(
            CREATE_TRIAL, study_id=self._replay.id, datetime_start=_now(), state=0, value=None, values=None,
            distributions=spaces, params=params, user_attrs={OWN: True}, system_attrs={}, intermediate_values={},
        )  # fmt: skip
        return len(self._replay.records) - 1

    def add_values(self, number: int, values: Sequence[float]) -> None:
        record = self._replay.records[number]
        for step, value in enumerate(values, len(record.told) + 1):
            self._draft(SET_VALUE, trial_id=record.id, step=step, intermediate_value=value)

    def end(self, number: int, state: TrialState, value: float | None, dollars: float = 0.0) -> None:
        identity = self._replay.records[number].id
        values = None if value is None or state is TrialState.FAILED else [value]
        self._draft(SET_ATTRIBUTE, trial_id=identity, user_attr={DOLLARS: dollars})
        self._draft(SET_STATE, trial_id=identity, state=_STATES[state], values=values, datetime_complete=_now())

    def commit(self) -> None:
        if self._drafts:
            self._journal.append_at(self._read, self._drafts)
            self._read, self._drafts = self._read + len(self._drafts), []
        self._keep(self)

    def _draft(self, kind: int, **fields: Any) -> None:
        log = {"op_code": kind, "worker_id": "trainyard", **fields}
        self._drafts.append(log)
        self._replay.apply(log)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
