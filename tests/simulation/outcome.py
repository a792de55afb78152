"""The result of a schedule: what broke, what happened how often, and the trace."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from shared.models.challenge import BY
from shared.models.model import ChangeKind
from shared.removals.model import RemovalKind
from tests.fakes.world import World
from tests.simulation.rules import all_rules


@dataclass
class Outcome:
    """The result of a schedule. `broken` is '' if all rules held; `periods` is how many periods the timers needed
    after the faults."""

    seed: int
    broken: str = ""
    periods: int = 0
    calls: int = 0
    checks: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    trace: list[str] = field(default_factory=list)

    def count(self, world: World) -> None:
        """Count what happened, to show that schedules reach their intended cases."""
        for run in [row.value for row in world.runs.rows.values()]:
            self.counts[f"{run.asked.kind or 'plain'} runs {run.progress.state}"] += 1
            self.counts["moves"] += max(0, len(run.moves.places) - 1)
            for rules in all_rules():
                self.counts.update(rules.count(run))
            self.counts["retries"] += bool(run.asked.retry_of)
            self.counts["jobs started again"] += run.progress.attempts > 1
            self.counts["archives given up"] += run.archiving.gave_up_at is not None
        for drop in [row.value for row in world.drops.rows.values()]:
            self.counts[f"drops {drop.state}"] += 1
            self.counts["further generations"] += max(0, drop.generation - 1)
        self.counts["removals of drops"] += sum(each.what is RemovalKind.DROP for each in world.removals.rows.values())
        self.counts["versions"] += len(world.models.made)
        self.counts["versions let go"] += sum(version.let_go_at is not None for version in world.models.made.values())
        self._count_lines(world)
        self.counts["clusters taken to zero"] += len(world.clusters.zeroed)
        self.counts["events published"] += len(world.events.distinct())

    def _count_lines(self, world: World) -> None:
        """Count the entries in the models' histories."""
        for line in world.models.lines.values():
            moved, challenged = line.what in (ChangeKind.ALIAS, ChangeKind.UNDO), line.by == BY.name
            self.counts["aliases moved"] += moved
            self.counts["aliases undone"] += line.what is ChangeKind.UNDO
            self.counts["versions signed again"] += line.what is ChangeKind.SIGNED
            self.counts["challenges won"] += challenged and moved
            self.counts["challenges lost"] += line.what is ChangeKind.LOST


def short(value: Any) -> str:
    """Return an argument as a trace shows it."""
    name = getattr(value, "name", None) or getattr(value, "value", None) or value
    if isinstance(value, dict) and "name" in value:
        name = value["name"]
    if hasattr(name, "key"):
        name = f"{name.key} {name.state}"
    elif hasattr(name, "progress"):
        name = f"{name.name} {name.progress.state}"
    elif hasattr(name, "state"):
        name = f"{getattr(name, 'name', '')} {name.state}".strip()
    if " at 0x" in repr(name):
        return type(name).__name__
    text = str(name if not isinstance(name, dict) else json.dumps(name))
    return text if text.startswith("/") else text[:90]  # a path's length depends on the test's folder
