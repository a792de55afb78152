"""The Event Grid webhook and the admin endpoints, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests

from emulator_tests.host.conftest import SampleHost
from emulators.process import wait_for

HOOK = "/runtime/webhooks/EventGrid?functionName=on_event"


def event(number: int, **data: object) -> dict[str, object]:
    return {
        "id": f"event-{number}",
        "topic": "/subscriptions/s",
        "subject": f"/subject/{number}",
        "eventType": "Sample.Happened",
        "eventTime": "2026-11-21T01:02:03.4567891Z",
        "data": data,
        "dataVersion": "1.0",
    }


def post(host: SampleHost, body: object, kind: str = "Notification", path: str = HOOK) -> requests.Response:
    return host.call(path, "POST", data=json.dumps(body), headers={"aeg-event-type": kind})


@pytest.mark.parametrize(
    "body",
    [
        [{**event(1), "data": {"validationCode": "code-1"}}],
        {"specversion": "1.0", "id": "1", "source": "s", "type": "t", "data": '{"validationCode": "code-1"}'},
    ],
)
def test_the_handshake_returns_the_code(sample_host: SampleHost, body: Any) -> None:
    """A SubscriptionValidation event is answered with its code in both schemas, and runs no function."""
    before = sample_host.records("event")
    answer = post(sample_host, body, "SubscriptionValidation")
    assert (answer.status_code, answer.json()) == (200, {"validationResponse": "code-1"})
    assert sample_host.records("event") == before


def test_each_event_of_a_delivery_is_one_invocation(sample_host: SampleHost) -> None:
    """Three events are three invocations, and the answer is a 202."""
    assert post(sample_host, [event(n, n=n) for n in (11, 12, 13)]).status_code == 202
    seen = [entry for entry in sample_host.records("event") if entry["id"] in ("event-11", "event-12", "event-13")]
    assert sorted(entry["subject"] for entry in seen) == ["/subject/11", "/subject/12", "/subject/13"]
    assert {entry["type"] for entry in seen} == {"Sample.Happened"}


def test_one_failed_event_fails_the_delivery_after_all_have_run(sample_host: SampleHost) -> None:
    """All events of the delivery run before the 500, which makes Event Grid send the whole delivery again."""
    answer = post(sample_host, [event(21, fail=True), event(22)])
    assert (answer.status_code, answer.text) == (500, "Exception while executing function: Functions.on_event")
    assert {"event-21", "event-22"} <= {entry["id"] for entry in sample_host.records("event")}


def test_a_single_object_and_a_cloud_event_are_taken(sample_host: SampleHost) -> None:
    """A delivery may be a single object. CloudEvents are passed on unchanged."""
    cloud = {"specversion": "1.0", "id": "cloud-1", "source": "s", "type": "Cloud.Happened", "data": {"n": 1}}
    assert post(sample_host, cloud).status_code == 202
    assert next(e for e in sample_host.records("event") if e["id"] == "cloud-1")["type"] == "Cloud.Happened"


@pytest.mark.parametrize(
    ("kind", "path", "body", "status"),
    [
        ("Notification", "/runtime/webhooks/eventgrid?functionName=nobody", [], 404),
        ("Notification", "/runtime/webhooks/other?functionName=on_event", [], 404),
        ("Unsubscribe", "/runtime/webhooks/EVENTGRID?functionName=on_event", [], 202),
        ("Unsubscribe", "/runtime/webhooks/EventGrid?functionName=On_Event", [], 404),
        ("", HOOK, [], 400),
        ("Surprise", HOOK, [], 400),
        ("Notification", HOOK, "no event", 500),
        ("SubscriptionValidation", HOOK, [], 500),
    ],
)
def test_what_is_no_delivery_is_refused(sample_host: SampleHost, kind: str, path: str, body: Any, status: int) -> None:
    """An unknown function is a 404, an unknown kind of event a 400, and a broken body a 500. Function names are
    case-sensitive."""
    assert post(sample_host, body, kind, path).status_code == status


def test_the_webhook_needs_the_extension_key(keyed_host: SampleHost) -> None:
    """If keys are required, the webhook accepts the key eventgrid_extension and the master key, but not the
    function key."""
    keys = ("", "f-key", "e-key", "m-key")
    answers = [post(keyed_host, [event(1)], path=f"{HOOK}&code={key}").status_code for key in keys]
    assert answers == [401, 403, 202, 202]


def run(host: SampleHost, name: str, body: object) -> requests.Response:
    return host.call(f"/admin/functions/{name}", "POST", json=body)


def test_admin_runs_any_function_but_an_http_one(sample_host: SampleHost) -> None:
    """The admin endpoint runs a queue, an event and a timer function."""
    ticks = len(sample_host.records("tick"))
    assert run(sample_host, "work", {"input": '{"seconds": 0, "by": "hand"}'}).status_code == 202
    sample_host.wait_for_records("work", text='"by": "hand"')
    assert run(sample_host, "on_event", {"input": json.dumps(event(31))}).status_code == 202
    wait_for(lambda: "event-31" in [entry["id"] for entry in sample_host.records("event")], 60, "the event")
    assert run(sample_host, "tick", {}).status_code == 202
    assert sample_host.wait_for_records("tick", ticks + 1)[-1]["past_due"] is False
    assert run(sample_host, "echo", {"input": ""}).status_code == 400


def test_admin_answers_at_once_whatever_comes_of_it(sample_host: SampleHost) -> None:
    """A function that fails is also a 202, even with `?wait=true`. A missing function is a 404."""
    for path in ("work", "work?wait=true"):
        assert run(sample_host, path, {"input": "garbage"}).status_code == 202
    assert run(sample_host, "nobody", {}).status_code == 404
    assert sample_host.call("/admin/functions/work", "POST").status_code == 400


@pytest.mark.parametrize("given", [{"seconds": 0}, [1], 5])
def test_admin_takes_a_text(sample_host: SampleHost, given: object) -> None:
    """`input` must be a string: an object, list or number is a 400. A body without a content type is a 415."""
    assert run(sample_host, "work", {"input": given}).status_code == 400
    assert sample_host.call("/admin/functions/work", "POST", data=b'{"input": "{}"}').status_code == 415
