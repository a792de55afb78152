"""When a run waited for nodes and when it had them, from its record. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise

from shared.money.ledger import Spell, Use
from shared.runs.model import FINAL, Run, RunState

WAITING = (RunState.SUBMITTED, RunState.QUEUED)


def use_of(run: Run, now: datetime) -> Use:
    """What the run had of its cluster until now."""
    ended = run.history[-1].at if run.state in FINAL and run.history else None
    moments = [(moment.state, moment.at) for moment in run.history if moment.state not in FINAL]
    spells = [(state, begin, end) for (state, begin), (_, end) in pairwise([*moments, (run.state, ended or now)])]
    waited = tuple(Spell(begin, end, run.nodes) for state, begin, end in spells if state in WAITING and begin < end)
    ran = tuple(
        Spell(begin, end, run.nodes) for state, begin, end in spells if state is RunState.RUNNING and begin < end
    )
    if run.elastic is not None:
        sizes = [(size.nodes, size.at) for size in run.elastic.sizes]
        waited = tuple(Spell(spell.begin, spell.end, run.nodes) for spell in _joined((*waited, *ran)))
        ran = tuple(
            Spell(begin, end, nodes)
            for (nodes, begin), (_, end) in pairwise([*sizes, (0, ended or now)])
            if nodes and begin < end
        )
    return Use(run.name, run.cluster, run.created_at, waited, ran, ended)


def _joined(spells: Iterable[Spell]) -> list[Spell]:
    """One spell from the first one's begin to the last one's end: the members of an elastic run wait all the time."""
    found = sorted(spells, key=lambda spell: spell.begin)
    return [Spell(found[0].begin, max(spell.end for spell in found), found[0].nodes)] if found else []


def seconds_of(run: Run) -> float | None:
    """How long a completed run had its nodes, with the time they were allocated; None if it is not completed."""
    if run.state is not RunState.COMPLETED or len(run.history) < 2:
        return None
    begin = next((moment.at for moment in run.history if moment.state is RunState.RUNNING), None)
    return (run.history[-1].at - begin).total_seconds() if begin else None
