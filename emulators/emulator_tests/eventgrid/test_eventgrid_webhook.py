"""Delivery to a webhook: a small real web server that can refuse events."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests
from aiohttp import web

from emulators.process import wait_for


@dataclass
class Receiver:
    """Answers events with each of `statuses` in turn, and then with 200. `agrees` decides about the handshake."""

    agrees: bool = True
    statuses: list[int] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    url: str = ""

    def of_kind(self, kind: str) -> list[Any]:
        return [body for _, headers, body in self.requests if headers.get("aeg-event-type") == kind]

    async def handle(self, request: web.Request) -> web.Response:
        text = await request.text()
        body: Any = json.loads(text) if text else None
        self.requests.append((request.method, dict(request.headers), body))
        if request.method == "OPTIONS":
            allowed = {"WebHook-Allowed-Origin": request.headers["WebHook-Request-Origin"]} if self.agrees else {}
            return web.Response(headers=allowed)
        if request.headers["aeg-event-type"] == "SubscriptionValidation":
            code = body[0]["data"]["validationCode"] if self.agrees else "no"
            return web.json_response({"validationResponse": code})
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    loop, receiver, ready = asyncio.new_event_loop(), Receiver(), threading.Event()

    async def serve() -> web.AppRunner:
        app = web.Application()
        app.router.add_route("*", "/hook", receiver.handle)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook?code=secret"
        ready.set()
        return runner

    def run() -> None:
        runner = loop.run_until_complete(serve())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(10)
    yield receiver
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


@pytest.fixture
def hook(new_grid: Callable[..., Any], receiver: Receiver) -> Callable[..., Any]:
    """A part with one webhook subscription for the receiver."""

    def start(**rest: Any) -> Any:
        destination = {"endpointType": "WebHook", "properties": {"endpointUrl": receiver.url}}
        subscription = {"name": "hook", "topic": "team", "destination": destination, **rest}
        return new_grid([subscription], retry_time_scale=0.001)

    return start


def test_the_handshake_comes_before_the_first_event(hook: Any, receiver: Receiver, custom_event: Any) -> None:
    """The endpoint first gets one SubscriptionValidation event. Once it has returned the code, it gets events."""
    grid = hook()
    grid.publish(custom_event()).raise_for_status()
    grid.barrier()
    kinds = [headers["aeg-event-type"] for _, headers, _ in receiver.requests]
    assert kinds == ["SubscriptionValidation", "Notification"]
    ((validation,), (event,)) = (body for _, _, body in receiver.requests)
    assert validation["eventType"] == "Microsoft.EventGrid.SubscriptionValidationEvent"
    assert (event["id"], event["metadataVersion"]) == ("1", "1")


def test_nothing_is_delivered_to_who_does_not_agree(hook: Any, receiver: Receiver, custom_event: Any) -> None:
    """Without a correct answer to the handshake no event is delivered, and the barrier names the endpoint. A late
    answer is enough."""
    receiver.agrees = False
    grid = hook()
    grid.publish(custom_event()).raise_for_status()
    answer = grid.get("/control/barrier?timeout=0.5")
    assert (answer.status_code, answer.json()["awaiting_handshake"]) == (504, ["hook"])
    assert receiver.of_kind("Notification") == []
    receiver.agrees = True
    grid.barrier()
    assert len(receiver.of_kind("Notification")) == 1


def test_the_validation_url_is_a_handshake_too(hook: Any, receiver: Receiver, custom_event: Any) -> None:
    """Opening the validation URL also completes the handshake. A URL with another id is refused."""
    receiver.agrees = False
    grid = hook()
    (asked, *_) = wait_for(lambda: receiver.of_kind("SubscriptionValidation"), 60, "the handshake")
    url = asked[0]["data"]["validationUrl"]
    assert requests.get(url + "0", verify=grid.bundle, timeout=10).status_code == 400
    assert requests.get(url, verify=grid.bundle, timeout=10).status_code == 200
    grid.publish(custom_event()).raise_for_status()
    grid.barrier()
    assert len(receiver.of_kind("Notification")) == 1


def test_cloud_events_use_the_options_handshake(hook: Any, receiver: Receiver, custom_event: Any) -> None:
    """For CloudEvents the handshake is an OPTIONS request, and each request delivers one structured event."""
    grid = hook(eventDeliverySchema="CloudEventSchemaV1_0")
    grid.publish(custom_event("a"), custom_event("b")).raise_for_status()
    grid.barrier()
    assert [method for method, _, _ in receiver.requests] == ["OPTIONS", "POST", "POST"]
    _, headers, body = receiver.requests[1]
    assert headers["Content-Type"] == "application/cloudevents+json; charset=utf-8"
    assert (body["specversion"], body["type"]) == ("1.0", "Team.RunArchived")


def test_refused_events_are_tried_again_with_a_count(hook: Any, receiver: Receiver, custom_event: Any) -> None:
    """Each attempt has the number of earlier attempts, and a success ends the retries."""
    receiver.statuses = [500, 404, 503]
    grid = hook()
    grid.publish(custom_event()).raise_for_status()
    state = grid.barrier()
    counts = [h["aeg-delivery-count"] for _, h, _ in receiver.requests if h["aeg-event-type"] == "Notification"]
    assert counts == ["0", "1", "2", "3"]
    assert (state["delivered"], state["attempts_failed"]) == (1, 3)


def test_final_answers_end_at_once(hook: Any, receiver: Receiver, custom_event: Any) -> None:
    """A webhook that answers 400, 401, 403 or 413 gets no retry."""
    receiver.statuses = [400, 401, 403, 413]
    grid = hook()
    grid.publish(*[custom_event(str(number)) for number in range(4)]).raise_for_status()
    assert grid.barrier()["dropped"] == 4
    assert len(receiver.of_kind("Notification")) == 4


def test_a_sick_webhook_holds_up_nobody_else(
    new_grid: Any, to_queue: Any, receiver: Receiver, custom_event: Any, store: Any
) -> None:
    """A subscription whose endpoint is down does not delay the events of other subscriptions."""
    queue = store.queue()
    away = {"endpointType": "WebHook", "properties": {"endpointUrl": "http://127.0.0.1:9/nothing"}}
    grid = new_grid([{"name": "away", "topic": "team", "destination": away}, to_queue("team", queue)])
    grid.publish(*[custom_event(str(number)) for number in range(40)]).raise_for_status()
    wait_for(lambda: grid.counts()["delivered"] == 40, 60, "the queue's events")
    assert grid.counts()["pending"] == 40
    assert len(store.messages(queue)) == 40
