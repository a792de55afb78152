"""Schedules in which runs compete for the alias of a model while people move and undo it."""

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
    """With double and late deliveries, kills between the steps, and people who undo: no run is judged twice, and the
    alias moves only from the champion that was judged, to a better one."""
    counts = play_all(tmp_path, seeds, CHALLENGES)
    for happened in ("challenges won", "challenges lost", "aliases undone", "challenges delivered again"):
        assert counts[happened], happened


def from_anywhere(model: Model, number: int, alias: str, _judged: Alias | None, asked: ChangeRequest) -> Changed:
    """Move the alias wherever it stands by now."""
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
    """Without the look at the history, or at the alias, when the verdict is written, a rule is soon broken."""
    monkeypatch.setattr(promote, step, instead)
    trainers = trainers_folder(tmp_path)
    broken = (play(seed, trainers, also=CHALLENGES).broken for seed in (likely, *range(SEEDS)))
    assert said in next(filter(None, broken))
