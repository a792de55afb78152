"""One subscription's deliveries. The next due delivery starts while fewer than SLOTS are running.

Each subscription has its own lane, so a webhook that hangs delays no other subscription.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections.abc import Callable, Iterable

from emulators.eventgrid import delivery as rules
from emulators.eventgrid.config import Subscription
from emulators.eventgrid.delivery import SUCCESS, Delivery
from emulators.eventgrid.destinations import Destination, dead_letter
from emulators.eventgrid.storage import Storage

SLOTS = 16

log = logging.getLogger(__name__)

# Called for each attempt that did not end the delivery, and for its end: "delivered", "dead_lettered" or "dropped".
Changed = Callable[[Delivery], None]
Ended = Callable[[Delivery, str], None]


class Lane:
    def __init__(
        self, subscription: Subscription, destination: Destination, storage: Storage, changed: Changed, ended: Ended
    ) -> None:
        self.subscription = subscription
        self.destination = destination
        self._storage = storage
        self._changed = changed
        self._ended = ended
        self._heap: list[tuple[float, int, Delivery]] = []
        self._more = asyncio.Event()
        self._slots = asyncio.Semaphore(SLOTS)

    def put(self, deliveries: Iterable[Delivery]) -> None:
        for delivery in deliveries:
            heapq.heappush(self._heap, (delivery.due, delivery.id, delivery))
        self._more.set()

    async def run(self) -> None:
        """Deliver until cancelled. Unfinished deliveries stay in the store and are delivered again."""
        await self.destination.open()
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._slots.acquire()
                tasks.create_task(self._work(await self._next()))

    async def _next(self) -> Delivery:
        while True:
            self._more.clear()
            wait = self._heap[0][0] - time.time() if self._heap else None
            if wait is not None and wait <= 0:
                return heapq.heappop(self._heap)[2]
            try:
                await asyncio.wait_for(self._more.wait(), wait)
            except TimeoutError:
                continue

    async def _work(self, delivery: Delivery) -> None:
        try:
            await (self._bury(delivery) if delivery.reason else self._attempt(delivery))
        finally:
            self._slots.release()

    async def _attempt(self, delivery: Delivery) -> None:
        policy, now = self.subscription.policy, time.time()
        if rules.expired(delivery, policy, now):
            left = rules.give_up(delivery, "TimeToLiveExceeded", policy, now)
            return self._continue(delivery, left, "dropped")
        status = await self.destination.send(delivery)
        left = rules.after_attempt(delivery, status, policy, time.time())
        return self._continue(delivery, left, "delivered" if status in SUCCESS else "dropped")

    async def _bury(self, delivery: Delivery) -> None:
        status = await dead_letter(delivery, self.subscription, self._storage)
        left = rules.after_dead_letter(delivery, status, self.subscription.policy, time.time())
        self._continue(delivery, left, "dead_lettered" if status in SUCCESS else "dropped")

    def _continue(self, delivery: Delivery, left: Delivery | None, end: str) -> None:
        if left is None:
            self._ended(delivery, end)
            return
        what = f"given up ({left.reason})" if left.reason else f"attempt {left.attempts}: {left.outcome}"
        log.info("%s: event %d %s; next in %.1f s", left.subscription, left.id, what, left.due - time.time())
        self._changed(left)
        self.put([left])
