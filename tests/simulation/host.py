"""The host of the app's functions, like Azure's: workers that take messages, retry them, and move them to poison
queues."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from shared.drops.messages import CheckDrop, FileUploaded
from shared.kernel.at_once import at_once
from shared.kernel.drop_key import DropKey
from shared.messages import declared
from tests.fakes.ports import Crash, Message
from tests.simulation.scheduler import Invocation

RETRY_SECONDS = 60  # host.json: visibilityTimeout
LEASE_SECONDS = 600  # a message whose process died is visible again after that
TRIES = 5  # host.json: maxDequeueCount
PACES = (0.01, 0.1, 1.0, 1.0)


class Host:
    """Starts invocations of a Simulation's app, and handles at most `workers` messages at a time."""

    def __init__(self, simulation: Any, workers: int) -> None:
        self._simulation, self._workers = simulation, workers
        self._random, self._scheduler = simulation.random, simulation.scheduler
        self._world, self._oracle = simulation.world, simulation.oracle
        self._tries: dict[int, tuple[Message, int]] = {}  # the failed messages, and how often each failed
        self.poison: dict[str, list[str]] = {}

    def _start(self, name: str, work: Callable[[], object], ended: Callable[[BaseException | None], None]) -> None:
        self._simulation.note(f"START {name}")
        self._scheduler.start(Invocation(name, work, ended, self._world.clock(), self._random.choice(PACES)))

    def call(self, name: str, work: Callable[[], object]) -> None:
        """Call a timer or an HTTP route, which is not repeated."""
        self._start(name, work, lambda error: self._simulation.note(f"END {name}: {error or 'done'}"))

    def timer(self, name: str, work: Callable[[Any], object]) -> None:
        if sum(each.name == name for each in self._scheduler.alive) < 2:
            self.call(name, partial(work, self._simulation.system))

    def handle(self, queue: str = "", index: int | None = None) -> None:
        """Give a visible message to a free worker."""
        queues = [each for each in declared.QUEUES if queue in ("", each) and self._world.queues.visible(each)]
        busy = sum(invocation.name.startswith("msg ") for invocation in self._scheduler.alive)
        if not queues or busy >= self._workers:
            return
        queue = self._random.choice(queues)
        message = self._world.queues.take(queue, self._random.randrange(50) if index is None else index)
        assert message is not None
        if self._random.random() < self._simulation.faults.lapse:
            again = Message(message.text, self._world.clock() + timedelta(seconds=self._random.choice((0, 5))))
            self._world.queues.messages[queue].append(again)
        name = f"msg {queue} {message.visible_at:%M%S}-{self._scheduler.steps}"
        self._start(name, partial(self._receive, queue, message.text), partial(self._handled, queue, message))

    def _receive(self, queue: str, text: str) -> None:
        """Receive a message as the app's triggers do: a kind that is declared as inline is handled at once."""
        if message := declared.decode(queue, text.encode()):
            with at_once(self._simulation.system_of_process(), message.inline, declared.handle) as system:
                declared.handle(system, message)

    def _handled(self, queue: str, message: Message, error: BaseException | None) -> None:
        self._simulation.note(f"END {queue}: {error or 'done'}")
        if error is None:
            self._oracle.handled(declared.decode(queue, message.text.encode()))
            return
        tries = self._tries.get(id(message), (message, 0))[1] + 1
        if tries >= TRIES:
            self._aside(queue, message)
            return
        self._tries[id(message)] = (message, tries)
        seconds = self._random.choice((RETRY_SECONDS, LEASE_SECONDS)) if isinstance(error, Crash) else RETRY_SECONDS
        message.visible_at = self._world.clock() + timedelta(seconds=seconds)
        self._world.queues.messages[queue].append(message)

    def _aside(self, queue: str, message: Message) -> None:
        self._simulation.note(f"POISON {queue}", (message.text,))
        self._simulation.counts["messages put aside"] += 1
        self.poison.setdefault(queue, []).append(message.text)
        lost = declared.decode(queue, message.text.encode())
        if isinstance(lost, FileUploaded):
            self._simulation.lost.add(DropKey.of(lost.name))
        elif isinstance(lost, CheckDrop):
            self._simulation.lost.add(DropKey(lost.route, lost.name))
