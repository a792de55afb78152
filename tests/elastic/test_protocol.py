"""The rules of the rendezvous: each by itself, and all that three nodes can do with them, explored to the end.

The explorer walks every order of the nodes' requests, with a crash or a false alarm between any two of them and with
looks that grow old before they are acted on. It runs the real decisions (protocol.py); only the table and the
connections between workers are modelled, as far as they matter:

- A row is read and written in one step; the round is replaced only by who saw its present version (etag).
- A team makes steps only together: all of its members must be at work in that round, for a lost peer ends the round.
- A node may be taken for gone at any time while it is alive, by any other (a slow or stopped machine).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from trainers.elastic.protocol import Limits, Member, Node, Round, Unreadable, View, changes, next_round

NAMES = ("a", "b", "c")


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


# --- all that three nodes can do --------------------------------------------------------------------------------------

LIMITS = Limits(1, 2)  # of three nodes one is too many, so that places run out, too
Rows = tuple[Node | None, ...]


class Seen(NamedTuple):
    """What a node read: the round and its version, all rows, and whom it takes for gone."""

    round: Round
    version: int
    rows: Rows
    gone: frozenset[str]

    def view(self) -> View:
        return View(self.round, {node.name: node for node in self.rows if node}, self.gone)


class Actor(NamedTuple):
    """A node: what it saw last and has not acted on, and the round that its workers are in."""

    seen: Seen | None = None
    at_work: Round | None = None
    alive: bool = True


class World(NamedTuple):
    round: Round
    version: int
    rows: Rows
    actors: tuple[Actor, ...]
    crashes: int
    alarms: int  # false ones that may still happen
    tickets: int  # a node that has had so many does no more: here the exploration ends


def begin(crashes: int, alarms: int, tickets: int) -> World:
    return World(Round(), 0, (None,) * len(NAMES), (Actor(),) * len(NAMES), crashes, alarms, tickets)


def put(things: tuple[Any, ...], place: int, thing: Any) -> tuple[Any, ...]:
    return (*things[:place], thing, *things[place + 1 :])


def moves(world: World) -> Iterator[World]:
    """What the next request of any node makes of the world."""
    dead = frozenset(name for name, actor in zip(NAMES, world.actors, strict=True) if not actor.alive)
    for place, actor in enumerate(world.actors):
        if not actor.alive:
            continue
        if not world.rows[place]:
            yield world._replace(rows=put(world.rows, place, Node(NAMES[place])))
            continue
        if world.crashes:
            actors = put(world.actors, place, Actor(alive=False))
            yield world._replace(actors=actors, crashes=world.crashes - 1)
        wrong = [frozenset[str]()]
        if world.alarms:
            wrong += [frozenset((name,)) for name in NAMES if name not in dead and name != NAMES[place]]
        for more in wrong:
            seen = Seen(world.round, world.version, world.rows, dead | more)
            if seen != actor.seen:
                actors = put(world.actors, place, actor._replace(seen=seen))
                yield world._replace(actors=actors, alarms=world.alarms - len(more))
        if actor.seen:
            yield from acts(world, place, actor, actor.seen)


def acts(world: World, place: int, actor: Actor, seen: Seen) -> Iterator[World]:
    """What a node does with what it saw, however old that is by now. Each act ends with one request."""
    me, view = world.rows[place], seen.view()
    assert me
    done = actor._replace(seen=None)
    if me.joined >= 0:
        if changes(view, me, LIMITS) and me.ticket < world.tickets:
            rows = put(world.rows, place, replace(me, ticket=me.ticket + 1, joined=-1))
            yield world._replace(rows=rows, actors=put(world.actors, place, done._replace(at_work=None)))
    elif view.round.place_of(me) is not None:
        rows = put(world.rows, place, replace(me, joined=view.round.number))
        yield world._replace(rows=rows, actors=put(world.actors, place, done._replace(at_work=view.round)))
    elif new := next_round(view, LIMITS, last_call_over=True):
        actors = put(world.actors, place, done)
        if seen.version == world.version:
            yield world._replace(round=new, version=world.version + 1, actors=actors)
        else:  # another was quicker
            yield world._replace(actors=actors)


def teams_at_work(world: World) -> set[Round]:
    """The rounds whose whole team is at work in them: only such a team makes steps."""
    working = [actor.at_work for actor in world.actors if actor.at_work]
    return {made for made in working if working.count(made) == len(made.team)}


def settled(world: World) -> bool:
    """The present round's team is at work in it, and nobody is left out for whom there is a place."""
    alive = sum(actor.alive for actor in world.actors)
    return world.round in teams_at_work(world) and len(world.round.team) == min(alive, LIMITS.most)


def explore(start: World) -> dict[World, list[World]]:
    """All worlds that can come of it, and what may come next of each."""
    found: dict[World, list[World]] = {}
    waiting = [start]
    while waiting:
        world = waiting.pop()
        if world not in found:
            found[world] = list(moves(world))
            waiting += found[world]
    return found


def can_settle(found: dict[World, list[World]]) -> set[World]:
    """The worlds from which a settled one can be reached, or the exploration's end (a node's last ticket)."""
    before: dict[World, list[World]] = {world: [] for world in found}
    for world, after in found.items():
        for each in after:
            before[each].append(world)
    ends = [w for w in found if settled(w) or any(node and node.ticket == w.tickets for node in w.rows)]
    reached = set(ends)
    while ends:
        for world in before[ends.pop()]:
            if world not in reached:
                reached.add(world)
                ends.append(world)
    return reached


@pytest.mark.parametrize(("crashes", "alarms", "tickets"), [(2, 0, 3), (0, 1, 2)])
def test_all_that_three_nodes_can_do(crashes: int, alarms: int, tickets: int) -> None:
    """Never do two teams make steps at once, unless a team of one was wrongly taken for gone; nobody waits for ever,
    and no dead node holds a round: from every world, a team of all that live and fit is reached."""
    found = explore(begin(crashes, alarms, tickets))
    for world in found:
        working = teams_at_work(world)
        assert len(working) <= 1 or (alarms and any(len(made.team) == 1 for made in working - {world.round})), world
    assert found.keys() == can_settle(found)
