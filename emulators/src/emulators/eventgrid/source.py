"""Blob events of the storage account: follow its access log, read the blob's properties if the log lacks them, and
pass the events to the broker."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from dataclasses import dataclass, field

import aiohttp

from emulators.eventgrid import accesslog, schema
from emulators.eventgrid.accesslog import BlobFacts, Line, Tail, Write
from emulators.eventgrid.broker import Broker
from emulators.eventgrid.config import Topic
from emulators.eventgrid.schema import Event
from emulators.eventgrid.storage import Storage

POLL_SECONDS = 0.05
LOOKUPS = 16
RETRY_SECONDS = 0.5

log = logging.getLogger(__name__)


@dataclass
class BlobSource:
    """Makes the events of `topic`. If a blob is written again before its properties are read, its event has the
    later etag."""

    topic: Topic
    tail: Tail
    storage: Storage
    broker: Broker
    _marks: dict[bytes, asyncio.Event] = field(default_factory=dict)
    _lookups: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LOOKUPS))

    async def run(self) -> None:
        """Follow the log until cancelled. While the account is down the position does not advance, so no write is
        skipped."""
        while True:
            lines = self.tail.read(time.time())
            if not lines:
                await asyncio.sleep(POLL_SECONDS)
                continue
            writes = [write for write in map(accesslog.parse, lines) if write and self._wanted(write)]
            events = await asyncio.gather(*map(self._event, writes))
            self.broker.accept(self.topic.name, events, self.tail.position)
            self._pass_marks(lines)

    async def caught_up(self) -> None:
        """Return when the broker has every write that was answered before this call. Needs a running account, and
        otherwise raises aiohttp.ClientError."""
        mark = f"emulators-mark={uuid.uuid4()}"
        passed = self._marks[mark.encode()] = asyncio.Event()
        try:
            await self.storage.leave_mark(mark)
            await passed.wait()
        finally:
            del self._marks[mark.encode()]

    def _wanted(self, write: Write) -> bool:
        return self.broker.wants(self.topic.name, write.event, schema.blob_subject(write))

    async def _event(self, write: Write) -> Event:
        if write.facts is not None:
            return self._made(write, write.facts)
        async with self._lookups:
            while True:
                try:
                    facts = await self.storage.blob_facts(write.path)
                    break
                except (aiohttp.ClientError, TimeoutError) as error:
                    log.warning("no word from the storage account about %s: %r", write.path, error)
                    await asyncio.sleep(RETRY_SECONDS)
        return self._made(write, facts)

    def _made(self, write: Write, facts: BlobFacts | None) -> Event:
        return schema.blob_event(write, facts, self.topic.resource, self.storage.account.blob)

    def _pass_marks(self, lines: list[Line]) -> None:
        for mark, passed in self._marks.items():
            if any(mark in line.text for line in lines):
                passed.set()
