"""Check a sweep: learn from the trials, stop losing trials, start new trials, and end the sweep.

The study is a write-ahead mark. Drawn values are committed first, on top of exactly the state that was read. The
trial's run is recorded afterwards, under a name derived from the trial's number. Of two concurrent checks only one can
commit, and any check that finds a trial without a run makes the run. A trial that lost keeps its slot until its nodes
are free.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from math import isfinite

from shared.jobs.search import MOST_TRIALS, Sweep
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.errors import Changed, Conflict, Impossible, NotFound
from shared.kernel.storage import Queues
from shared.runs import old_sentences
from shared.runs.codes import CancelCode
from shared.runs.decide import is_over
from shared.runs.find_run import find_run
from shared.runs.intake.insert_run import record
from shared.runs.model import Run, RunState
from shared.runs.node_use import ClusterUse
from shared.runs.ports import RunFilter, RunPorts, Runs
from shared.runs.progress.cancel import cancel_run
from shared.runs.progress.transitions import transition
from shared.runs.progress.workloads import workload
from shared.runs.views.metrics import Cursor, since
from shared.sweeps.decide import best_trial, losers, to_start
from shared.sweeps.messages import CheckSweep
from shared.sweeps.model import SweepSummary, Trial, TrialState, trial_run
from shared.sweeps.ports import STUDIES, Studies, Study
from shared.sweeps.sampling import draw, possible
from shared.sweeps.trial_run import SWEEP_TAG, run_of_trial
from shared.sweeps.trust import in_words

log = logging.getLogger(__name__)

BOOKS = 60  # checks by the clock between two readings of the books, for a sweep with a budget
CHECK_SECONDS = 5.0  # seconds between checks by the clock, for a sweep with early stopping, a budget or a time limit
TOLD_KEPT = 200  # values of one trial that the study stores


def advance_sweep(ports: RunPorts, message: CheckSweep) -> None:
    """Advance a sweep as far as possible now. A repeat, a late call, or a call for an ended sweep is safe.

    `number` identifies a check by the clock: only the number that the row expects queues the next check. Raises Changed
    if concurrent checks won every time: the message is then delivered again.
    """
    name, number, studies = message.sweep, message.number, ports.store(STUDIES)
    parent = ports.runs.get(name).value
    if parent.asked.request.sweep is None:
        return
    if is_over(parent):
        _end_stragglers(ports, studies, parent, parent.asked.request.sweep)
        return
    books = number is not None and number % BOOKS == 0

    def advance(parent: Run) -> None:
        if sweep := parent.asked.request.sweep:
            _SweepCheck(ports, studies, parent, sweep).advance(books)

    compare_and_set(ports.clock, f"Sweep {name}", lambda: ports.runs.get(name).value, advance, first=lambda: parent)
    _ask_for_next(ports.runs, ports.queues, name, number)


def _end_stragglers(ports: RunPorts, studies: Studies, parent: Run, sweep: Sweep) -> None:
    """Stop trials of another check, started during the end of the sweep."""
    for trial in studies.open(parent.name, sweep).trials:
        if trial.is_live:
            try:
                _stop(ports, trial_run(parent.name, trial.number), "it is over.")
            except NotFound:
                continue


def _ask_for_next(runs: Runs, queues: Queues, name: str, number: int | None) -> None:
    stored = runs.get(name)
    sweep = stored.value.asked.request.sweep
    by_clock = sweep and (sweep.stopping or sweep.budget or sweep.timeout_seconds)
    standing = _standing(stored.value)
    if number != standing.look or is_over(stored.value) or not by_clock:
        return
    try:
        after = runs.update(stored, stored.value.having(replace(standing, look=standing.look + 1))).value
    except Changed:
        after = runs.get(name).value  # mostly by a check after a fact, which leaves the expected number unchanged
    queues.send(CheckSweep(after.name, _standing(after).look), CHECK_SECONDS)


@dataclass
class _SweepCheck:
    ports: RunPorts
    studies: Studies
    parent: Run
    sweep: Sweep

    def advance(self, books: bool) -> None:
        study = self.studies.open(self.parent.name, self.sweep)
        live = [trial for trial in study.trials if trial.is_live]
        runs = {trial.number: self._run(trial) for trial in live}
        for trial in live:
            if run := runs[trial.number]:
                self._learn(study, trial, run)
        beyond = self._beyond(study.trials) if books and self.sweep.budget else _standing(self.parent).beyond
        dollars = self._dollars(study.trials, runs) + beyond
        closing = _standing(self.parent).closing or self._why_closing(dollars)
        self._end_trials(study.trials, runs, closing)
        if not closing:
            for _ in range(min(to_start(self.sweep, study.trials, possible(self.sweep)), study.room)):
                study.add(draw(self.sweep, self.parent.name, study.trials))
        trials = study.trials
        study.commit()
        closing = self._record_runs(trials, runs, closing)
        self._write(trials, runs, SweepSummary(dollars=round(dollars, 6), beyond=beyond, closing=closing))

    def _run(self, trial: Trial) -> Run | None:
        return find_run(self.ports.runs, trial_run(self.parent.name, trial.number))

    def _learn(self, study: Study, trial: Trial, run: Run) -> None:
        """Add the trial's new values, and its end, to the study."""
        number, ended = trial.number, is_over(run)
        if ended or (self.sweep.stopping and run.progress.state is RunState.RUNNING):
            values = self._reported(run)
            study.add_values(number, values[len(trial.told) : min(TOLD_KEPT, len(trial.told) + max(study.room - 2, 0))])
        if not ended or study.room < 2:
            return
        best = (max(values) if self.sweep.maximize else min(values)) if values else None
        if run.progress.state is RunState.COMPLETED and best is not None:
            state = TrialState.COMPLETED
        else:
            state = TrialState.STOPPED if _stopped(run) else TrialState.FAILED
        study.end(number, state, None if state is TrialState.FAILED else best, self._cost(run))

    def _reported(self, run: Run) -> list[float]:
        series = since(self.ports, run, Cursor(), self.sweep.metric)
        return [value for _, value, _ in series.get(self.sweep.metric, ()) if isfinite(value)]

    def _dollars(self, trials: list[Trial], runs: dict[int, Run | None]) -> float:
        """Cost of the trials' nodes so far. The study has the cost of ended trials."""
        costs = (trial.dollars for trial in trials if trial.dollars is not None)
        unsaid = (runs.get(trial.number) or self._run(trial) for trial in trials if trial.own and trial.dollars is None)
        return sum(costs) + sum(self._cost(run) for run in unsaid if run)

    def _cost(self, run: Run) -> float:
        return _cost(run, workload(run).uses(run, self.ports.clock()))

    def _beyond(self, trials: list[Trial]) -> float:
        """The books' charges to trials after the trials' end, for waiting and idle nodes."""
        ended = {trial_run(self.parent.name, trial.number): trial.dollars for trial in trials}
        extra, token = 0.0, ""
        while True:
            page = self.ports.runs.page(RunFilter(tag=f"{SWEEP_TAG}={self.parent.name}"), MOST_TRIALS, token)
            costs = ((ended.get(run.name), run.money.cost) for run in page.runs)
            extra += sum(max(0.0, cost.dollars - said) for said, cost in costs if cost and said is not None)
            if not (token := page.token):
                return extra

    def _why_closing(self, dollars: float) -> str:
        sweep, parent = self.sweep, self.parent
        if parent.cancel.asked_at is not None:
            return parent.cancel.why or "Canceled as asked."
        if sweep.budget and dollars >= sweep.budget:
            return f"Its trials have cost ${dollars:.2f}; its budget is ${sweep.budget:.2f}."
        limit = timedelta(seconds=sweep.timeout_seconds)
        if limit and self.ports.clock() - parent.created_at >= limit:
            return f"It has run into its time limit of {sweep.timeout_seconds} s."
        return ""

    def _end_trials(self, trials: list[Trial], runs: dict[int, Run | None], closing: str) -> None:
        """Cancel the runs of losing trials, or of every trial at the end of the sweep."""
        ends = dict.fromkeys(runs, closing) if closing else losers(self.sweep, trials)
        for number, why in ends.items():
            run = runs.get(number)
            if run and not is_over(run) and run.cancel.asked_at is None:
                _stop(self.ports, run.name, why)

    def _record_runs(self, trials: list[Trial], runs: dict[int, Run | None], closing: str) -> str:
        """Record the missing runs of trials. If a run can't be recorded, the sweep starts no more trials."""
        for trial in trials:
            if not trial.is_live or runs.get(trial.number):
                continue
            run = run_of_trial(self.parent, trial.number, dict(trial.drawn), self.ports.clock())
            try:
                runs[trial.number] = record(self.ports, run)
            except (Conflict, Impossible) as exc:
                closing = closing or str(exc)
        return closing

    def _write(self, trials: list[Trial], runs: dict[int, Run | None], standing: SweepSummary) -> None:
        """Write the summary of the trials, and the sweep's state."""
        closing = standing.closing
        best = best_trial(self.sweep, trials)
        begun = sum(trial.own for trial in trials)
        live = [trial for trial in trials if trial.is_live and (runs.get(trial.number) or not closing)]
        standing = replace(
            standing,
            begun=begun,
            ended=begun - len(live),
            best=trial_run(self.parent.name, best.number) if best else "",
            best_value=best.best(self.sweep.maximize) if best else None,
            early_values=in_words(self.sweep, trials),
            most=min(self.sweep.most_trials, possible(self.sweep)),
        )

        def stands(run: Run) -> Run:
            return run.having(replace(standing, look=_standing(run).look))

        over = not live and (closing or not to_start(self.sweep, trials, possible(self.sweep)))
        if over:
            state, why = _end_of(self.parent, trials, self.sweep, closing)
            transition(self.ports, self.parent.name, state, why, stands)
            return
        began = any(run and run.progress.state is RunState.RUNNING for run in runs.values())
        state = RunState.RUNNING if began or begun > len(live) else self.parent.progress.state
        if state is not self.parent.progress.state or stands(self.parent) != self.parent:
            transition(self.ports, self.parent.name, state, "", stands)


def _standing(parent: Run) -> SweepSummary:
    return parent.feature(SweepSummary) or SweepSummary()


def _stop(ports: RunPorts, trial: str, why: str) -> None:
    cancel_run(ports, trial, f"Stopped by its sweep: {why}", code=CancelCode.SWEEP)


def _stopped(run: Run) -> bool:
    """Whether the sweep stopped the trial."""
    return (run.cancel.code or old_sentences.cancel_code(run.cancel.why)) is CancelCode.SWEEP


def _cost(run: Run, uses: list[ClusterUse]) -> float:
    """The run's cost: from the books or, before the books have the cost, from the price."""
    spells = [
        spell for use in uses for spell in ((*use.waited, *use.ran) if workload(run).pays_while_waiting else use.ran)
    ]
    seconds = sum((spell.end - spell.begin).total_seconds() * spell.nodes for spell in spells)
    booked = run.money.cost.dollars if run.money.cost else 0.0
    return max(booked, seconds * run.money.price / 3600)


def _end_of(parent: Run, trials: list[Trial], sweep: Sweep, closing: str) -> tuple[RunState, str]:
    """The final state of a sweep, and the reason."""
    if parent.cancel.asked_at is not None:
        return RunState.CANCELED, closing
    if best_trial(sweep, trials):
        return RunState.COMPLETED, closing
    if any(trial.state is TrialState.COMPLETED for trial in trials):
        return RunState.FAILED, f"None of its trials told the metric {sweep.metric!r}."
    why = f"None of its {len(trials)} trials was completed and told the metric {sweep.metric!r}."
    return RunState.FAILED, f"{why} {closing}".strip()
