"""Schedules in which runs compete for a model's alias while people move it and undo moves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shared.models import promote
from shared.models.decide import Changed, ChangeRequest, pointed
from shared.models.model import Alias, Model
from tests.fakes.world import trainers_folder
from tests.simulation.simulation import play
from tests.simulation.test_simulation import SEEDS, nothing, play_all

CHALLENGES, SOME, MANY = "challenges", 8, 400


@pytest.mark.parametrize("seeds", [range(SOME), range(SOME, MANY)], ids=["some", "many"])
def test_a_run_is_judged_once_by_the_champion_of_that_moment(tmp_path: Path, seeds: range) -> None:
    """With duplicate and late deliveries, kills between the steps, and people who undo moves, no run is judged
    twice. The alias moves only from the judged champion, to a better version."""
    counts = play_all(tmp_path, seeds, CHALLENGES)
    for happened in ("challenges won", "challenges lost", "aliases undone", "challenges delivered again"):
        assert counts[happened], happened


def from_anywhere(model: Model, number: int, alias: str, _judged: Alias | None, asked: ChangeRequest) -> Changed:
    """Move the alias, whatever it points at by now."""
    return pointed(model, number, alias, asked)


@pytest.mark.parametrize(
    ("step", "instead", "said", "likely"),
    [
        ("_check_undecided", nothing, "is judged again", 124),
        ("pointed_from", from_anywhere, "which was not judged", 7),
    ],
)
def test_the_oracle_sees_a_verdict_of_another_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, instead: Callable[..., object], said: str, likely: int
) -> None:
    """If the app writes the verdict without reading the history or the alias, a rule is soon broken."""
    monkeypatch.setattr(promote, step, instead)
    trainers = trainers_folder(tmp_path)
    broken = (play(seed, trainers, also=CHALLENGES).broken for seed in (likely, *range(SEEDS)))
    assert said in next(filter(None, broken))
