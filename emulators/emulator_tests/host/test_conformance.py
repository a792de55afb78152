"""Our backend gives the same results as Microsoft's azure-functions-runtime, which Azure runs, on Python 3.13."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from emulator_tests.host.conftest import SampleHost, StartHost
from emulator_tests.places import CACHE
from emulators.process import wait_for
from emulators.testing import python313 as python313_here
from emulators.testing.conformance import http, installed, one, run

SAMPLE = Path(__file__).parent / "apps" / "sample"


@pytest.fixture(scope="session")
def python313() -> str:
    if (found := python313_here.find()) is None:
        pytest.skip("azure-functions-runtime needs Python 3.13: there is no python3.13 on PATH and none from pyenv")
    return str(installed(found, CACHE / "venv313"))


EVENT = {
    "id": "1",
    "topic": "/t",
    "subject": "/s",
    "eventType": "T",
    "eventTime": "2026-11-21T01:02:03.4567891Z",
    "data": {"n": 1},
    "dataVersion": "1",
}
CLOUD = {"specversion": "1.0", "id": "c", "source": "s", "type": "t", "data": {"n": 2}}
METADATA = {
    **one("Id", "string", "message-1"),
    **one("DequeueCount", "json", "1"),
    **one("PopReceipt", "string", "receipt"),
    **one("InsertionTime", "json", '"2026-11-21T01:02:03+00:00"'),
    **one("ExpirationTime", "json", '"9999-12-31T23:59:59.999999+00:00"'),
    **one("NextVisibleTime", "json", '"2026-11-21T01:02:03.456789+00:00"'),
}
NAN = {"base64": "/w=="}  # one byte that is not UTF-8

# Every kind of function: as it should be, malformed, and raising.
TABLE: list[tuple[str, dict[str, Any]]] = [
    (
        "http",
        {"function": "echo", "inputs": http(query={"a": "1"}, params={"name": "n"}, headers={"x-a": "1"}, body="b")},
    ),
    ("http post", {"function": "echo", "inputs": http(method="POST"), "retry": [1, 2]}),
    ("http text", {"function": "text", "inputs": http()}),
    ("http described", {"function": "described", "inputs": http()}),
    ("http cookies", {"function": "cookies", "inputs": http()}),
    ("http json", {"function": "json_body", "inputs": http(body='{"a": [1, 2.5, null]}')}),
    ("http malformed json", {"function": "json_body", "inputs": http(body="{")}),
    ("http malformed kind", {"function": "echo", "inputs": one("req", "string", "x")}),
    ("http raising", {"function": "boom", "inputs": http()}),
    ("http returning None", {"function": "nothing", "inputs": http()}),
    ("queue", {"function": "work", "inputs": one("msg", "string", '{"seconds": 0}'), "metadata": METADATA}),
    ("queue bytes", {"function": "work", "inputs": one("msg", "bytes", NAN), "metadata": METADATA}),
    ("queue malformed kind", {"function": "work", "inputs": one("msg", "json", "{}"), "metadata": METADATA}),
    ("queue malformed body", {"function": "work", "inputs": one("msg", "string", "{"), "metadata": METADATA}),
    (
        "queue malformed time",
        {
            "function": "work",
            "inputs": one("msg", "string", "{}"),
            "metadata": {**METADATA, **one("InsertionTime", "string", "yesterday")},
        },
    ),
    (
        "queue malformed count",
        {
            "function": "work",
            "inputs": one("msg", "string", "{}"),
            "metadata": {**METADATA, **one("DequeueCount", "string", "many")},
        },
    ),
    (
        "queue replaced metadata",
        {
            "function": "work",
            "inputs": one("msg", "string", "{}"),
            "metadata": {**METADATA, **one("Id", "string", "mine"), **one("DequeueCount", "string", "99")},
        },
    ),
    ("queue raising", {"function": "work", "inputs": one("msg", "string", '{"fail": 5}'), "metadata": METADATA}),
    ("queue outputs", {"function": "copy", "inputs": one("msg", "string", "this"), "metadata": METADATA}),
    ("queue text", {"function": "plain", "inputs": one("msg", "string", "this"), "metadata": METADATA}),
    ("queue text from bytes", {"function": "plain", "inputs": one("msg", "bytes", {"base64": "eA=="})}),
    ("queue text from a number", {"function": "plain", "inputs": one("msg", "http", {"method": "GET", "url": "u"})}),
    (
        "timer",
        {
            "function": "tick",
            "inputs": one("timer", "json", '{"IsPastDue": true, "Schedule": {}, "ScheduleStatus": {"Last": "x"}}'),
            "retry": [2, 3],
        },
    ),
    ("timer without status", {"function": "tick", "inputs": one("timer", "json", '{"ScheduleStatus": null}')}),
    ("timer malformed kind", {"function": "tick", "inputs": one("timer", "string", "{}")}),
    ("timer malformed json", {"function": "tick", "inputs": one("timer", "json", "{")}),
    ("event", {"function": "on_event", "inputs": one("event", "json", json.dumps(EVENT))}),
    ("cloud event", {"function": "on_event", "inputs": one("event", "json", json.dumps(CLOUD))}),
    ("event malformed kind", {"function": "on_event", "inputs": one("event", "string", json.dumps(EVENT))}),
    ("event malformed time", {"function": "on_event", "inputs": one("event", "json", '{"eventTime": "soon"}')}),
    (
        "event raising",
        {"function": "on_event", "inputs": one("event", "json", json.dumps({**EVENT, "data": {"fail": True}}))},
    ),
]


def test_every_invocation_ends_equally(python313: str, tmp_path: Path) -> None:
    """Success, type and text of errors, return values, outputs and the functions' inputs are equal in both
    backends."""
    rows = [row for _, row in TABLE]
    ours = run(sys.executable, SAMPLE, "direct", rows, tmp_path)
    theirs = run(python313, SAMPLE, "runtime", rows, tmp_path)
    names = [name for name, _ in TABLE]
    assert dict(zip(names, ours["outcomes"], strict=True)) == dict(zip(names, theirs["outcomes"], strict=True))
    assert ours["records"] == theirs["records"]
    assert ours["indexed"] == theirs["indexed"]


def scenario(host: SampleHost) -> dict[str, Any]:
    """Run the same scenario on any host: HTTP, successful messages, poison messages, outputs, events, a timer."""
    echo = host.call("/api/echo/x?a=1", "POST", data=b"body").json()
    answers = [host.call(f"/api/{route}") for route in ("text", "described", "cookies", "boom", "nothing", "missing")]
    hook = "/runtime/webhooks/EventGrid?functionName=on_event"
    delivery = host.call(hook, "POST", json=[EVENT, CLOUD], headers={"aeg-event-type": "Notification"})
    for body, suffix in (('{"n": 1}', ""), ('{"fail": 9}', ""), ("text", "-plain"), ("copy", "-in")):
        host.send(body, suffix)
    wait_for(lambda: host.count("-poison") == 1 and host.count("-more") == 2 and host.records("plain"), 60, "messages")
    admin = host.call("/admin/functions/tick", "POST", json={})
    (tick,) = host.wait_for_records("tick")
    return {
        "echo": echo,
        "answers": [
            (a.status_code, a.text, a.headers.get("Content-Type"), a.headers.get("Set-Cookie")) for a in answers
        ],
        "delivery": delivery.status_code,
        "event": sorted(json.dumps(entry) for entry in host.records("event")),
        "work": sorted((entry["body"], entry["tries"] or 0) for entry in host.records("work")),
        "queues": [host.bodies(suffix) for suffix in ("-poison", "-out", "-more")],
        "tick": [admin.status_code, {name: fact for name, fact in tick.items() if name != "invocation"}],
    }


def test_the_host_behaves_equally_on_both_backends(python313: str, start_host: StartHost) -> None:
    """On Azurite, the host with Microsoft's runtime and the host with our backend give the same results end to end."""
    ours = scenario(start_host())
    assert scenario(start_host({"TZ": "UTC"}, python=python313, backend="runtime")) == ours
    assert ours["queues"] == [['{"fail": 9}'], ["copied copy"], ["one", "two"]]
