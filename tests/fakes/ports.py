"""The ports in memory: plain state machines without threads, sleep or randomness, one per Protocol of
shared/*/ports.py.

They pass the contract suites of tests/contract, which the adapters pass on Azurite and the local Azure ML. A fake's
methods beyond its port (take, put, set, ...) play the other side: the uploader, the queue's host, Azure ML.

`crashing.Crashing` wraps any of them and ends a call where a schedule requires it, as a killed process would.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.fakes.azureml import FakeClusters, FakeJobs
from tests.fakes.crashing import Crash, Crashing
from tests.fakes.models import FakeModels, FakeRegistry, FakeSigner
from tests.fakes.money import FakeBooks
from tests.fakes.notices import FakeNotices, FakeSender
from tests.fakes.records import FakeAssets, FakeDecisions, FakeDrops, FakeLeases, FakeRuns, FakeSamples
from tests.fakes.removals import FakeRemovals
from tests.fakes.schedules import FakeSchedules
from tests.fakes.storage import Clock, FakeBlobs, FakeQueues, Message

__all__ = [
    "Clock",
    "Crash",
    "Crashing",
    "FakeAssets",
    "FakeBlobs",
    "FakeBooks",
    "FakeClusters",
    "FakeDecisions",
    "FakeDrops",
    "FakeEvents",
    "FakeJobs",
    "FakeLeases",
    "FakeModels",
    "FakeNotices",
    "FakeQueues",
    "FakeRegistry",
    "FakeRemovals",
    "FakeRuns",
    "FakeSamples",
    "FakeSchedules",
    "FakeSender",
    "FakeSigner",
    "Message",
    "Published",
]


@dataclass(frozen=True)
class Published:
    kind: str
    subject: str
    data: dict[str, Any] = field(hash=False)
    event_id: str = ""
    at: datetime | None = None


class FakeEvents:
    """`published` holds every call; `distinct` what a consumer sees that compares ids."""

    def __init__(self) -> None:
        self.published: list[Published] = []

    def publish(self, kind: str, subject: str, data: dict[str, Any], event_id: str, at: datetime) -> None:
        self.published.append(Published(kind, subject, data, event_id, at))

    def distinct(self) -> list[Published]:
        return list({event.event_id: event for event in self.published}.values())
