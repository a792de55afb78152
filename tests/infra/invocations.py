"""The deployed package on its own storage account, and one invocation for each kind of trigger."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emulators.storage import services
from local import package

EVENT = {
    "id": "1",
    "topic": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/a",
    "subject": "/blobServices/default/containers/drops/blobs/mnist/a/1.bin",
    "eventType": "Microsoft.Storage.BlobCreated",
    "eventTime": "2026-11-01T00:00:00Z",
    "data": {
        "api": "PutBlob",
        "eTag": "0x1",
        "contentLength": 1,
        "url": "https://a.blob.core.windows.net/drops/mnist/a/1.bin",
    },
    "dataVersion": "",
    "metadataVersion": "1",
}
OTHER = EVENT | {"subject": EVENT["subject"].replace("mnist/a", "mnist/b")}  # type: ignore[attr-defined]
TIMER = {"Schedule": {"AdjustForDST": True}, "ScheduleStatus": None, "IsPastDue": False}


def row(function: str, parameter: str, kind: str, content: Any) -> dict[str, Any]:
    return {"function": function, "inputs": {parameter: {"kind": kind, "content": content}}}


# An upload event by queue, another as a direct event, both drops in the API's list, and a timer.
TABLE = [
    row("drop_events", "message", "string", json.dumps(EVENT)),
    row("drop_event", "event", "json", json.dumps(OTHER)),
    row("retention_timer", "timer", "json", json.dumps(TIMER)),
    row("list_drops", "req", "http", {"method": "GET", "url": "http://localhost/api/drops"}),
]


def unpacked(folder: Path) -> Path:
    """The deployed zip, unpacked."""
    built = package.build(folder / "package")
    with zipfile.ZipFile(built.archive) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


@contextmanager
def settings(folder: Path) -> Iterator[dict[str, str]]:
    """App settings with a storage account of the same lifetime."""
    with services.start(folder / "storage") as storage:
        yield {
            "AzureWebJobsStorage": storage.connection_string,
            "AML_SUBSCRIPTION_ID": "s",
            "AML_RESOURCE_GROUP": "g",
            "AML_WORKSPACE": "w",
        }
