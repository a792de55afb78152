"""Sweeps whose handlers die at any call, or run concurrently."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from shared.adapters.sweeps.studies import JournalStudies
from shared.messages.declared import QUEUES
from shared.runs.model import RunState
from shared.sweeps.advance import advance_sweep
from shared.sweeps.messages import CheckSweep
from shared.sweeps.ports import STUDIES
from tests.fakes.crashing import Counting
from tests.fakes.sweeps import studies
from tests.fakes.world import PERIOD, World
from tests.shared.sweeps import lab
from tests.simulation.scheduler import Invocation, Scheduler


@pytest.mark.parametrize("word", ["before", "after"])
def test_a_crash_anywhere_costs_no_trial(tmp_path: Path, word: str) -> None:
    """Wherever a handler dies, every trial is created once with its drawn values, and the sweep is completed."""

    def story(at: int) -> tuple[World, Counting]:
        world, crashes = lab.new_world(tmp_path), Counting(at, word)
        lab.asked(world, {"trials": 3, "at_once": 2, "sampling": "random", "seed": 1}, key="k")
        for _ in range(8):
            while any(world.handle(queue, crashes=crashes) for queue in QUEUES):
                pass
            lab.epoch(world)
        for _ in range(4):  # the timer finds lost messages
            world.clock.advance(PERIOD)
            world.reconcile()
            for _ in range(4):
                lab.epoch(world)
        assert not world.unsettled(), f"call {at}: {world.unsettled()}"
        return world, crashes

    world, crashes = story(0)
    expected = [run.asked.parameters for run in sorted(world.runs.newest(), key=lambda run: run.name)]
    for at in range(1, crashes.taken + 1):
        world, _ = story(at)
        runs = sorted(world.runs.newest(), key=lambda run: run.name)
        assert [run.asked.parameters for run in runs] == expected, f"call {at}"
        assert {run.progress.state for run in runs} == {RunState.COMPLETED}, f"call {at}"
        assert len(world.jobs.jobs) == 3, f"call {at}"
    assert crashes.taken > 25


SCHEDULES = [range(100), range(100, 1000)]  # the second range runs each night and takes 20 s of a core


@dataclass
class Pausing:
    """A port that switches to other handlers before and after each call."""

    target: Any
    scheduler: Scheduler

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.target, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.scheduler.pause()
            result = method(*args, **kwargs)
            self.scheduler.pause()
            return result

        return call if callable(method) else method


@pytest.mark.parametrize("seeds", SCHEDULES, ids=["some", "many"])
def test_looks_at_once_promote_no_trial_twice(tmp_path: Path, seeds: range) -> None:
    """Under concurrent checks there are as many trials as requested, each created once."""
    for seed in seeds:
        world = lab.new_world(tmp_path)
        scheduler = Scheduler(random.Random(seed), 0.5)
        sweep = lab.asked(world, {"trials": 3, "at_once": 2, "sampling": "random", "seed": 1}, key=str(seed))
        runs = Pausing(world.runs, scheduler)
        system = replace(world.system, runs=runs)
        journal = studies(world.journals).open(sweep.name, sweep.asked.request.sweep)  # type: ignore[arg-type]
        journal.commit()
        kept = Pausing(world.journals[sweep.name], scheduler)
        world.run_until_idle()

        def look(system: Any = system, kept: Any = kept, sweep: Any = sweep) -> None:
            advance_sweep(
                replace(system, features={STUDIES.name: JournalStudies(lambda _: kept)}), CheckSweep(sweep.name)
            )

        for number in range(4):
            scheduler.start(Invocation(f"look {number}", look, lambda _: None, world.clock(), 1.0))
            for name in list(world.jobs.jobs)[: number % 3]:
                if world.jobs.jobs[name].raw == "Queued":
                    world.job_goes(name, "Completed")
            while (invocation := scheduler.next()) and scheduler.random.random() < 0.9:
                scheduler.go_on(invocation)
            world.deliver_all()
            world.run_until_idle()
        while invocation := scheduler.next():
            scheduler.go_on(invocation)
        world.run_until_idle()
        trials = lab.study(world, sweep.name).trials
        assert len(trials) == 3, f"seed {seed}"
        made = [run.name for run in lab.trials(world, sweep)]
        assert made == [f"{sweep.name}-t{trial.number}" for trial in trials], f"seed {seed}"
        assert sorted(world.jobs.jobs) == made, f"seed {seed}"
        live = [name for name, job in world.jobs.jobs.items() if job.raw == "Queued"]
        assert len(live) <= 2, f"seed {seed}"
