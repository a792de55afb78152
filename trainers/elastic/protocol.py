"""The rules of the rendezvous: which nodes work together. Values and decisions without any I/O.

Each node has one row that only this node writes. One further row holds the round: the team that currently works
together. A node that sees that a new round can begin writes this row, on the condition that the row is still the
version that the node read (etag). So if several nodes write, one succeeds, and the others find themselves in its team.

    a node arrives      its row says that it waits, with a new ticket
    a round begins      when no node holds the previous round, and enough nodes wait: their tickets are the team
    a node breaks off   its row says that it waits, with its next ticket; the old ticket no longer holds the old round
    a node leaves       its row says so
    a node dies         its row is no longer updated, and its bell does not answer: the others count the node as gone
    a link breaks       a node that breaks off names the nodes that it can't reach: no team contains both

Four rules are the basis of everything else:

1. A round is replaced only when no member of its team holds it: each member has a later ticket, has left, or is gone.
2. A node works only in a round whose team contains the ticket that the node waits with.
3. A team is the largest set of waiting nodes that all reach each other (teams.py); the others wait for a link to heal.
   A team gives way to waiting nodes that would form a larger team.
4. Clocks are never compared. Each node measures with its own monotonic clock how long another node's row stays the
   same.

tests/elastic/simulation plays the members of a run over these rules, with every fault between any two requests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from .teams import best_team

# The workers' share of a lease. A lone node's lease is LONE_LEASE silences of a dead node; its workers get one silence.
WORKING_SHARE, LONE_LEASE = 0.8, 2.5


# The form of a node's row that this version writes. A row of form 1 has the fields below and nothing else: its readers
# refuse any other field. A row of form 2 has further fields, and its readers ignore fields that they don't know. A row
# of form 3 has the fields of form 1, and all others in another column, where older readers don't look.
FORM = 3
FIRST_FORM = ("name", "ticket", "beat", "joined", "left", "done", "workers", "address", "port", "bell")


class Unreadable(ValueError):
    """A row contains no valid round or node."""


@dataclass(frozen=True)
class Node:
    """The content of a node's row. `joined` is the number of the round in which the node works, or -1 while it waits.

    `worked` is the last round in which the node worked, and `unreached` lists the nodes that it can't reach. `holds`:
    the node's workers pause while it is unknown whether their round is valid. `most`: the maximum size of a team, as
    given at the start. `program` is the program that the workers run, and `arguments` a digest of its arguments, or ''
    if unknown. `form`: the form of rows that the node's program writes.
    """

    name: str
    ticket: int = 1
    beat: int = 0
    joined: int = -1
    left: bool = False
    done: bool = False
    workers: int = 1
    address: str = ""
    port: int = 0  # the workers' meeting port if this node is the first of its team
    bell: int = 0  # the port at which it answers with its name
    worked: int = 0
    unreached: tuple[str, ...] = ()
    holds: bool = False
    most: int = 0
    program: str = ""
    arguments: str = ""
    form: int = FORM

    def text(self) -> bytes:
        """Return the fields as text, for readers of form 2."""
        return json.dumps(asdict(self)).encode()

    def in_two(self) -> tuple[bytes, bytes]:
        """Return the fields of form 1, and the remaining fields."""
        parts = asdict(self)
        first = {name: parts.pop(name) for name in FIRST_FORM}
        return json.dumps(first).encode(), json.dumps(parts).encode()

    @classmethod
    def of(cls, text: bytes, others: bytes = b"") -> Node:
        """Parse a row; fields of later versions are ignored. Raises Unreadable."""
        try:
            parts = {**json.loads(text), **json.loads(others or b"{}")}
            return cls(**_facts(cls, {"form": 2 if "unreached" in parts else 1, **parts}))
        except (ValueError, TypeError) as error:
            raise Unreadable(f"a node's row cannot be read: {error}") from error


@dataclass(frozen=True)
class TeamMember:
    """One member of a team: a node, and the ticket of its wait."""

    name: str
    ticket: int
    workers: int = 1


@dataclass(frozen=True)
class Round:
    """A team in the order of ranks, and the address of the workers' meeting. `closed` gives the reason for the run's
    end.
    """

    number: int = 0
    team: tuple[TeamMember, ...] = ()
    address: str = ""
    port: int = 0
    closed: str = ""

    def text(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def of(cls, text: bytes) -> Round:
        try:
            parts = _facts(cls, json.loads(text))
            return cls(**{**parts, "team": tuple(TeamMember(**_facts(TeamMember, member)) for member in parts["team"])})
        except (ValueError, TypeError, KeyError) as error:
            raise Unreadable(f"the rendezvous state cannot be read: {type(error).__name__}: {error}") from error

    def place_of(self, node: Node) -> int | None:
        """Return the rank of this node with this ticket, or None if it is not in the team."""
        tickets = [(member.name, member.ticket) for member in self.team]
        return tickets.index((node.name, node.ticket)) if (node.name, node.ticket) in tickets else None

    @property
    def names(self) -> frozenset[str]:
        return frozenset(member.name for member in self.team)


def _facts(kind: Any, parts: Any) -> dict[str, Any]:
    """Return the fields known to this version, each with the type of its default; lists become tuples."""
    if not isinstance(parts, dict):
        raise TypeError(f"{type(parts).__name__}, expected an object")
    known = {each.name: each for each in fields(kind) if each.name in parts}
    found = {name: tuple(parts[name]) if isinstance(parts[name], list) else parts[name] for name in known}
    for name, each in known.items():
        if isinstance(each.default, str | int | tuple) and type(found[name]) is not type(each.default):
            raise TypeError(f"{name} is {found[name]!r}, expected {type(each.default).__name__}")
    if not all(isinstance(name, str) for name in found.get("unreached", ())):
        raise TypeError(f"unreached is {found['unreached']!r}, expected names")
    return found


@dataclass(frozen=True)
class Joined:
    """A round, and this node's place."""

    round: Round
    rank: int


@dataclass(frozen=True)
class View:
    """The rows of one read of the table, and the nodes that count as gone for the reader."""

    round: Round = Round()
    nodes: Mapping[str, Node] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()

    def holding(self) -> list[TeamMember]:
        """Return the members that hold the round: their row has an unchanged ticket, and they neither left nor are
        gone.

        A member without a row holds the round too: if its row was deleted, a living node writes it again.
        """
        return [member for member in self.round.team if self._holds(member)]

    def _holds(self, member: TeamMember) -> bool:
        node = self.nodes.get(member.name)
        stands = node is None or (node.ticket == member.ticket and not node.left)
        return stands and member.name not in self.gone

    def most(self, limits: Limits) -> int:
        """Return the maximum size of a team. The largest maximum counts: nodes with equal rows must plan equal
        teams.
        """
        nodes = (node for node in self.nodes.values() if not node.left and node.name not in self.gone)
        return max(limits.most, *(node.most for node in nodes), 0)

    def in_one(self) -> bool:
        """Return whether rows must have every field in one column: for nodes of form 2, without nodes of form 1."""
        forms = {node.form for node in self.nodes.values() if not node.left and node.name not in self.gone}
        return 2 in forms and 1 not in forms

    def at_work_elsewhere(self) -> bool:
        """Return whether a node works in a round whose row is missing from the table; the node will notice and
        break off."""
        nodes = (node for node in self.nodes.values() if not node.left and node.name not in self.gone)
        return any(node.joined > self.round.number for node in nodes)

    def program(self) -> str:
        """Return the workers' program of the run: the team's program, otherwise the first waiting node's."""
        return next((node.program for node in self._present() if node.program), "")

    def waiting(self) -> list[Node]:
        """Return the nodes that wait for a round with the run's program: survivors first, to keep a survivor as rank
        0.
        """
        program = self.program()
        return [
            node
            for node in self._present()
            if node.joined < 0 and self.round.place_of(node) is None and program in ("", node.program or program)
        ]

    def _present(self) -> list[Node]:
        """Return the nodes that neither left nor are gone: the last team's nodes first, in their order."""
        order = {member.name: rank for rank, member in enumerate(self.round.team)}
        nodes = [node for node in self.nodes.values() if not node.left and node.name not in self.gone]
        return sorted(nodes, key=lambda node: (order.get(node.name, len(order)), node.address, node.name))


@dataclass(frozen=True)
class Limits:
    least: int
    most: int


@dataclass(frozen=True)
class Times:
    """Time limits, in seconds; README.md explains each."""

    join: float = 600
    last_call: float = 5
    close: float = 30
    heartbeat: float = 5
    interval: float = 3
    attempts: int = 2
    read: float = 120
    leave: float = 5
    lease: float = 300

    @property
    def silence(self) -> float:
        """Return the longest allowed silence of a node while others wait for the node."""
        return self.interval * self.attempts

    def lease_of(self, team: int, holds: bool) -> float:
        """Return how long the others wait for a silent team of this size before they replace the team's round.

        If a larger team died as a whole, no node would be left to see it. A node alone is a team that one eviction
        ends, so its lease is short, if its workers pause while the round is in doubt.
        """
        return min(self.lease, LONE_LEASE * self.silence) if team == 1 and holds else self.lease

    def working(self, team: int, holds: bool) -> float:
        """Return how much of its lease a team may work without the table; the rest is reserved for the current
        step."""
        lease = self.lease_of(team, holds)
        return min(lease * WORKING_SHARE, self.silence) if lease < self.lease else lease * WORKING_SHARE


def next_round(view: View, limits: Limits, last_call_over: bool) -> Round | None:
    """Return the round that may begin now, or None.

    After a loss there is no last call: all living members of the last team are back, and the round need not wait for
    other nodes.
    """
    waiting = view.waiting()
    if view.round.closed or view.holding() or view.at_work_elsewhere():
        return None
    most = view.most(limits)
    team = best_team(waiting, view.round.names, limits.least, most)
    again = any(node.name in view.round.names for node in waiting)
    if not team or (len(team) < most and not again and not last_call_over):
        return None
    members = tuple(TeamMember(node.name, node.ticket, node.workers) for node in team)
    number = max(view.round.number, *(node.worked for node in waiting)) + 1
    return Round(number, members, team[0].address, team[0].port)


@dataclass(frozen=True)
class Change:
    """A reason for the team to meet again. `all_live`: the change lost no node, so the round can end after a step."""

    words: str
    all_live: bool = False

    def __str__(self) -> str:
        return self.words


def changes(view: View, me: Node, limits: Limits, gives_way: bool = False) -> list[Change]:
    """Return the reasons for the team to meet again: none while nothing has changed, and none once the run is
    closed.

    `gives_way`: a larger set that leaves out nodes of the team has lasted for long enough to replace the team.
    """
    if view.round.closed:
        return []
    if view.round.place_of(me) is None or me.joined not in (-1, view.round.number):
        return [Change("the others met without this node")]
    holding = {member.name for member in view.holding()}
    why = [_lost(view, member) for member in view.round.team if member.name not in holding]
    why += [Change(f"{name} is out of reach") for name in me.unreached if name in holding and name != me.name]
    if len(view.round.team) < view.most(limits):
        larger = larger_team(view, limits)
        stays = {node.name for node in larger} >= holding or gives_way
        new = [node for node in larger if stays and node.name not in holding]
        why += [Change(f"{node.name} waits to join", all_live=True) for node in new]
    return why


def larger_team(view: View, limits: Limits) -> list[Node]:
    """Return the largest team of waiting nodes and nodes at work if it is larger than the present team, else [].

    The larger team may lack some or even all nodes of the present team.
    """
    team = [node for member in view.holding() if (node := view.nodes.get(member.name))]
    waiting = [node for node in view.waiting() if node.name not in view.round.names]
    larger = best_team([*team, *waiting], {node.name for node in team}, 1, view.most(limits)) if waiting else []
    return larger if len(larger) > len(view.holding()) else []


def _lost(view: View, member: TeamMember) -> Change:
    """Return how a node stopped holding the round."""
    node = view.nodes.get(member.name)
    if member.name in view.gone:
        return Change(f"{member.name} is gone")
    left = bool(node and node.left)
    return Change(f"{member.name} {'left' if left else 'broke off'}", all_live=left)
