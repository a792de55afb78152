"""Sweeps on fakes: from the request to the archive of the best trial, with crashes and duplicates in between."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import optuna
import pytest

from shared.adapters.sweeps.studies import JournalStudies
from shared.clusters.model import Cluster
from shared.drops.find_name import find
from shared.jobs.search import ASHA, Parameter, Stopping, Sweep
from shared.kernel.errors import Impossible
from shared.money.policy import Policy
from shared.money.prices import Price, Prices
from shared.runs.model import Cost, RunState
from shared.runs.progress.cancel import cancel_run
from shared.sweeps.advance import BOOKS, CHECK_SECONDS, advance_sweep
from shared.sweeps.api import list_trials
from shared.sweeps.messages import CheckSweep
from shared.sweeps.model import Trial, TrialState
from shared.sweeps.ports import STUDIES
from shared.sweeps.sampling import FILLED, scores
from tests.fakes.parts import changed
from tests.fakes.sweeps import standing_of
from tests.fakes.world import World
from tests.shared.sweeps import lab


@pytest.fixture
def world(tmp_path: Path) -> World:
    return lab.new_world(tmp_path)


def test_the_best_of_the_trials_is_the_sweeps_archive(world: World) -> None:
    """Each trial is a run with its own values; the sweep is completed after the last, with the best trial's files."""
    sweep = lab.asked(world, {"trials": 5, "at_once": 2, "sampling": "random"})
    lab.play(world)
    trials, sweep = lab.trials(world, sweep), world.runs.get(sweep.name).value
    assert [run.name for run in trials] == [f"{sweep.name}-t{number}" for number in range(5)]
    assert all(0.001 <= run.asked.parameters["lr"] <= 0.1 for run in trials)
    assert {run.asked.parameters["size"] for run in trials} <= {32, 64}
    best = max(trials, key=lambda run: run.measured.best["accuracy"])
    assert (sweep.progress.state, standing_of(sweep).best, standing_of(sweep).begun, standing_of(sweep).ended) == (
        RunState.COMPLETED,
        best.name,
        5,
        5,
    )
    assert standing_of(sweep).best_value == best.measured.best["accuracy"]
    assert sweep.measured.best == best.measured.best
    content = world.blobs.containers["output"]
    assert content[f"asked/{sweep.name}/models/model.pt"].data == content[f"asked/{best.name}/models/model.pt"].data
    assert list(world.jobs.jobs) == [run.name for run in trials]
    study = lab.study(world, sweep.name)
    assert study.best_value == standing_of(sweep).best_value


def test_the_best_is_that_of_all_values_of_a_trial(world: World) -> None:
    """This also holds when a trial reports more values than its study keeps."""
    sweep = lab.asked(world, {"trials": 2, "at_once": 2, "sampling": "random"})
    world.run_until_idle()
    for name, values in zip(list(world.jobs.jobs), ([0.9, *[0.5] * 299], [*[0.1] * 299, 0.95]), strict=True):
        world.job_goes(name, "Completed")
        lab.write(world, name, values)
    world.deliver_all()
    world.run_until_idle()
    standing = standing_of(world.runs.get(sweep.name).value)
    assert (standing.best, standing.best_value) == (f"{sweep.name}-t1", 0.95)


def test_at_most_so_many_trials_run_at_once(world: World) -> None:
    """The next trial starts when one has ended, without a scheduled check."""
    lab.asked(world, {"trials": 5, "at_once": 2, "sampling": "random"})
    world.run_until_idle()
    assert (len(world.jobs.jobs), lab.sweep_looks(world)) == (2, 0)
    world.job_goes(next(iter(world.jobs.jobs)), "Completed")
    world.deliver_all()
    world.run_until_idle()
    assert len(world.jobs.jobs) == 3


def test_who_asks_and_tells_in_the_study_is_learned_from_and_has_no_run(world: World) -> None:
    """A job or a person may add trials to the study, inside the search space or not. The sweep creates as many runs
    as without them, its archive is the best of its runs, and the list of trials includes the added ones."""
    sweep = lab.asked(world, {"trials": 12, "at_once": 2})
    world.run_until_idle()
    others = lab.study(world, sweep.name)
    asked = sweep.asked.request.sweep
    assert asked
    space = lab.space(asked)
    others.tell(others.ask(space), 7.0)
    others.tell(others.ask({"lr": optuna.distributions.FloatDistribution(0.5, 0.9, log=True)}), 8.0)
    others.ask()
    others.enqueue_trial({"lr": 0.05, "size": 32})
    lab.play(world)
    made, sweep = lab.trials(world, sweep), world.runs.get(sweep.name).value
    assert (len(made), sweep.progress.state, standing_of(sweep).begun) == (12, RunState.COMPLETED, 12)
    assert standing_of(sweep).best in {run.name for run in made}
    listed = list_trials(world.system, sweep.name)["trials"]
    assert [(row["told"], row["state"].value) for row in listed if not row["run"]] == [
        (7.0, "completed"),
        (8.0, "completed"),
        (None, "running"),
        (None, "running"),
    ]


def test_losers_are_stopped_and_cost_no_place(world: World) -> None:
    """Under asha a trial that is not among the best at its rung is canceled with that reason, and another trial
    starts."""
    sweep = lab.asked(world, {"trials": 9, "at_once": 3, "stop": "asha", "sampling": "random", "seed": 3})
    lab.play(world)
    trials, sweep = lab.trials(world, sweep), world.runs.get(sweep.name).value
    stopped = [run for run in trials if run.progress.state is RunState.CANCELED]
    assert len(trials) == 9
    assert 2 <= len(stopped) < 9
    assert all("Stopped by its sweep: at interval" in run.progress.reason for run in stopped)
    assert sweep.progress.state is RunState.COMPLETED
    assert "Trust in early values, from -1 to 1: 0." in standing_of(sweep).early_values
    states = [t.state.name for t in lab.study(world, sweep.name).trials]
    assert states.count("PRUNED") == len(stopped)
    assert states.count("COMPLETE") == 9 - len(stopped)


def test_the_model_learns_from_the_highest_rung_that_can_be_trusted() -> None:
    """The model learns from completed trials once there are enough. Before that, it learns from a rung whose early
    values predict the result, or else from the few completed trials."""
    sweep = Sweep({"lr": Parameter("uniform", (), 0.0, 1.0)}, "accuracy", stopping=Stopping(ASHA))

    def trials(completed: int, stopped: int, sign: int) -> list[Trial]:
        """Return completed trials with 12 values, whose early values predict the last value or its opposite."""
        whole = [[sign * n / 99] * 6 + [0.5 + n / 99] * 6 for n in range(completed)]
        told = [*whole, *([n / 50] * 6 for n in range(stopped))]
        states = [TrialState.COMPLETED] * completed + [TrialState.STOPPED] * stopped
        return [Trial(n, {"lr": 0.5}, state, its) for n, (its, state) in enumerate(zip(told, states, strict=True))]

    assert scores(sweep, trials(0, 20, 1)) == []
    assert [len(trial.told) for trial, _ in scores(sweep, trials(5, 20, 1))] == [12] * 5 + [6] * 20
    assert len(scores(sweep, trials(5, 20, -1))) == 5
    assert len(scores(sweep, trials(FILLED, 20, 1))) == FILLED


def test_the_latest_run_is_the_sweep_and_not_a_trial(world: World) -> None:
    """After a sweep, `@latest` is the sweep that was requested; after a later request, it is that run."""
    sweep = lab.asked(world, {"trials": 3, "at_once": 3, "sampling": "random"})
    lab.play(world)
    assert len(lab.trials(world, sweep)) == 3
    assert find(world.system, "@latest").run == sweep.name
    assert find(world.system, f"{sweep.asked.experiment}@latest").run == sweep.name


def test_a_canceled_sweep_ends_its_trials(world: World) -> None:
    """No trial starts afterwards, running trials are canceled, and then the sweep is canceled."""
    sweep = lab.asked(world, {"trials": 5, "at_once": 2})
    world.run_until_idle()
    lab.epoch(world)
    cancel_run(world.system, sweep.name)
    lab.play(world)
    states = [run.progress.state for run in (*lab.trials(world, sweep), world.runs.get(sweep.name).value)]
    assert states == [RunState.CANCELED] * 3


def test_a_sweep_without_a_result_says_why(world: World) -> None:
    """The trials completed without reporting the metric, or they failed."""
    sweep = lab.asked(world, {"trials": 2})
    world.run_until_idle()
    for name in list(world.jobs.jobs):
        world.job_goes(name, "Failed", "exited with status code 1")
    world.deliver_all()
    world.run_until_idle()
    ended = world.runs.get(sweep.name).value
    assert ended.progress.state is RunState.FAILED
    assert ended.progress.reason == "None of its 2 trials was completed and told the metric 'accuracy'."


def test_a_budget_needs_prices_and_ends_the_sweep(world: World) -> None:
    """A budget without a price is refused. Once the budget is spent, no trial starts, and running trials are
    canceled."""
    with pytest.raises(Impossible, match=r"sweep.budget can't be kept: No price is known for the nodes of cpu-cluster"):
        lab.asked(world, {"trials": 5, "budget": 1.0})
    prices = Prices([Price("STANDARD_DS3_V2", "dedicated", "eastus", 3600.0, "test")])  # a dollar a second
    world.system = replace(world.system, money=Policy("eastus", {}, prices))
    world.clusters.clusters["cpu-cluster"] = Cluster("cpu-cluster", 0, 4, 120, vm_size="STANDARD_DS3_V2")
    world.clock.advance(300)  # the cached cost expires
    sweep = lab.asked(world, {"trials": 50, "at_once": 2, "budget": 100.0, "sampling": "random"})
    lab.play(world)
    sweep = world.runs.get(sweep.name).value
    bound = 2 * (CHECK_SECONDS + 7)  # two nodes, until the next check; the lab's clock advances by 6 seconds
    assert 100 <= standing_of(sweep).dollars <= 100 + bound
    assert sweep.progress.state is RunState.COMPLETED
    assert f"Its trials have cost ${standing_of(sweep).dollars:.2f}" in standing_of(sweep).closing
    assert standing_of(sweep).begun < 10
    assert sweep.money.greatest == 100 + 2 * 1800  # the budget, plus half an hour of each node in use by then
    assert lab.asked(world, {"trials": 5}, timeout_seconds=600).money.greatest == 5 * (600 + 1800)


def test_what_the_books_charge_later_counts_too(world: World) -> None:
    """Nodes that waited or idled are charged to a trial after its end, and count against the sweep's budget."""
    prices = Prices([Price("STANDARD_DS3_V2", "dedicated", "eastus", 36.0, "test")])  # a cent a second
    world.system = replace(world.system, money=Policy("eastus", {}, prices))
    world.clusters.clusters["cpu-cluster"] = Cluster("cpu-cluster", 0, 4, 120, vm_size="STANDARD_DS3_V2")
    sweep = lab.asked(world, {"trials": 9, "at_once": 1, "budget": 100.0, "sampling": "random"})
    world.run_until_idle()
    while not standing_of(world.runs.get(sweep.name).value).ended:
        lab.epoch(world)
    ended = world.runs.get(f"{sweep.name}-t0")
    world.runs.update(ended, changed(ended.value, cost=Cost(1.0, 60.0, 60.0, 1.0, world.clock())))
    advance_sweep(world.system, CheckSweep(sweep.name, BOOKS))
    told = world.runs.get(sweep.name).value
    assert standing_of(told).dollars >= 120.99
    assert standing_of(told).closing.startswith("Its trials have cost $12")


def test_a_look_reads_no_trial_that_has_ended(world: World) -> None:
    """Of a hundred trials, a check reads only the live trials' runs, and only the new entries of the study."""
    sweep = lab.crowded(world, 100, at_once=4)
    world.run_until_idle()
    reads, logs = list[str](), list[int]()

    class Runs(Watched):
        def get(self, name: str) -> Any:
            reads.append(name)
            return self.target.get(name)

    class Journal(Watched):
        def read_logs(self, number: int) -> Any:
            logs.append(number)
            return self.target.read_logs(number)

    studies = JournalStudies(lambda name: Journal(world.journals[name]))
    system = replace(world.system, runs=Runs(world.runs), features={STUDIES.name: studies})
    advance_sweep(system, CheckSweep(sweep.name))
    advance_sweep(system, CheckSweep(sweep.name))
    assert {name.rpartition("-t")[2] for name in reads if "-t" in name} == {"96", "97", "98", "99"}
    assert logs == [0, len(world.journals[sweep.name].logs)]
    assert standing_of(world.runs.get(sweep.name).value).dollars == pytest.approx(0.96)


@dataclass
class Watched:
    """A port whose other methods are those of `target`."""

    target: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target, name)


@pytest.mark.parametrize(
    ("sweep", "parameters", "words"),
    [
        ({}, {"lr": 0.1}, "sweep has no search space: give a parameter a range, 0.001..0.1, or values, 32,64,128."),
        ({}, {"lr": "0.001..0.1", "sz": "1,2"}, "sweep.sz is not a parameter. Did you mean 'size'?"),
        ({}, {"lr": "a,b"}, "sweep.lr is 'a'; use a number."),
        ({"sampling": "grid"}, {"lr": "0.001..0.1"}, "search_space.lr is a range, which has no grid: give values"),
        ({"stop": {"type": "bandit"}}, {"lr": "0.001..0.1"}, "sweep.stop bandit has either a slack_factor or"),
        ({"stop": {"type": "hyperband"}}, {"lr": "1..2"}, "sweep.stop.type is 'hyperband'; choose one of asha, bandit"),
    ],
)
def test_what_can_not_be_swept_is_refused(
    world: World, sweep: dict[str, Any], parameters: dict[str, Any], words: str
) -> None:
    """The error has the key, the value and the remedy."""
    with pytest.raises(Impossible) as caught:
        lab.asked(world, sweep, parameters=parameters)
    assert words in str(caught.value)


def test_trials_are_told_with_what_mattered(world: World) -> None:
    """The API's answer has every trial with its values and its best; the learning rate matters more than the size."""
    sweep = lab.asked(world, {"trials": 24, "at_once": 4, "sampling": "random", "seed": 2})
    lab.play(world, 100)
    told = list_trials(world.system, sweep.name)
    runs = {run.name: run for run in lab.trials(world, sweep)}
    assert [row["run"] for row in told["trials"]] == list(runs)
    for row in told["trials"]:
        assert row["parameters"] == {name: runs[row["run"]].asked.parameters[name] for name in ("lr", "size")}
        assert row["told"] == runs[row["run"]].measured.best["accuracy"]
    assert told["importance"]["lr"] > 0.8
    with pytest.raises(Impossible, match="is not a sweep"):
        list_trials(world.system, told["trials"][0]["run"])
