"""A run of several nodes in virtual time, the faults that happen to them, and the two rules that must hold.

Each node is the real Member over the real backend. This module plays the agents and workers: they make a step when all
members of a team are at work, reach each other and may work. A worker that loses a peer leaves its round.

- Two teams can never both make a step, even if a team has one member.
- When no further faults happen, a team works within bounded time, and no waiting node could make that team larger.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

from torch.distributed.elastic.rendezvous.api import RendezvousClosedError, RendezvousError

from tests.elastic.simulation.machine import CLOSED, LOST, OPEN, Ended, Machine, Network
from tests.elastic.simulation.memory import Entity, MemoryTable
from trainers.elastic.backend import KIND, AzureTableRendezvousBackend
from trainers.elastic.client import Denied, Unreachable
from trainers.elastic.member import Member
from trainers.elastic.protocol import Change, Limits, Round, Times
from trainers.elastic.teams import best_team
from trainers.elastic.waiter import OtherProgram

TIMES = Times(last_call=1, interval=1, lease=20, heartbeat=2)
STEP, STILL, MEETING = 0.25, 1.0, 3.0
# Longer than a lease, then a wait for a link to heal, and a round or two.
SETTLE = 60.0
MOST_NODES = 7

Parts = list[tuple[list["Player"], list["Player"], bool]]


class Broken(AssertionError):
    """A rule was broken with this seed."""


class Player:
    """A node: its machine, its member, and the round in which its workers are."""

    def __init__(self, game: Game, number: int) -> None:
        self.game = game
        self.machine = Machine(game.network, f"n{number:02}")
        table = MemoryTable(lambda what: game.request(self, what), game.entities, game.now)
        backend = AzureTableRendezvousBackend(table, "run")
        self.member = Member(backend, game.limits, TIMES, self.machine.name, means=self.machine)
        self.member.changed = self._changed
        self.member.stands_still = self._stands_still
        self.member.unsure = lambda: setattr(self, "held", True)
        self.at_work: Any = None
        self.held = False
        self.parting = 0.0
        self.began = 0  # the last round in which its workers were
        self.stepped = False
        self.ticked_at = 0.0
        self.over = ""
        self._broken = threading.Event()
        game.network.start(self.machine, self._live)

    @property
    def alive(self) -> bool:
        return not self.machine.dead and not self.over

    def _live(self) -> None:
        try:
            while True:
                joined = self.member.join()
                self._broken.clear()
                self.ticked_at, self.stepped, self.held = self.game.network.now, False, False
                self.at_work, self.began = joined.round, joined.round.number
                self._work(joined.round)
                self.at_work = None
        except RendezvousClosedError as error:
            self.over = f"closed: {error}"
        except OtherProgram as error:
            self.over = f"bad arguments: {error}"
        except RendezvousError as error:  # the table gave no answer for minutes: the process ends, and leaves no word
            self.game.kill(self, f"{type(error).__name__}: {error}")
        except Ended:
            self.at_work = None
            raise

    def _work(self, made: Round) -> None:
        while not self._broken.is_set():
            self.machine.wait(self._broken, STEP)
            if self.held and not self._broken.is_set():
                if not self.member.confirm(made.number):
                    return
                self.held = False

    def _changed(self, number: int, _why: list[Change]) -> None:
        if self.at_work and self.at_work.number == number == self.member.me.joined:
            self.lose_peer()

    def lose_peer(self) -> None:
        """Let the workers leave their round after `parting` seconds."""
        made, network = self.at_work, self.game.network
        if self.parting:
            network.at(network.now + self.parting, lambda: self._part(made))
        else:
            self._broken.set()

    def _part(self, made: Any) -> None:
        if self.at_work is made:
            self._broken.set()

    def _stands_still(self) -> bool | None:
        late = self.game.network.now - self.ticked_at
        if not self.stepped:
            return True if late > MEETING else None
        return late > STILL


class Game:
    """The story that one seed produces."""

    def __init__(self, seed: int, nodes: int = 4, limits: Limits = Limits(1, 4), trouble: float = 60.0) -> None:  # noqa: B008
        random.seed(seed)
        self.seed, self.limits, self.trouble = seed, limits, trouble
        self.network = Network(seed)
        self.network.watched = self._watch
        self.dice = self.network.dice
        self.entities: dict[tuple[str, str], Entity] = {}
        self.lossy, self.refused = 0.0, False
        self.log: list[str] = []
        self.players = [Player(self, number) for number in range(nodes)]
        self.steps: list[tuple[float, int, frozenset[str]]] = []
        self._step_at = 0.0
        self.written = 0  # rounds
        self.healed_at = 0.0
        self.after: list[list[str]] = []

    def now(self) -> datetime:
        """Return the time of the table's clock, which runs at the pace of the nodes' clocks."""
        return datetime.fromtimestamp(self.network.now, UTC)

    def say(self, what: str) -> None:
        self.log.append(f"{self.network.now:7.2f} {what}")

    # --- what a node asks of the table --------------------------------------------------------------------------------

    def request(self, player: Player, what: str) -> Callable[[], None]:
        """Delay the request and its answer. Either may be lost."""
        self.network.block(None, self.dice.uniform(0.001, 0.05))
        fate = self.dice.random()
        if self.refused:
            raise Denied("403: the credential has expired")
        if fate < self.lossy:
            raise Unreachable("lost on the way there")

        def answer() -> None:
            self.written += what == "replace"
            self.network.block(None, self.dice.uniform(0.001, 0.05))
            if self.lossy <= fate < 2 * self.lossy:
                raise Unreachable("the answer was lost")

        return answer

    # --- steps, and the first rule ------------------------------------------------------------------------------------

    def able(self) -> dict[Round, list[Player]]:
        """Return the teams that could make a step now."""
        teams: dict[int, list[Player]] = {}
        for player in self.players:
            if player.at_work and player.alive:
                teams.setdefault(player.at_work.number, []).append(player)
        whole: dict[Round, list[Player]] = {}
        for team in teams.values():
            for made in {id(player.at_work): player.at_work for player in team}.values():
                if made and len(team) >= len(made.team) and self._able(made, team):
                    whole[made] = team
        return whole

    def _able(self, made: Round, team: list[Player]) -> bool:
        ours = [player for player in team if player.at_work == made and player.member.may_work()]
        return len(ours) == len(made.team) and self._connected(ours)

    def _connected(self, team: list[Player]) -> bool:
        return all(self.network.way(a.machine, b.machine) == OPEN for a, b in combinations(team, 2))

    def _watch(self) -> None:
        teams = self.able()
        if len(teams) > 1:
            self.fail(f"two teams can make steps: {[sorted(made.names) for made in teams]}")
        if self.network.now < self._step_at:
            return
        self._step_at = self.network.now + STEP
        for made, team in teams.items():
            self.steps.append((self.network.now, made.number, made.names))
            for player in team:
                player.ticked_at, player.stepped = self.network.now, True
        for player in self.players:
            self._notice(player)

    def _notice(self, player: Player) -> None:
        """Let a worker notice a closed connection: closed by the peer's process or kernel, or by a node that
        refuses it."""
        made = player.at_work
        if not made or not player.alive:
            return
        for other in self.players:
            if other is player or other.member.me.name not in made.names or player.at_work is not made:
                continue
            way = self.network.way(player.machine, other.machine)
            left = other.at_work != made and other.began >= made.number
            if (other.began >= made.number and way == CLOSED) or (way == OPEN and left and not other.machine.host_gone):
                player.lose_peer()

    def fail(self, why: str) -> None:
        raise Broken("\n".join([f"seed {self.seed}: {why}", *self.log[-40:]]))

    # --- what happens -------------------------------------------------------------------------------------------------

    def kill(self, player: Player, why: str, host: bool = False) -> None:
        self.say(f"{player.machine.name} dies: {why}")
        player.machine.dead, player.machine.host_gone, player.at_work = True, host, None

    def cut(self, ones: list[Player], others: list[Player], how: str, one_way: bool = False) -> None:
        self.say(f"cut ({how}) {[p.machine.name for p in ones]} from {[p.machine.name for p in others]}")
        for one in ones:
            for other in others:
                self.network.ways[one.machine.name, other.machine.name] = how
                if not one_way:
                    self.network.ways[other.machine.name, one.machine.name] = how

    def heal(self) -> None:
        self.say("all ways are open")
        self.network.ways.clear()

    def spoil(self, what: str, value: bytes | None) -> None:
        """Delete a row, or write garbage into it."""
        names = [place for place in self.entities if place[1].startswith(f"{KIND}.{what}")]
        if names:
            place = self.dice.choice(sorted(names))
            self.say(f"{'delete' if value is None else 'spoil'} {place[1]}")
            if value is None:
                del self.entities[place]
            else:
                MemoryTable(entities=self.entities, now=self.now).write(place, value)

    # --- the second rule ----------------------------------------------------------------------------------------------

    def settle(self, seconds: float = SETTLE) -> None:
        """Stop all faults. A team that can't be larger has to be at work in time, and to stay at work."""
        self.lossy = 0.0
        end = self.network.now + seconds
        self.say("nothing happens any more")
        self.network.run(end)
        teams = self.able()
        live = [player for player in self.players if player.alive]
        if not teams:
            self.fail(f"no team is at work; {[p.member.view.round for p in live]}")
        made = next(iter(teams))
        if not any(number == made.number and at > end - 2 for at, number, _ in self.steps):
            self.fail("the team makes no steps")
        larger = self._largest(live, made)
        if len(larger) > len(made.team):
            self.fail(f"{sorted(made.names)} work, and {sorted(larger)} could")

    def _largest(self, live: list[Player], made: Round) -> list[str]:
        """Return the largest team over the present links that includes a node that has worked in the run."""
        nodes = []
        for player in live:
            apart = [o for o in live if self.network.way(player.machine, o.machine) != OPEN]
            apart += [o for o in live if self.network.way(o.machine, player.machine) != OPEN]
            names = tuple(sorted({o.member.me.name for o in apart if o is not player}))
            nodes.append(_Reach(player.member.me.name, names, player.member.me.worked))
        return [node.name for node in best_team(nodes, made.names, 1, self.limits.most)]

    def close(self) -> None:
        """Let one node close the run. After that, no round begins, and waiting nodes end."""
        (closer, *_) = [player for player in self.players if player.alive and player.at_work]
        self.network.start(closer.machine, lambda: closer.member.close("done"))
        self.network.run(self.network.now + 20)
        for player in self.players:
            if player.alive and not player.at_work:
                self.fail(f"{player.machine.name} waits in a run that is closed")


class _Reach:
    def __init__(self, name: str, unreached: tuple[str, ...], worked: int) -> None:
        self.name, self.unreached, self.worked = name, unreached, worked


def cut_once(
    seed: int, parts: Callable[[list[Player]], list[tuple[list[Player], list[Player], bool]]], how: str
) -> Game:
    """Play four working nodes and one cut, and return the game 15 s later."""
    game = Game(seed)
    try:
        game.network.run(10.0 + random.Random(seed).random() * 10)
        if [len(made.team) for made in game.able()] != [4]:
            game.fail("four do not meet")
        game.written = 0
        for ones, others, one_way in parts(game.players):
            game.cut(ones, others, how, one_way)
        game.network.run(game.network.now + 15.0)
        game.after = [sorted(p.machine.name for p in team) for team in game.able().values()]
        writes, game.healed_at = game.written, game.network.now
        game.heal()
        game.settle(25.0)
        game.written = writes
    finally:
        game.network.end()
    return game


def play(seed: int) -> Game:
    """Play a random story with crashes, cuts, sleeping nodes, lost answers, lost rows and newcomers."""
    game = Game(seed, limits=Limits(1, random.Random(seed).choice((2, 3, 4))))
    dice = game.dice
    # Whose port refuses and who at the same time can't reach the table is taken for dead: the one thing left out.
    cuts, sleepy = ((LOST, CLOSED), False) if seed % 2 else ((LOST,), True)
    game.lossy = dice.choice((0.0, 0.0, 0.002))
    acts: dict[str, Callable[[], object]] = {
        "cut": lambda: game.cut(*_parts(game), dice.choice(cuts), one_way=dice.random() < 0.3),
        "pair": lambda: game.cut([_any(game)], [_any(game)], dice.choice(cuts)),
        "heal": game.heal,
        "kill": lambda: _kill(game),
        "come": lambda: _come(game),
        "row": lambda: game.spoil("node:", dice.choice((None, b"no JSON", b"[1]"))),
        "state": lambda: game.spoil("state", dice.choice((None, b"corrupt"))),
    }
    if sleepy:
        acts["sleep"] = lambda: _sleep(game, _any(game), dice.uniform(1, 40))
    at = dice.uniform(1, 10)
    while at < game.trouble:
        game.network.at(at, acts[dice.choice([*acts])])
        at += dice.expovariate(1 / 6)
    try:
        _play(game)
    finally:
        game.network.end()
    return game


def _play(game: Game) -> None:
    """Play the story, and check the outcome against the rules."""
    game.network.run(game.trouble)
    if game.dice.random() < 0.7:
        game.heal()
    for player in game.players:
        player.machine.asleep_until = 0.0
    game.settle()
    game.close()


def _live(game: Game) -> list[Player]:
    return [player for player in game.players if player.alive]


def _kill(game: Game) -> None:
    if len(_live(game)) > 1:
        game.kill(_any(game), "kill -9", host=game.dice.random() < 0.3)


def _come(game: Game) -> None:
    if len(game.players) < MOST_NODES:
        game.players.append(Player(game, len(game.players)))


def _any(game: Game) -> Player:
    return game.dice.choice(_live(game))


def _parts(game: Game) -> tuple[list[Player], list[Player]]:
    live = _live(game)
    game.dice.shuffle(live)
    at = game.dice.randint(1, max(1, len(live) - 1))
    return live[:at], live[at:]


def _sleep(game: Game, player: Player, seconds: float) -> None:
    game.say(f"{player.machine.name} sleeps for {seconds:.1f} s")
    player.machine.asleep_until = game.network.now + seconds


if __name__ == "__main__":
    import sys

    with contextlib.suppress(BrokenPipeError):
        print("\n".join(play(int(sys.argv[1])).log))
