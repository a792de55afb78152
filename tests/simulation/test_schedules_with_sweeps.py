"""Schedules in which people request sweeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.sweeps import advance
from tests.fakes.world import trainers_folder
from tests.simulation.simulation import play
from tests.simulation.test_simulation import SEEDS, play_all

SWEEPS, SWEPT = "sweeps", 20


def test_a_sweep_makes_its_trials_once_whatever_happens(tmp_path: Path) -> None:
    """With sweeps, there is never a trial more than requested or than may run at once, and the archive is the best
    trial's."""
    counts = play_all(tmp_path, range(SWEPT), SWEEPS)
    assert counts["sweeps completed"]
    assert counts["trials that lost"]


def test_the_oracle_sees_a_trial_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An app that fills every slot without counting the trials soon breaks the rule."""
    monkeypatch.setattr(
        advance, "to_start", lambda sweep, trials, _: sweep.at_once - sum(each.is_live for each in trials)
    )
    trainers = trainers_folder(tmp_path)
    broken = (play(seed, trainers, also=SWEEPS).broken for seed in range(SEEDS))
    assert any("7 of 6 trials" in why for why in broken)
