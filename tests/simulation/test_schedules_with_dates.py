"""Schedules in which people request runs with dates."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.deadlines import pace as dates
from shared.deadlines.plan import NodeChoice
from tests.fakes.world import trainers_folder
from tests.simulation.simulation import play
from tests.simulation.test_simulation import SEEDS, play_all

DATES, DATED = "dates", 6


def test_dates_are_kept_whatever_happens(tmp_path: Path) -> None:
    """With dates, a member never has two jobs, and dedicated nodes are used exactly while only they keep the date."""
    counts = play_all(tmp_path, range(DATED), DATES)
    assert counts["looks at dates"] > DATED
    assert counts["moves"]


def test_the_oracle_sees_a_date_that_is_risked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An app that always stays on low-priority nodes soon breaks the rule."""
    monkeypatch.setattr(dates, "choose", lambda _plan, _now: NodeChoice.LOW)
    trainers = trainers_folder(tmp_path)
    broken = (play(seed, trainers, also=DATES).broken for seed in range(SEEDS))
    assert "more than it needs" in next(filter(None, broken))
