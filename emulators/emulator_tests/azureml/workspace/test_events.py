"""How the outbox delivers events to a topic that refuses some of them."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from emulator_tests.azureml.conftest import Receiver
from emulators.azureml.kernel.config import EventTarget
from emulators.azureml.workspace.events import Publisher
from emulators.azureml.workspace.store import Store


def of_run(name: str) -> dict[str, Any]:
    subject = f"experiments/e/runs/{name}"
    return {"id": f"id-{name}", "eventType": "RunStatusChanged", "subject": subject, "data": {"runId": name}}


async def publish(store: Store, target: EventTarget) -> None:
    work = asyncio.create_task(Publisher(store, target).run())
    async with asyncio.timeout(60):
        while store.pending(1):
            await asyncio.sleep(0.01)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


def test_an_event_that_is_refused_takes_no_other_with_it(
    receiver: Receiver, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the topic permanently refuses a batch, each event is sent separately, and the refused event is named."""
    names = [f"outbox-{number}" for number in range(60)]
    monkeypatch.setattr(receiver, "wrong", names[7])
    with contextlib.closing(Store(Path(":memory:"))) as store:
        store.put("none", "none", {}, map(of_run, names))
        asyncio.run(publish(store, EventTarget(receiver.url)))
    assert [e["data"]["runId"] for e in receiver.events if e["id"].startswith("id-")] == [*names[:7], *names[8:]]
    [dropped] = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert "event id-outbox-7: the topic answers 400" in dropped
