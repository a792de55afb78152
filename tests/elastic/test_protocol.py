"""The rules of the rendezvous, one by one. tests/elastic/simulation plays members that follow them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from trainers.elastic.protocol import (
    FORM,
    Change,
    Limits,
    Node,
    Round,
    TeamMember,
    Unreadable,
    View,
    changes,
    next_round,
)


def view(team: str = "", closed: str = "", gone: str = "", **nodes: Node) -> View:
    """Return a view of a round of these nodes with their first tickets, and of the nodes that have a row."""
    members = tuple(TeamMember(name, 1) for name in team)
    return View(Round(int(bool(team)), members, closed=closed), nodes, frozenset(gone))


def words(changed: list[Change]) -> list[str]:
    return [str(change) for change in changed]


def waits(name: str, ticket: int = 1) -> Node:
    return Node(name, ticket)


def works(name: str) -> Node:
    return Node(name, 1, joined=1)


def test_a_first_round_waits_for_the_last_call_or_for_all() -> None:
    """A first round begins with the maximum number of nodes, or with the minimum after the last call. Ranks follow
    the names."""
    two = view(b=waits("b"), a=waits("a"))
    assert next_round(two, Limits(1, 3), last_call_over=False) is None
    assert next_round(two, Limits(3, 3), last_call_over=True) is None
    for limits, over in ((Limits(1, 2), False), (Limits(2, 3), True)):
        made = next_round(two, limits, over)
        assert made is not None
        assert [member.name for member in made.team] == ["a", "b"]


def test_the_largest_maximum_of_those_that_are_there_counts() -> None:
    """A run grows when nodes come that were started with a larger maximum, and all nodes plan the same team.
    Otherwise, nodes with the smaller and the larger maximum would replace each other's rounds."""
    rows = {"a": works("a"), "b": works("b"), "c": replace(waits("c"), most=3)}
    assert words(changes(view("ab", **rows), rows["a"], Limits(1, 2))) == ["c waits to join"]
    assert words(changes(view("ab", **{**rows, "c": waits("c")}), rows["a"], Limits(1, 2))) == []
    for limits in (Limits(1, 2), Limits(1, 3)):
        made = next_round(view("ab", **{**rows, "a": waits("a", 2), "b": waits("b", 2)}), limits, False)
        assert made is not None
        assert len(made.team) == 3


def test_no_round_begins_while_one_is_held() -> None:
    """A member that neither left its round, left the run nor is gone holds the round, whichever nodes wait."""
    rows = {"a": works("a"), "b": waits("b", 2), "c": waits("c")}
    limits = Limits(1, 3)
    assert next_round(view("ab", **rows), limits, True) is None
    assert next_round(view("ab", b=rows["b"], c=rows["c"]), limits, True) is None  # somebody deleted its row
    for freed in (
        view("ab", gone="a", **rows),
        view("ab", **{**rows, "a": replace(works("a"), left=True)}),
        view("ab", gone="a", b=rows["b"], c=rows["c"]),
    ):
        made = next_round(freed, limits, last_call_over=False)  # no last call after a loss
        assert made is not None
        assert [member.name for member in made.team] == ["b", "c"]  # who has the state comes first
        assert made.number == 2


def test_a_closed_run_stays_closed() -> None:
    """Once a run is closed, no round begins, and no team needs to meet again."""
    closed = view("ab", closed="done", gone="ab", a=works("a"), c=waits("c"))
    assert next_round(closed, Limits(1, 3), True) is None
    assert words(changes(closed, works("a"), Limits(1, 3))) == []


def test_a_team_has_one_program() -> None:
    """The run's program is that of its team, or else of the first waiting node. A node that names no program, as
    under stock torchrun, fits any."""
    ours, other = replace(works("b"), program="b.py"), replace(waits("a"), program="a.py")
    rows = {"a": other, "b": ours, "c": waits("c")}
    assert view("b", **rows).program() == "b.py"
    assert words(changes(view("b", **rows), ours, Limits(1, 3))) == ["c waits to join"]
    again = view("b", **{**rows, "b": replace(ours, joined=-1, ticket=2)})
    for what, names in ((again, ["b", "c"]), (view("b", gone="b", **rows), ["a", "c"])):
        made = next_round(what, Limits(1, 3), last_call_over=True)
        assert made is not None
        assert [member.name for member in made.team] == names


def test_what_makes_a_team_meet_again() -> None:
    """Each reason has its words: a node is gone, left, left its round, or waits where there is a place; or the
    others met without this node."""
    me, limits = works("a"), Limits(1, 3)
    rows = {"a": me, "b": works("b")}
    assert words(changes(view("ab", **rows), me, limits)) == []
    assert words(changes(view("ab", gone="b", **rows), me, limits)) == ["b is gone"]
    assert words(changes(view("ab", a=me, b=replace(works("b"), left=True)), me, limits)) == ["b left"]
    assert words(changes(view("ab", a=me, b=waits("b", 2)), me, limits)) == ["b broke off"]
    assert words(changes(view("ab", **rows, c=waits("c")), me, limits)) == ["c waits to join"]
    assert words(changes(view("ab", **rows, c=waits("c")), me, Limits(1, 2))) == []
    assert words(changes(view("b", **rows), me, limits)) == ["the others met without this node"]


@pytest.mark.parametrize("text", [b"no JSON", b"[]", b'{"team": 1}', b'{"team": [{"x": 1}]}', b'{"number": 1}'])
def test_what_cannot_be_read_is_refused(text: bytes) -> None:
    """A row with other content raises a typed error, and executes nothing."""
    with pytest.raises(Unreadable):
        Round.of(text)


def test_rows_come_back() -> None:
    """A round and a node are unchanged after being written to and read from their rows."""
    made = Round(3, (TeamMember("a", 2, 4), TeamMember("b", 1)), "10.0.0.1", 4711, "")
    node = Node("a", 2, 7, 3, False, True, 4, "10.0.0.1", 4711, 4712)
    assert (Round.of(made.text()), Node.of(node.text())) == (made, node)


def apart(team: str, *pairs: str, waiting: str = "") -> list[str]:
    """Return the next team of these nodes. The first node of each pair reports that it can't reach the second."""
    nodes = {name: Node(name, 2 if name in team else 1) for name in sorted(team + waiting)}
    for pair in pairs:
        one, other = pair[0], pair[1]
        nodes[one] = replace(nodes[one], unreached=(*nodes[one].unreached, other))
    made = next_round(view(team, **nodes), Limits(1, 4), last_call_over=True)
    return [member.name for member in made.team] if made else []


def test_a_team_is_the_largest_set_that_all_reach_each_other() -> None:
    """A report of either node separates a pair. Of sets of the same size, the one with the lowest names continues.
    The set includes a survivor, which has the state."""
    assert apart("abcd") == ["a", "b", "c", "d"]
    assert apart("abcd", "ac", "ad", "bc", "bd") == ["a", "b"]
    assert apart("abcd", "ab", "ac", "ad") == ["b", "c", "d"]
    assert apart("abcd", "db") == ["a", "b", "c"]
    assert apart("abcd", "ac", "ad", "bc", "bd", "cd") == ["a", "b"]
    assert apart("a", "ab", "ac", "ad", waiting="bcd") == ["a"]


def test_a_team_grows_only_by_those_that_all_of_it_reach() -> None:
    """A waiting node that can't reach a member of the team is no reason to meet again until the link has healed."""
    rows = {"a": works("a"), "b": works("b")}
    limits, cut = Limits(1, 3), replace(waits("c"), unreached=("b",))
    assert words(changes(view("ab", **rows, c=cut), rows["a"], limits)) == []
    assert words(changes(view("ab", **rows, c=waits("c")), rows["a"], limits)) == ["c waits to join"]
    lost = replace(rows["a"], unreached=("b",))
    assert words(changes(view("ab", **rows), lost, limits)) == ["b is out of reach"]


def test_a_lost_state_begins_no_round_while_its_team_works() -> None:
    """If the round's row is deleted, waiting nodes wait until the team has noticed. The team's next round has a
    later number."""
    working = Node("a", 5, joined=7, worked=7)
    assert next_round(view(a=working, b=waits("b")), Limits(1, 3), True) is None
    made = next_round(view(a=replace(working, ticket=6, joined=-1), b=waits("b")), Limits(1, 3), True)
    assert made is not None
    assert made.number == 8


def test_rows_of_other_versions_are_read() -> None:
    """Unknown fields of another version are ignored, missing fields get their defaults, and a field of the wrong
    type is refused."""
    more = json.dumps({"name": "a", "ticket": 3, "colour": "red", "unreached": ["b"]}).encode()
    assert Node.of(more) == Node("a", 3, unreached=("b",), form=2)
    state = json.dumps({"number": 2, "team": [{"name": "a", "ticket": 3, "zone": 1}], "epoch": 9}).encode()
    assert Round.of(state) == Round(2, (TeamMember("a", 3),))
    for wrong in ({"ticket": 3}, {"name": "a", "ticket": "3"}, {"name": "a", "unreached": [1]}):
        with pytest.raises(Unreadable):
            Node.of(json.dumps(wrong).encode())


FIRST = {"name": "a", "ticket": 3, "beat": 7, "joined": 2, "left": False, "done": False, "workers": 1}
FIRST |= {"address": "10.0.0.1", "port": 1, "bell": 2}
SECOND = {**FIRST, "worked": 2, "unreached": ["b"], "holds": True, "most": 4, "program": "train.py", "arguments": "x"}


def test_rows_of_the_versions_before_are_read_with_their_form() -> None:
    """The first version wrote ten fields, the second six more. Neither names its form."""
    first, second = (Node.of(json.dumps(row).encode()) for row in (FIRST, SECOND))
    assert (first.form, first.bell, first.unreached) == (1, 2, ())
    assert (second.form, second.most, second.unreached) == (2, 4, ("b",))


def test_a_row_can_be_read_by_the_versions_before() -> None:
    """The first version refuses any further field of the text, and the second one needs all of its fields there."""
    node = replace(Node.of(json.dumps(SECOND).encode()), form=FORM)
    first, others = node.in_two()
    assert json.loads(first) == FIRST
    assert json.loads(node.text()).items() >= SECOND.items()
    assert Node.of(first, others) == Node.of(node.text()) == node


@pytest.mark.parametrize(
    ("forms", "in_one"), [((3,), False), ((3, 2), True), ((3, 1), False), ((3, 2, 1), False), ((), False)]
)
def test_an_older_form_is_written_while_an_older_node_is_here(forms: tuple[int, ...], in_one: bool) -> None:
    """A node of the first version ends at a row that it can't read, so its form decides. Nodes that left don't
    count."""
    nodes = {f"n{form}": Node(f"n{form}", form=form) for form in forms}
    assert View(nodes={**nodes, "gone": Node("gone", form=2, left=True)}).in_one() == in_one
