"""Status changes of jobs, published to Event Grid as Azure ML publishes them.

Every status is a Microsoft.MachineLearningServices.RunStatusChanged event, and a success is also a RunCompleted event.
(The service's documentation promises less: failed and canceled runs may send no event. Consumers must work without
events, and get more of them here.) Events wait in the store's outbox until the topic has accepted them. So a topic that
is down loses no event, and a topic that answers late may get some events twice, with the same id.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import uuid

import aiohttp

from emulators.azureml.kernel.config import Config, EventTarget
from emulators.azureml.kernel.identity import token
from emulators.azureml.kernel.models import Job, Json, Status, timestamp
from emulators.azureml.workspace.store import Store

log = logging.getLogger(__name__)

BATCH = 50
RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)  # the last one is repeated
REFUSED_FOR_GOOD = frozenset({400, 413})  # Event Grid's answers to events that it never accepts
RUN_TYPE = "azureml.scriptrun"


def status_events(config: Config, job: Job) -> list[Json]:
    """Return the events about the job's current status, in Event Grid's schema."""
    experiment_id = config.guid("experiments", job.experiment)
    run: Json = {
        "experimentId": experiment_id,
        "experimentName": job.experiment,
        "runId": job.name,
        "runType": RUN_TYPE,
        "runTags": job.properties["tags"],
        "runProperties": {
            **job.properties["properties"],
            "_azureml.ComputeTargetType": "amlctrain",
            "_azureml.ClusterName": job.cluster,
        },
    }
    subject = f"experiments/{experiment_id}/runs/{job.name}"
    events = [_event("RunStatusChanged", subject, {**run, "runStatus": job.status.value})]
    if job.status is Status.COMPLETED:
        events.append(_event("RunCompleted", subject, run))
    return events


def _event(kind: str, subject: str, data: Json) -> Json:
    return {
        "id": str(uuid.uuid4()),
        "eventType": f"Microsoft.MachineLearningServices.{kind}",
        "subject": subject,
        "eventTime": timestamp(),
        "data": data,
        "dataVersion": "1.0",
    }


class Publisher:
    """Publishes the outbox to the topic. `wake` signals that the outbox has new events."""

    def __init__(self, store: Store, target: EventTarget) -> None:
        self.wake = asyncio.Event()
        self._store = store
        self._target = target
        self._failures = 0

    async def run(self) -> None:
        """Publish until cancelled."""
        context = ssl.create_default_context(cafile=str(self._target.ca)) if self._target.ca else True
        timeout = aiohttp.ClientTimeout(total=30)
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context), timeout=timeout, trust_env=False
        ) as session:
            while True:
                self.wake.clear()
                await self._empty_outbox(session)
                pause = RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS)) - 1] if self._failures else None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self.wake.wait()

    async def _empty_outbox(self, session: aiohttp.ClientSession) -> None:
        while batch := self._store.pending(BATCH):
            if not await self._send(session, batch):
                self._failures += 1
                return
            self._failures = 0

    async def _send(self, session: aiohttp.ClientSession, batch: list[tuple[int, Json]]) -> bool:
        """Send events. Returns whether they are done: accepted or permanently refused, which is decided for each
        event separately."""
        answer = await self._post(session, [event for _, event in batch])
        if answer is None:
            return False
        if answer and len(batch) > 1:
            for one in batch:
                if not await self._send(session, [one]):
                    return False
            return True
        if answer:
            event = batch[0][1]
            log.error(
                "dropped: %s of %s, event %s: the topic %s", event["eventType"], event["subject"], event["id"], answer
            )
        self._store.delivered(number for number, _ in batch)
        return True

    async def _post(self, session: aiohttp.ClientSession, events: list[Json]) -> str | None:
        """Publish events. Returns '' if the topic accepts them, the reason for a permanent refusal, and None for a
        later retry."""
        credential = {"aeg-sas-key": self._target.key} if self._target.key else {"Authorization": f"Bearer {token()}"}
        try:
            async with session.post(self._target.url, json=events, headers=credential) as response:
                if response.status < 300:
                    return ""
                words = (await response.content.read(300)).decode(errors="replace")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            log.warning("events not published, will try again: %s", error)
            return None
        if response.status in REFUSED_FOR_GOOD:
            return f"answers {response.status}: {words!r}"
        log.error("the topic answered %s to %d events, will try again: %r", response.status, len(events), words)
        return None
