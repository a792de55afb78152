"""The scheduler of the app's synchronous code, which switches between invocations at every call of a port.

Each invocation is a greenlet. Before and after every call of a port it may switch to the hub, which picks the next
invocation by the schedule's own random numbers. So a seed determines the whole schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

from greenlet import getcurrent, greenlet

from shared.kernel.errors import TrainyardError
from tests.fakes.crashing import Crash


class Violation(BaseException):
    """A rule that must hold is broken. No handler of the app may catch a Violation, so it is no Exception."""


@dataclass(eq=False)
class Invocation:
    """One call of a handler. `ended` receives the result: None, an error of ours, or Crash."""

    name: str
    work: Callable[[], object]
    ended: Callable[[BaseException | None], None]
    began_at: datetime
    pace: float  # how often it runs, compared with others, which may overtake it by many steps
    frozen_until: int = 0  # the scheduler's round before which it doesn't run
    looked_at: int = 0  # the step at which it began to read the needs for clusters
    decisions_read: int = 0  # number of decisions about clusters at its last read
    changed_at: int = 0  # the step of its last change of a cluster
    error: BaseException | None = None
    thread: greenlet = field(init=False)

    def run(self) -> None:
        try:
            self.work()
        except (Crash, TrainyardError) as exc:
            self.error = exc


class Scheduler:
    """`switch` is the probability that a call switches: low values find errors that need a long run of one side."""

    def __init__(self, random: Random, switch: float) -> None:
        self.random, self.switch = random, switch
        self.hub = getcurrent()
        self.alive: list[Invocation] = []
        self.current: Invocation | None = None
        self.steps = 0
        self.round = 0

    def start(self, invocation: Invocation) -> None:
        invocation.thread = greenlet(invocation.run, self.hub)
        self.alive.append(invocation)

    def next(self) -> Invocation | None:
        """Return the next invocation; None if all are frozen."""
        awake = [invocation for invocation in self.alive if invocation.frozen_until <= self.round]
        return self.random.choices(awake, [invocation.pace for invocation in awake])[0] if awake else None

    def go_on(self, invocation: Invocation) -> None:
        """Run the invocation until it switches or ends. Raise its exception if that is neither an error of ours nor
        a crash: the app must translate all other errors into its own."""
        self.steps += 1
        self.current = invocation
        try:
            invocation.thread.switch()
        finally:
            self.current = None
        self._bury(invocation)

    def kill(self, invocation: Invocation, why: str) -> None:
        """End the invocation, because its process died."""
        self.current = invocation
        try:
            if invocation.thread:
                invocation.thread.throw(Crash(why))
            else:  # the invocation never started
                invocation.error = Crash(why)
        finally:
            self.current = None
        self.alive.remove(invocation)
        invocation.ended(invocation.error or Crash(why))

    def freeze(self, rounds: int) -> None:
        """Switch, and stay frozen for this many rounds while the others continue."""
        if self.current is not None:
            self.current.frozen_until = self.round + rounds
            self.hub.switch()

    def thaw(self) -> None:
        for invocation in self.alive:
            invocation.frozen_until = 0

    def pause(self) -> None:
        """Offer a point at which another invocation may run. Does nothing outside an invocation."""
        if self.current is not None and self.random.random() < self.switch:
            self.hub.switch()

    def _bury(self, invocation: Invocation) -> None:
        if invocation.thread.dead:
            self.alive.remove(invocation)
            invocation.ended(invocation.error)


def check(holds: object, otherwise: str) -> None:
    """Raise Violation with these words unless the rule holds."""
    if not holds:
        raise Violation(otherwise)
