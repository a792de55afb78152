"""Check a running run in the answers to its viewers, once a minute in each process (decision 106).

A check sends one request for the run's log, and reads the nodes' measurements. What the checks remember stays in the
memory of the process. The row is written when a problem comes or goes, and every CONFIRMED_EACH while there is one. A
run that has a chain of checks (watch.py) is only reported to the chain.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from shared.diagnosis.facts import RunIsSick
from shared.diagnosis.health import CONFIRMED_EACH, EACH, VIEWED_FOR, RunHealth
from shared.diagnosis.watch import can_be_checked, pass_on_view
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.memory import Topic
from shared.kernel.versioned import Stored
from shared.runs.model import Run
from shared.runs.ports import RunPorts

if TYPE_CHECKING:
    from shared.diagnosis.observed import Observed

MOST_RUNS = 1000


@dataclass(frozen=True)
class LastCheck:
    """What the last check of a run remembers and found. `next_at`: the time of the next check."""

    at: datetime
    next_at: datetime
    observed: Observed | None = None
    health: RunHealth | None = None


class ViewedRuns:
    """The viewed runs of this process. Safe for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, LastCheck] = OrderedDict()

    def last(self, name: str) -> LastCheck | None:
        return self._seen.get(name)

    def begin(self, name: str, now: datetime) -> LastCheck | None:
        """Return the memory with which to check the run now, or None if it is not time, or another thread checks."""
        with self._lock:
            last = self._seen.get(name)
            if last and now < last.next_at:
                return None
            if last is None or now - last.at > VIEWED_FOR:  # the log has grown too far meanwhile
                last = LastCheck(now, now)
            self._keep(name, replace(last, next_at=now + EACH))
            return last

    def keep(self, name: str, seen: LastCheck) -> None:
        with self._lock:
            self._keep(name, seen)

    def _keep(self, name: str, seen: LastCheck) -> None:
        self._seen[name] = seen
        self._seen.move_to_end(name)
        if len(self._seen) > MOST_RUNS:
            self._seen.popitem(last=False)


SEEN = Topic[ViewedRuns]("viewed runs")


def viewed(ports: Any, run: Run) -> Run:
    """Return the viewed run with its present health, and check it if a minute has passed since the last check."""
    if not can_be_checked(run):
        return run
    if (run.feature(RunHealth) or RunHealth()).is_checked(now := ports.clock()):
        pass_on_view(ports, run)
        return run
    seen = ports.memory.one(SEEN, ViewedRuns)
    if (before := seen.begin(run.name, now)) is not None:
        found = _checked(ports, run, before, now)
        seen.keep(run.name, found)
        _record(ports, run, found.health or RunHealth(), now)
    last = seen.last(run.name)
    return run.having(last.health) if last and last.health else run


def _checked(ports: RunPorts, run: Run, before: LastCheck, now: datetime) -> LastCheck:
    """Check the run. The first check also reads the log that it lists, so the second follows two minutes later."""
    from shared.diagnosis.examine import observe, problems  # not at a cold start
    from shared.diagnosis.observed import Observed

    observed = observe(ports.jobs, ports.blobs, run, before.observed or Observed())
    first = before.observed is None and observed.listed_size > 0  # an empty log would count as a silent one
    if first:
        observed = observe(ports.jobs, ports.blobs, run, observed)
    known = before.health or run.feature(RunHealth) or RunHealth()
    health = known.checked(problems(ports, run, observed, is_viewed=True), now)
    return LastCheck(now, now + (2 if first else 1) * EACH, observed, health)


def _record(ports: RunPorts, run: Run, health: RunHealth, now: datetime) -> None:
    """Write new findings into the row, state them, and confirm known ones now and then."""

    def write(stored: Stored[Run]) -> None:
        row = stored.value.feature(RunHealth) or RunHealth()
        if can_be_checked(stored.value):
            merged = replace(row, ailments=health.ailments, checked_at=now)
            ports.runs.update(stored, stored.value.having(merged))

    before = run.feature(RunHealth) or RunHealth()
    new, gone = health.new_since(before), before.new_since(health)
    confirmed = before.checked_at is not None and now - before.checked_at < CONFIRMED_EACH
    for ailment in new:
        ports.happened(RunIsSick(run, ailment))
    if new or gone or (health.ailments and not confirmed):
        compare_and_set(ports.clock, f"Run {run.name}", lambda: ports.runs.get(run.name), write)
