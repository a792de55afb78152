"""The app under Microsoft's azure-functions-runtime on Python 3.13, compared with our host."""

from __future__ import annotations

import base64
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from emulators.testing import azurite
from emulators.testing.conformance import http, one, run
from shared.kernel.index_settings import ROOT
from tests.runtime import python313

__all__ = ["python313"]

UPLOAD = {
    "id": "1",
    "topic": "/t",
    "subject": "/blobServices/default/containers/drops/blobs/mnist/a/1.bin",
    "eventType": "Microsoft.Storage.BlobCreated",
    "eventTime": "2026-01-01T01:02:03.4567891Z",
    "data": {"api": "PutBlob"},
    "dataVersion": "1",
}
CLOUD_UPLOAD = {
    "specversion": "1.0",
    "id": "2",
    "source": "/t",
    "type": "Microsoft.Storage.BlobCreated",
    "time": "2026-01-01T01:02:03Z",
    "subject": "/blobServices/default/containers/drops/blobs/nowhere/b/1.bin",
    "data": {"api": "PutBlob"},
}
RUN_EVENT = {
    **UPLOAD,
    "eventType": "Microsoft.MachineLearningServices.RunCompleted",
    "data": {"runId": "somebody-elses"},
}
QUEUES = ("drop_events", "submissions", "job_events", "checks", "background")


def queue(function: str, message: Any) -> dict[str, Any]:
    text = message if isinstance(message, str) else json.dumps(message)
    return {"function": function, "inputs": one("message", "string", text)}


def grid(function: str, event: dict[str, Any]) -> dict[str, Any]:
    return {"function": function, "inputs": one("event", "json", json.dumps(event))}


def get(function: str, **content: Any) -> dict[str, Any]:
    return {"function": function, "inputs": http(**content)}


STORY = [
    queue("drop_events", UPLOAD),
    grid("drop_event", CLOUD_UPLOAD),
    get("list_drops"),
    get("get_drop", params={"route": "mnist", "name": "a"}),
    get("get_drop", params={"route": "mnist", "name": "nothing"}),
    queue("drop_events", {"message": "CheckDrop", "route": "mnist", "name": "a", "token": "stale", "last": False}),
    queue("job_events", RUN_EVENT),
    grid("job_event", RUN_EVENT),
    get("get_run", params={"run": "nothing"}),
    get("list_runs", query={"limit": "many"}),
    *(queue(function, "garbage") for function in QUEUES),
    *(queue(function, {"run": 3}) for function in QUEUES),
]


def tell(python: str, backend: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The result of each call of the story on its own storage account, without times."""
    with azurite.start(folder / backend) as storage:
        monkeypatch.setenv("AzureWebJobsStorage", storage.connection_string)
        outcomes = run(python, ROOT, backend, STORY, folder)["outcomes"]
    readable = json.dumps([with_text(outcome) for outcome in outcomes])
    timeless = re.sub(r"20\d\d-\d\d-\d\dT[\d:.]+\+00:00", "TIME", readable)
    told: list[Any] = json.loads(re.sub(r'W/\\"[0-9a-f]+\\"', "TAG", timeless))  # a tag is of the body, times and all
    return told


def with_text(outcome: dict[str, Any]) -> dict[str, Any]:
    """The outcome, with an HTTP answer's body as text."""
    answer = (outcome["returned"] or {}).get("content")
    if isinstance(answer, dict) and isinstance(answer.get("body"), dict):
        answer["body"] = base64.b64decode(answer["body"]["base64"]).decode()
    return outcome


def test_the_app_runs_equally_under_microsofts_runtime(
    python313: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uploads, late checks, other people's jobs, garbage on every queue and HTTP requests have the same results in
    both."""
    for name in ("AML_SUBSCRIPTION_ID", "AML_RESOURCE_GROUP", "AML_WORKSPACE"):
        monkeypatch.setenv(name, "none")
    ours = tell(sys.executable, "direct", tmp_path, monkeypatch)

    assert tell(python313, "runtime", tmp_path, monkeypatch) == ours
    assert [outcome["error"] is None for outcome in ours] == [True] * 10 + [False] * 12
    assert "BadMessage" in json.dumps(ours[-1])
    assert "There is no route 'nowhere'" in json.dumps(ours[2])


def test_the_app_loads_and_indexes_equally(python313: str, tmp_path: Path) -> None:
    """The app starts under Microsoft's indexer, with the raw bindings and retries that our host reads."""
    theirs = run(python313, ROOT, "runtime", [], tmp_path)["indexed"]
    assert run(sys.executable, ROOT, "direct", [], tmp_path)["indexed"] == theirs
    assert theirs
