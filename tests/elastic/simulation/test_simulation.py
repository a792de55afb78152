"""The real members of a run under every fault, in virtual time. Each seed produces one story; run.py has the rules.

python -m tests.elastic.simulation.run SEED prints one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.elastic.simulation.machine import CLOSED, LOST
from tests.elastic.simulation.run import TIMES, Broken, Game, Parts, Player, cut_once, play
from trainers.elastic import lookout, protocol


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Silence the thousands of warnings about a table that did not answer."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", range(20))
def test_no_story_breaks_a_rule(seed: int) -> None:
    """Two teams can never both make steps. After the last fault, a team is at work that can't be larger."""
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
@pytest.mark.parametrize("seed", range(2), ids=["one", "more"])
def test_after_a_cut_the_largest_part_is_at_work(
    how: str, parts: Callable[[list[Player]], Parts], names: list[list[str]], seed: int
) -> None:
    """The largest part works within 15 s and two rounds, and all nodes are back after the cut has healed. Of two
    halves that refuse each other, the quicker one works."""
    game = cut_once(seed, parts, how)
    (team,) = game.after
    assert team in (names if how == CLOSED else names[:1])
    assert game.written <= 2


@pytest.mark.parametrize("how", [LOST, CLOSED])
@pytest.mark.parametrize("parts", [halves, the_first, three_ways, one_pair])
@pytest.mark.parametrize("seeds", [range(1), range(1, 3)], ids=["one", "more"])
def test_a_team_is_whole_five_seconds_after_its_links_have_healed(
    how: str, parts: Callable[[list[Player]], Parts], seeds: range
) -> None:
    """All four nodes make steps again within 5 s, and the training nodes never pause for longer than a step or two."""
    for seed in seeds:
        game = cut_once(seed, parts, how)
        whole = next(at for at, _, names in game.steps if at > game.healed_at and len(names) == 4)
        assert whole - game.healed_at < 5
        times = [game.healed_at, *(at for at, _, _ in game.steps if at > game.healed_at)]
        assert max(later - earlier for earlier, later in pairwise(times)) < 1.5


@pytest.mark.parametrize("parting", [1.5, 3.0])
@pytest.mark.parametrize("gap", [1.0, 2.0])
def test_the_largest_set_wins_although_a_smaller_one_met_first(parting: float, gap: float) -> None:
    """The first node's links are refused one after another while the workers of two nodes leave slowly. The first
    node meets one other node, then works alone, and then gives way to the three nodes that reach each other."""
    game = Game(0)
    try:
        game.network.run(12.0)
        first, second, third, fourth = game.players
        second.parting = third.parting = parting
        game.cut([first], [second, third], CLOSED)
        game.network.at(12.0 + gap, lambda: game.cut([first], [fourth], CLOSED))
        game.network.run(12.0 + 8.0)
        (team,) = game.able().values()
        assert team == [second, third, fourth]
    finally:
        game.network.end()


def test_a_cut_that_comes_and_goes_leaves_a_half_at_work() -> None:
    """Two halves lose each other every five seconds, for five seconds. After at most 18 s one half works without a
    pause. No round is written after those of the one healing that did not last."""
    game = Game(1)
    try:
        game.network.run(12.0)
        for at in range(12, 72, 10):
            game.network.at(at, lambda: game.cut(game.players[:2], game.players[2:], LOST))
            game.network.at(at + 5, game.heal)
        before = game.written
        game.network.run(72.0)
    finally:
        game.network.end()
    assert game.written - before <= 3
    times = [at for at, _, _ in game.steps if at > 12 + 18]
    assert max(later - earlier for earlier, later in pairwise([30.0, *times, 72.0])) < 1


def test_a_node_that_worked_alone_and_died_is_soon_replaced() -> None:
    """A newcomer waits for the short lease of a single node, not for the lease of a team."""
    game = Game(1, nodes=1)
    try:
        game.network.run(10.0)
        (alone,) = game.players
        game.players.append(Player(game, 1))
        alone.machine.host_gone = alone.machine.dead = True
        game.network.run(10.0 + 0.8 * TIMES.lease)
    finally:
        game.network.end()
    assert game.steps[-1][2] == {game.players[1].member.me.name}


def test_rows_of_last_week_hold_nobody_up() -> None:
    """A newcomer that finds the rows of a vanished team does not wait for a lease that has ended by the table's
    clock."""
    game = Game(1, nodes=2)
    try:
        game.network.run(10.0)
        for player in game.players:
            player.machine.host_gone = player.machine.dead = True
        game.network.run(10.0 + 2 * TIMES.lease)
        game.players.append(Player(game, 2))
        game.network.run(10.0 + 2.5 * TIMES.lease)
    finally:
        game.network.end()
    assert game.steps[-1][2] == {game.players[2].member.me.name}


@pytest.mark.parametrize("later", [0.0, 10.0])
def test_another_program_under_the_same_id_is_refused(later: float) -> None:
    """Of two runs with one id, one makes steps, and the nodes of the other end with a sentence, even if both start
    together. Rows of a dead run with that id refuse no node."""
    game = Game(1, nodes=0)
    try:
        for number, program in enumerate(("a.py", "a.py", "b.py", "b.py")):
            if program == "b.py":
                game.network.run(later)
            game.players.append(Player(game, number))
            game.players[-1].member.me = replace(game.players[-1].member.me, program=program, arguments=str(number))
        game.network.run(later + 20.0)
        *ours, one, other = game.players
        assert {names for _, _, names in game.steps} == {frozenset(player.member.me.name for player in ours)}
        assert one.over == other.over != ""
        assert "the id is another run's: its nodes run a.py, this one b.py" in one.over
        for player in ours:
            player.machine.host_gone = player.machine.dead = True
        game.players.append(Player(game, 4))
        game.players[-1].member.me = replace(game.players[-1].member.me, program="b.py")
        game.network.run(later + 20.0 + 2 * TIMES.lease)
    finally:
        game.network.end()
    assert game.steps[-1][2] == {game.players[4].member.me.name}


def test_other_arguments_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """Nodes whose workers have different arguments belong to one run, because arguments may be paths of a node.
    Each node warns once."""
    logging.disable(logging.NOTSET)
    game = Game(1, nodes=2)
    try:
        for number, player in enumerate(game.players):
            player.member.me = replace(player.member.me, program="a.py", arguments=str(number))
        game.network.run(20.0)
    finally:
        game.network.end()
    told = [each.message for each in caplog.records if "give their workers other arguments" in each.message]
    assert len(game.steps[-1][2]) == len(told) == 2


def test_a_credential_that_expires_stops_the_run_and_not_at_once() -> None:
    """Steps continue for most of the lease. Then the workers wait, and a node that the table refuses for long after
    that ends."""
    game = Game(1)
    try:
        game.network.run(10.0)
        game.refused = True
        game.network.run(10.0 + TIMES.lease + TIMES.read + 5)
        assert not any(player.alive for player in game.players)
        assert all("the credential has expired" in line for line in game.log if "dies" in line)
    finally:
        game.network.end()
    lasted = game.steps[-1][0] - 10.0
    assert 0.5 * TIMES.lease < lasted < TIMES.lease


def a_team_of_one_is_cut_off(seed: int) -> Game:
    return a_team_is_cut_off(seed, 1)


def a_team_of_two_is_cut_off(seed: int) -> Game:
    return a_team_is_cut_off(seed, 2)


def a_team_is_cut_off(seed: int, nodes: int) -> Game:
    """Cut a team off from the table and from a newcomer that reaches the table. The team's workers don't notice."""
    game = Game(seed, nodes=nodes)
    try:
        game.network.run(10.0)
        team, until = list(game.players), 10.0 + 2 * TIMES.lease
        game.players.append(Player(game, nodes))
        game.cut(team, game.players[nodes:], LOST)
        for player in team:
            player.machine.asleep_until = until
        game.network.run(until)
        game.heal()
        game.settle(2 * TIMES.lease)
    finally:
        game.network.end()
    return game


def test_a_team_of_one_that_is_cut_off_stops_before_another_begins() -> None:
    """The lease of a cut-off node ends for that node before it ends for others. Then the newcomer works, and later
    meets the node again."""
    game = a_team_of_one_is_cut_off(1)
    assert len({names for _, _, names in game.steps}) >= 3  # the one, the other, both


def test_the_rules_can_be_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules find a member that ignores the end of its lease, a round that is held, or the loss of a round's
    row."""

    def assert_found(owner: object, name: str, change: object, story: Callable[[int], Game], seeds: range) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, change)
            with pytest.raises(Broken, match="two teams can make steps"):
                [story(seed) for seed in seeds]

    assert_found(lookout.Lookout, "_leased", lambda _self, _silent: set(), a_team_of_two_is_cut_off, range(3))
    assert_found(lookout.Lookout, "may_work", lambda _self: True, a_team_of_one_is_cut_off, range(3))
    assert_found(protocol.View, "_holds", lambda _self, _member: False, play, range(10))
    assert_found(protocol.View, "at_work_elsewhere", lambda _self: False, play, range(4, 5))
