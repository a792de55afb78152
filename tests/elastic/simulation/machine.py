"""Virtual machines with their clocks, threads, bells and links. One thread runs at a time, chosen by the dice."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from greenlet import getcurrent, greenlet

from trainers.elastic.bell import ANSWER_SECONDS, ANSWERS, REFUSED, SILENT
from trainers.elastic.means import Means
from trainers.elastic.protocol import Node

OPEN, LOST, CLOSED = "open", "lost", "closed"  # a way between two machines: CLOSED refuses


class Ended(BaseException):
    """This process was killed."""


@dataclass
class Task:
    """A thread. It continues at `until`, or once `event` is set."""

    machine: Machine
    thread: Any = None
    event: threading.Event | None = None
    until: float = 0.0
    done: threading.Event = field(default_factory=threading.Event)

    def ready(self, now: float) -> bool:
        return now >= self.until or (self.event is not None and self.event.is_set())


class Network:
    """All machines, their links, and the time. `run` advances them."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.now = 0.0
        self.machines: list[Machine] = []
        self.ways: dict[tuple[str, str], str] = {}
        self.tasks: list[Task] = []
        self.plans: list[tuple[float, Callable[[], object]]] = []
        self.watched: Callable[[], None] = lambda: None
        self._hub: Any = None
        self._current: Task | None = None

    def way(self, one: Machine, other: Machine) -> str:
        """Return how one machine reaches another while both are awake."""
        there, back = (self.ways.get(pair, OPEN) for pair in ((one.name, other.name), (other.name, one.name)))
        return there if there != OPEN else LOST if back == LOST else back

    def at(self, time: float, plan: Callable[[], object]) -> None:
        self.plans.append((time, plan))

    def start(self, machine: Machine, work: Callable[[], None]) -> Task:
        task = Task(machine)

        def run() -> None:
            try:
                work()
            except Ended:
                pass
            finally:
                task.done.set()
                self.tasks.remove(task)

        task.thread = greenlet(run)
        self.tasks.append(task)
        return task

    def block(self, event: threading.Event | None, seconds: float) -> None:
        """Let other threads run until the event is set, or for this many seconds."""
        task = self._current
        if task is None:  # nobody's thread: a test that acts for itself
            return
        task.event, task.until = event, self.now + seconds
        self._hub.switch()
        if task.machine.dead:
            raise Ended

    def end(self) -> None:
        """Kill all running threads, so that none is left after the test."""
        self.watched = lambda: None
        for machine in self.machines:
            machine.dead = True
        while self.tasks:
            self.run(self.now + 1)

    def run(self, until: float) -> None:
        """Advance to this time. Every thread that can run does so at some moment, whatever the dice choose."""
        self._hub = getcurrent()
        while self.now < until:
            for plan in sorted((each for each in self.plans if each[0] <= self.now), key=lambda each: each[0]):
                self.plans.remove(plan)
                plan[1]()
            awake = [task for task in self.tasks if task.machine.dead or self.now >= task.machine.asleep_until]
            ready = [task for task in awake if task.machine.dead or task.ready(self.now)]
            if ready:
                self._current = self.dice.choice(ready)
                self._current.thread.parent = self._hub
                self._current.thread.switch()
                self._current = None
                self.now += self.dice.uniform(0.0, 0.01)
            else:
                times = [task.until for task in awake] + [task.machine.asleep_until for task in self.tasks]
                later = [time for time in [*times, *(time for time, _ in self.plans)] if time > self.now]
                self.now = min([*later, self.now + 0.25])
            self.watched()


@dataclass
class Bell:
    machine: Machine
    name: str
    port: int

    def close(self) -> None:
        self.machine.answers = False


@dataclass
class Lock:
    """A lock that lets other threads run while a thread waits for it."""

    network: Network
    held: bool = False

    def __enter__(self) -> None:
        while self.held:
            self.network.block(None, 0.001)
        self.held = True

    def __exit__(self, *_: object) -> None:
        self.held = False


@dataclass
class Meeting:
    port: int = 1


class Machine(Means):  # type: ignore[misc]  # known to mypy under its other name
    """The machine of one node. `asleep_until`: its agent gets no time until then. `host_gone`: its ports no longer
    refuse connections."""

    def __init__(self, network: Network, name: str) -> None:
        self.network, self.name = network, name
        self.rung = threading.Event()
        self.dead = self.host_gone = False
        self.answers = True
        self.asleep_until = 0.0
        network.machines.append(self)

    def now(self) -> float:
        return self.network.now

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.network.block(event, seconds)
        return event.is_set()

    def lock(self) -> Any:
        return Lock(self.network)

    def start(self, name: str, work: Callable[[], None]) -> Callable[[], None]:
        task = self.network.start(self, work)

        def ended() -> None:
            while not task.done.is_set():
                self.network.block(task.done, 1.0)

        return ended

    def bell(self, name: str, address: str, rung: threading.Event) -> Any:
        self.rung = rung
        return Bell(self, name, 1)

    def meeting(self, address: str) -> Any:
        return Meeting()

    def ring_all(self, nodes: Iterable[Node], enough: threading.Event | None = None) -> dict[str, str]:
        called = list(nodes)
        if not called:
            return {}
        self.network.block(None, 0.001)
        answers = {node.name: self._ring(node) for node in called}
        if SILENT not in answers.values():
            return answers
        self.network.block(enough, ANSWER_SECONDS)
        given_up = enough is not None and enough.is_set()
        return {name: answer for name, answer in answers.items() if answer != SILENT or not given_up}

    def _ring(self, node: Node) -> str:
        target = next(machine for machine in self.network.machines if machine.name == node.address)
        way = self.network.way(self, target)
        asleep = way == OPEN and not target.dead and self.now() < target.asleep_until
        if target.host_gone or way == LOST or asleep:
            return str(SILENT)
        if way == CLOSED or target.dead or not target.answers:
            return str(REFUSED)
        target.rung.set()
        return str(ANSWERS)
