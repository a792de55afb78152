"""Routing: each event becomes a delivery in the lane of each matching subscription."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from emulators.eventgrid.accesslog import Position
from emulators.eventgrid.config import Subscription
from emulators.eventgrid.delivery import Delivery
from emulators.eventgrid.destinations import Destination
from emulators.eventgrid.faults import Faults
from emulators.eventgrid.lane import Lane
from emulators.eventgrid.schema import Event, render
from emulators.eventgrid.storage import Storage
from emulators.eventgrid.store import Store

REMOVE_SECONDS = 0.05

log = logging.getLogger(__name__)


class Broker:
    """Accepts events, stores them until their deliveries end, and counts them. `faults` may be replaced at any
    time."""

    def __init__(
        self,
        subscriptions: Iterable[Subscription],
        destination: Callable[[Subscription], Destination],
        storage: Storage,
        store: Store,
    ) -> None:
        self.faults = Faults()
        self.counts: Counter[str] = Counter()
        self._store = store
        self.lanes = {s.name: Lane(s, destination(s), storage, self._changed, self._ended) for s in subscriptions}
        self._pending: set[int] = set()
        self._ended_ids: list[int] = []
        self._barriers: list[tuple[set[int], asyncio.Event]] = []
        self._next_id = 1
        self._resume()

    @property
    def pending(self) -> int:
        return len(self._pending)

    async def run(self) -> None:
        """Deliver until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for lane in self.lanes.values():
                    tasks.create_task(lane.run())
                tasks.create_task(self._remove_ended())
        finally:
            self._store.remove(self._ended_ids)

    def wants(self, topic: str, event_type: str, subject: str) -> bool:
        """Return whether a subscription to `topic` may match such an event. If not, the event need not be created."""
        return any(
            lane.subscription.topic == topic and lane.subscription.filter.may_match(event_type, subject)
            for lane in self.lanes.values()
        )

    def accept(self, topic: str, events: Iterable[Event], position: Position | None = None) -> None:
        """Accept events for delivery. When this method returns, the events survive a restart, and `position` is
        stored."""
        batches: dict[str, list[Delivery]] = defaultdict(list)
        for event in events:
            self.counts["received"] += 1
            self.counts[f"topic {topic}"] += 1
            for lane in self.lanes.values():
                if lane.subscription.topic == topic and lane.subscription.filter.matches(event):
                    batches[lane.subscription.name] += self._deliveries(event, lane.subscription)
        if batches or position:
            self._store.put([delivery for batch in batches.values() for delivery in batch], position)
        for name, batch in batches.items():
            self._pending.update(delivery.id for delivery in batch)
            self.lanes[name].put(batch)

    async def idle(self) -> None:
        """Return when all deliveries that are pending now have ended."""
        if self._pending:
            done = asyncio.Event()
            barrier = (set(self._pending), done)
            self._barriers.append(barrier)
            try:
                await done.wait()
            finally:
                self._barriers.remove(barrier)

    def _deliveries(self, event: Event, subscription: Subscription) -> list[Delivery]:
        self.counts["matched"] += 1
        delays = self.faults.delays(event.type)
        if not delays:
            self.counts["lost"] += 1
            return []
        body, now, first = json.dumps(render(event, subscription.schema)), time.time(), self._next_id
        self._next_id += len(delays)
        return [Delivery(first + i, subscription.name, body, now, now + delay) for i, delay in enumerate(delays)]

    def _resume(self) -> None:
        """Continue the last process's deliveries before accepting new events."""
        for delivery in self._store.deliveries():
            self._next_id = delivery.id + 1
            if delivery.subscription not in self.lanes:
                log.warning("the subscription %s is gone, and so are its events", delivery.subscription)
                self._ended_ids.append(delivery.id)
                continue
            self._pending.add(delivery.id)
            self.lanes[delivery.subscription].put([delivery])

    def _changed(self, delivery: Delivery) -> None:
        self.counts["attempts_failed"] += 1
        self._store.put([delivery])

    def _ended(self, delivery: Delivery, how: str) -> None:
        self.counts[how] += 1
        self._pending.discard(delivery.id)
        self._ended_ids.append(delivery.id)
        for waiting, done in self._barriers:
            waiting.discard(delivery.id)
            if not waiting:
                done.set()

    async def _remove_ended(self) -> None:
        """Remove ended deliveries in batches, because a transaction for each would cost more than the delivery."""
        while True:
            await asyncio.sleep(REMOVE_SECONDS)
            ended, self._ended_ids = self._ended_ids, []
            if ended:
                self._store.remove(ended)
