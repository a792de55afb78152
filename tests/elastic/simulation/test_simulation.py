"""The real members of a run, and all that may happen to them, in virtual time. A seed is a story; run.py has the rules.

python -m tests.elastic.simulation.run SEED prints one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from tests.elastic.simulation.machine import CLOSED, LOST
from tests.elastic.simulation.run import Broken, Parts, Player, cut_once, play
from trainers.elastic import lookout, protocol


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Thousands of warnings about a table that did not answer tell nothing here."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", range(40))
def test_no_story_breaks_a_rule(seed: int) -> None:
    """Never can two teams make steps, and once nothing happens any more a team that can't be larger is at work."""
    play(seed)


def halves(nodes: list[Player]) -> Parts:
    return [(nodes[:2], nodes[2:], False)]


def the_first(nodes: list[Player]) -> Parts:
    return [(nodes[:1], nodes[1:], False)]


def three_ways(nodes: list[Player]) -> Parts:
    return [(nodes[:2], nodes[2:], False), (nodes[2:3], nodes[3:], False)]


def one_pair(nodes: list[Player]) -> Parts:
    return [(nodes[1:2], nodes[3:], False)]


def one_way(nodes: list[Player]) -> Parts:
    return [(nodes[1:2], nodes[3:], True)]


@pytest.mark.parametrize("how", [LOST, CLOSED])
@pytest.mark.parametrize(
    ("parts", "names"),
    [
        (halves, [["n00", "n01"], ["n02", "n03"]]),
        (the_first, [["n01", "n02", "n03"]]),
        (three_ways, [["n00", "n01"]]),
        (one_pair, [["n00", "n01", "n02"], ["n00", "n02", "n03"]]),
        (one_way, [["n00", "n01", "n02"], ["n00", "n02", "n03"]]),
    ],
)
def test_after_a_cut_the_largest_part_is_at_work(
    how: str, parts: Callable[[list[Player]], Parts], names: list[list[str]]
) -> None:
    """In 15 s and two rounds; all are back once it has healed. Of halves that refuse one another the quicker goes."""
    for seed in range(2):
        game = cut_once(seed, parts, how)
        (team,) = game.after
        assert team in (names if how == CLOSED else names[:1])
        assert game.written <= 2


def test_the_rules_can_be_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes a lease for over too soon, a refusal for a death, or forgets who is apart, is found."""

    def broken(name: str, owner: object, change: object, seeds: range) -> bool:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, change)
            for seed in seeds:
                try:
                    play(seed)
                except Broken:
                    return True
        return False

    assert broken("_leased", lookout.Lookout, lambda _self, _silent: set(), range(0, 60))
    assert broken("_holds", protocol.View, lambda _self, _member: False, range(0, 20))
    assert broken("unreached", lookout.Lookout, lambda _self: frozenset(), range(0, 60))
