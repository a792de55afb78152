"""The timer trigger: one host at a time fires a timer, and the status survives a restart."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from datetime import UTC, datetime

from azure.core.exceptions import AzureError, ResourceNotFoundError
from azure.storage.blob.aio import ContainerClient

from emulators.host.functions import Function, TimerTrigger
from emulators.host.stop import Stop
from emulators.host.timers.leases import Lease
from emulators.host.timers.status import Status, after_run, at_start
from emulators.host.worker.backend import Value
from emulators.host.worker.invoker import Invoker

log = logging.getLogger("host.timers")
CONTAINER = "azure-webjobs-hosts"
LONGEST_SLEEP_SECONDS = 60.0  # a clock that is set, or a laptop that slept, is noticed within this


@dataclass(frozen=True)
class TimerServices:
    """Objects that a host's timers share. Hosts with the same storage account and `host_id` share the timers."""

    invoker: Invoker
    container: ContainerClient
    host_id: str
    stop: Stop
    lock_seconds: int


class TimerListener:
    """Invokes one function on its schedule while it holds the timer's lease.

    Only one run is active at a time. After a failed run, the schedule continues unchanged.
    """

    def __init__(self, function: Function, trigger: TimerTrigger, services: TimerServices) -> None:
        container, host_id = services.container, services.host_id
        self._function = function
        self._trigger = trigger
        self._invoker = services.invoker
        self._stop = services.stop
        self._lease = Lease(
            container, f"locks/{host_id}/Host.Functions.{function.name}.Listener", services.lock_seconds
        )
        self._blob = container.get_blob_client(f"timers/{host_id}/Host.Functions.{function.name}/status")

    async def run(self) -> None:
        """Fire until the host stops. A running invocation then finishes, and its status is saved.

        Raises AzureError if the status can't be read. The method can then be called again.
        """
        while await self._lease.acquire(self._stop):
            firing = asyncio.create_task(self._fire())
            renewal = asyncio.create_task(self._lease.renew())
            try:
                await asyncio.wait({firing, renewal}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                firing.cancel()
                renewal.cancel()
                await asyncio.gather(firing, renewal, return_exceptions=True)
            if not firing.cancelled() and (error := firing.exception()):
                await self._lease.release()
                raise error

    async def release(self) -> None:
        """Release the lease, so that another host can fire this timer."""
        await self._lease.release()

    async def _fire(self) -> None:
        schedule = self._trigger.schedule
        start = at_start(schedule, await self._load(), datetime.now(UTC))
        status = start.status
        if start.changed:
            await self._save(status)
        if start.past_due or self._trigger.run_on_startup:
            status = await self._invoke(status, past_due=start.past_due, scheduled=False)
        while not self._stop.is_set():
            if (seconds := (status.next - datetime.now(UTC)).total_seconds()) > 0:
                await self._stop.within(min(seconds, LONGEST_SLEEP_SECONDS))
            else:
                status = await self._invoke(status, past_due=False, scheduled=True)

    async def _invoke(self, status: Status, *, past_due: bool, scheduled: bool) -> Status:
        began = datetime.now(UTC)
        request = timer_request(self._trigger, status, past_due=past_due)
        await self._invoker.invoke(self._function, {self._trigger.parameter: request})
        following = after_run(self._trigger.schedule, status, began, scheduled=scheduled)
        await self._save(following)
        return following

    async def _load(self) -> Status | None:
        if not self._trigger.monitored:
            return None
        try:
            download = await self._blob.download_blob()
            return Status.from_json(await download.readall())
        except ResourceNotFoundError:
            return None
        except ValueError as exc:
            log.warning("timer %s: %s", self._function.name, exc)
            return None

    async def _save(self, status: Status) -> None:
        if not self._trigger.monitored:
            return
        try:
            await self._blob.upload_blob(status.to_json().encode(), overwrite=True)
        except AzureError as exc:
            # Not worth a second run now. A restart before the next save would repeat this run as past due.
            log.warning("timer %s: cannot save its status: %s", self._function.name, exc)


def timer_request(trigger: TimerTrigger, status: Status | None = None, *, past_due: bool = False) -> Value:
    """Return the function's TimerRequest. The status is null for an unmonitored timer."""
    content = {
        "Schedule": {"AdjustForDST": trigger.schedule.adjust_for_dst},
        "ScheduleStatus": json.loads(status.to_json()) if status and trigger.monitored else None,
        "IsPastDue": past_due,
    }
    return Value("json", json.dumps(content))
