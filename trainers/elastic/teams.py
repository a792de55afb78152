"""The nodes of a team under broken links: the largest set of mutually reachable nodes. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Protocol, TypeVar

# Sets that are compared. A cut network has as many as it has parts; more than these come of nothing but hostile rows.
MOST_SETS = 1000


class Reaching(Protocol):
    """A node, the unreachable nodes, and the last round of work (0: none)."""

    @property
    def name(self) -> str: ...
    @property
    def unreached(self) -> tuple[str, ...]: ...
    @property
    def worked(self) -> int: ...


N = TypeVar("N", bound=Reaching)


def best_team(nodes: Sequence[N], survivors: Collection[str], least: int, most: int) -> list[N]:
    """Return the largest team of mutually reachable nodes; empty if no team is large enough.

    A team with a node that ever worked in the run precedes a team without such a node, because that node has a state.
    Of several teams of the same size, a team with a survivor of the last round comes first, then the team with the
    lowest names. A set of more than `most` nodes is cut to its first nodes in the order of `nodes`.
    """
    apart = _apart(nodes)
    if not apart:
        return list(nodes[:most]) if len(nodes) >= least else []
    whole = [node for node in nodes if node.name not in apart]
    teams = []
    for part in islice(_maximal(frozenset(), frozenset(apart), frozenset(), apart), MOST_SETS):
        teams.append([node for node in nodes if node in whole or node.name in part][:most])
    enough = [team for team in teams if len(team) >= least]
    return min(enough, key=lambda team: _rank(team, survivors), default=[])


def _rank(team: Sequence[Reaching], survivors: Collection[str]) -> tuple[bool, int, bool, list[str]]:
    names = sorted(node.name for node in team)
    survives = any(name in survivors for name in names)
    return not (survives or any(node.worked for node in team)), -len(names), not survives, names


def _apart(nodes: Sequence[Reaching]) -> dict[str, frozenset[str]]:
    """Return, for each node with a broken link, the nodes at the other end. A report from either end breaks a link."""
    names = {node.name for node in nodes}
    pairs = {(node.name, other) for node in nodes for other in node.unreached if other in names and other != node.name}
    pairs |= {(other, name) for name, other in pairs}
    found: dict[str, set[str]] = {}
    for name, other in sorted(pairs):
        found.setdefault(name, set()).add(other)
    return {name: frozenset(others) for name, others in found.items()}


def _maximal(
    chosen: frozenset[str], open_: frozenset[str], done: frozenset[str], apart: dict[str, frozenset[str]]
) -> Iterator[frozenset[str]]:
    """Yield all sets without a broken link to which no node can be added (Bron and Kerbosch 1973, with a pivot)."""
    if not open_ and not done:
        yield chosen
        return
    pivot = min(sorted(open_ | done), key=lambda name: len(open_ & apart[name]))
    for name in sorted(open_ & (apart[pivot] | {pivot})):
        away = apart[name] | {name}
        yield from _maximal(chosen | {name}, open_ - away, done - away, apart)
        open_, done = open_ - {name}, done | {name}
