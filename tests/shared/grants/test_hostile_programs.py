"""Hostile programs with a grant's token spend nothing above the grant, and see nothing of others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.fakes.world import trainers_folder
from tests.shared.grants.hostile import Session

SEEDS = range(3)  # benchmarks/grants.py plays a thousand


def test_hostile_programs_stay_within_their_grants(tmp_path: Path) -> None:
    """An independent oracle finds no cent above a grant and no word of others, although the programs did get runs."""
    tried = Counter[str]()
    for seed in SEEDS:
        figures = Session(seed, trainers_folder(tmp_path)).play()
        assert (figures.over_cents, figures.leaks, figures.words) == (0, 0, [])
        tried += figures.tried
    assert tried["accepted"]
    assert tried["refused: not_found"]
