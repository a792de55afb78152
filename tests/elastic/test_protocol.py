"""The rules of the rendezvous, each by itself; tests/elastic/simulation plays members that follow them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainers.elastic.protocol import Limits, Member, Node, Round, Unreadable, View, changes, next_round


def view(team: str = "", closed: str = "", gone: str = "", **nodes: Node) -> View:
    """A round of these nodes with their first tickets, and the nodes that have a row."""
    members = tuple(Member(name, 1) for name in team)
    return View(Round(int(bool(team)), members, closed=closed), nodes, frozenset(gone))


def waits(name: str, ticket: int = 1) -> Node:
    return Node(name, ticket)


def works(name: str) -> Node:
    return Node(name, 1, joined=1)


def test_a_first_round_waits_for_the_last_call_or_for_all() -> None:
    """A first round begins with the most, or with the least after the last call; ranks follow the names."""
    two = view(b=waits("b"), a=waits("a"))
    assert next_round(two, Limits(1, 3), last_call_over=False) is None
    assert next_round(two, Limits(3, 3), last_call_over=True) is None
    for limits, over in ((Limits(1, 2), False), (Limits(2, 3), True)):
        made = next_round(two, limits, over)
        assert made is not None
        assert [member.name for member in made.team] == ["a", "b"]


def test_no_round_begins_while_one_is_held() -> None:
    """One member that neither broke off nor left nor is gone holds the round, whoever else waits."""
    rows = {"a": works("a"), "b": waits("b", 2), "c": waits("c")}
    limits = Limits(1, 3)
    assert next_round(view("ab", **rows), limits, True) is None
    for freed in (
        view("ab", gone="a", **rows),
        view("ab", **{**rows, "a": replace(works("a"), left=True)}),
        view("ab", b=rows["b"], c=rows["c"]),
    ):
        made = next_round(freed, limits, last_call_over=False)  # no last call after a loss
        assert made is not None
        assert [member.name for member in made.team] == ["b", "c"]  # who has the state comes first
        assert made.number == 2


def test_a_closed_run_stays_closed() -> None:
    """Once closed, no round begins and nobody need meet again."""
    closed = view("ab", closed="done", gone="ab", a=works("a"), c=waits("c"))
    assert next_round(closed, Limits(1, 3), True) is None
    assert changes(closed, works("a"), Limits(1, 3)) == []


def test_what_makes_a_team_meet_again() -> None:
    """Each reason in words: gone, left, broke off, a newcomer where there is a place, and being left behind."""
    me, limits = works("a"), Limits(1, 3)
    rows = {"a": me, "b": works("b")}
    assert changes(view("ab", **rows), me, limits) == []
    assert changes(view("ab", gone="b", **rows), me, limits) == ["b is gone"]
    assert changes(view("ab", a=me, b=replace(works("b"), left=True)), me, limits) == ["b left"]
    assert changes(view("ab", a=me, b=waits("b", 2)), me, limits) == ["b broke off"]
    assert changes(view("ab", **rows, c=waits("c")), me, limits) == ["c waits to join"]
    assert changes(view("ab", **rows, c=waits("c")), me, Limits(1, 2)) == []
    assert changes(view("b", **rows), me, limits) == ["the others met without this node"]


@pytest.mark.parametrize("text", [b"no JSON", b"[]", b'{"team": 1}', b'{"team": [{"x": 1}]}', b'{"number": 1}'])
def test_what_cannot_be_read_is_refused(text: bytes) -> None:
    """A row that holds something else is a typed error, and runs nothing."""
    with pytest.raises(Unreadable):
        Round.of(text)


def test_rows_come_back() -> None:
    """A round and a node are what they were after a way through their rows."""
    made = Round(3, (Member("a", 2, 4), Member("b", 1)), "10.0.0.1", 4711, "")
    node = Node("a", 2, 7, 3, False, True, 4, "10.0.0.1", 4711, 4712)
    assert (Round.of(made.text()), Node.of(node.text())) == (made, node)
