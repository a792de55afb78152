"""Whom a node reaches: what misses, answers and refusals make of it."""

from __future__ import annotations

from trainers.elastic.links import HEALED_SECONDS, STEADY_SECONDS, Links


def test_a_bell_that_is_silent_once_or_for_a_moment_costs_nobody() -> None:
    """Out of reach is who did not answer three times in two seconds or more; an answer in between takes it back."""
    links = Links()
    for at in (0.0, 0.1, 0.2):
        links.missed("a", at)
    assert (links.lost, links.doubts) == (frozenset(), {"a"})
    links.heard("a", 1.0)
    for at in (2.0, 3.0):
        links.missed("a", at)
    assert not links.lost
    links.missed("a", 4.0)
    assert (links.lost, links.doubts) == ({"a"}, frozenset())


def test_a_link_has_healed_when_it_held_for_a_while() -> None:
    """Answers for HEALED_SECONDS, without a miss or a refusal between them."""
    links = Links()
    links.lose("a", 9.0)
    links.heard("a", 10.0)
    links.missed("a", 11.0)
    links.heard("a", 13.0)
    links.heard("a", 12.9 + HEALED_SECONDS)
    assert links.lost == {"a"}
    links.heard("a", 13.0 + HEALED_SECONDS)
    assert not links.lost


def test_a_link_that_comes_and_goes_has_to_hold_for_longer() -> None:
    """Lost again, a link must hold for longer than it did; one that held for a steady time heals as quickly as ever."""

    def healed_after(lost_at: float) -> float:
        links.lose("a", lost_at)
        links.heard("a", lost_at)
        seconds = 0.0
        while links.lost:
            seconds += 0.5
            links.heard("a", lost_at + seconds)
        return seconds

    links = Links()
    assert healed_after(0.0) == HEALED_SECONDS
    assert healed_after(8.0) == 8.0
    assert healed_after(8.0 + 14.0) == 14.0
    assert healed_after(22.0 + STEADY_SECONDS) == HEALED_SECONDS
    assert healed_after(37.0 + HEALED_SECONDS + 0.1) == HEALED_SECONDS + 0.5


def test_where_steps_are_made_there_are_no_doubts() -> None:
    """An exchange says more than a bell; who is out of reach stays so, and who has no row is forgotten."""
    links = Links()
    links.missed("a", 0.0)
    links.lose("b", 0.0)
    links.trust()
    assert (links.doubts, links.lost) == (frozenset(), {"b"})
    links.keep({"a"})
    assert not links.lost
