"""A subscriber to notices on one local cloud: real deliveries, and an address that stays secret."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from emulators.process import wait_for
from local.cloud import Cloud, Options
from tests.e2e.desk import Desk

FAILS = "raise SystemExit('no luck')"


class Hook(BaseHTTPRequestHandler):
    """Refuses the first attempt of each event, and records the events that it then accepts."""

    server: Any

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        event = json.loads(body)["id"]
        refused = event not in self.server.seen
        self.server.seen.add(event)
        if not refused:
            self.server.got.append((dict(self.headers), body))
        self.send_response(503 if refused else 204)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def hook() -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        server.daemon_threads = True
        setattr(server, "seen", set())  # noqa: B010  # the handler finds them there
        setattr(server, "got", [])  # noqa: B010
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("desk")
    with Cloud.start(folder / "cloud", Options(node_start_seconds=0.2)) as cloud:
        yield Desk(cloud, folder)


@pytest.fixture(scope="module")
def made(desk: Desk, hook: Any) -> dict[str, Any]:
    """A subscription to failures, at an endpoint that fails once for each event."""
    address = f"http://127.0.0.1:{hook.server_port}/secret-part"
    told: dict[str, Any] = desk.ask("notify", "add", "--on", "failed", "--to", address)
    return told


@pytest.fixture(scope="module")
def schedule(desk: Desk) -> dict[str, Any]:
    """A schedule of every minute whose runs end at once."""
    words = ("submit", "--job", desk.job("quick.json", "pass"), "--experiment", "hourly")
    told: dict[str, Any] = desk.ask("schedule", "add", "--cron", "* * * * *", "--overlap", "allow", *words)
    return told


def test_a_failed_run_is_told_once_and_signed(
    desk: Desk, hook: Any, made: dict[str, Any], schedule: dict[str, Any]
) -> None:
    """For a failed run the webhook, which refuses at first, gets one signed event with the run and the reason."""
    run = desk.ask("submit", "--job", desk.job("fail.json", FAILS))["run"]
    wait_for(lambda: hook.got, 60, "the notice to arrive", 0.2)
    wait_for(lambda: desk.ask("notify", "log", made["id"])[0]["state"] == "delivered", 60, "the record of it", 0.3)
    ((headers, body),) = hook.got
    event = json.loads(body)

    assert (event["type"], event["data"]["run"]) == ("trainyard.failed", run)
    assert event["data"]["facts"]["why"]
    key = base64.b64decode(made["secret"].removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{digest}"
    assert desk.ask("notify", "log", made["id"])[0]["tries"] == 2


def test_an_address_is_never_shown(desk: Desk, made: dict[str, Any]) -> None:
    """No answer of the API, no command and no log of the app contains a subscription's address or secret."""
    said = [desk.type("notify", *words, "--json").stdout for words in (["list"], ["log", made["id"]])]
    said += [path.read_text("utf-8", "replace") for path in Path(desk.cloud.home, "logs").glob("*.log")]
    assert desk.ask("notify", "list")[0]["to"] == "http://127.0.0.1/..."
    assert not [text for text in said if "secret-part" in text or made["secret"] in text]


def test_what_can_not_be_is_refused(desk: Desk, made: dict[str, Any]) -> None:
    """An unknown kind is refused with the known kinds; a removed subscription is no longer found."""
    assert "completed, failed" in desk.type("notify", "add", "--on", "done", "--to", "a@b.org", expect=1).stderr
    mail = desk.ask("notify", "add", "--on", "idle", "--to", "ada@example.org")
    assert (mail["channel"], mail["to"], mail["secret"]) == ("mail", "a...@example.org", "")
    desk.type("notify", "remove", mail["id"])
    assert "notify list" in desk.type("notify", "test", mail["id"], expect=3).stderr


def test_a_schedule_makes_its_run_at_its_instant(desk: Desk, schedule: dict[str, Any]) -> None:
    """The first whole minute has one run, named in the schedule's log; a dry run and `list` show the next firings."""
    log = wait_for(lambda: desk.ask("schedule", "log", schedule["id"]), 80, "the first instant", 1.0)
    assert datetime.fromisoformat(log[-1]["at"]) == datetime.fromisoformat(schedule["next_at"])
    assert (log[-1]["outcome"], log[-1]["at"][17:19]) == ("started", "00")
    desk.type("schedule", "pause", schedule["id"])
    assert desk.ask("show", log[-1]["run"])["experiment"] == "hourly"
    assert "paused" in desk.type("schedule", "list").stdout
    shown = desk.ask(
        "schedule", "add", "--cron", "0 6 * * 1", "--dry-run", "submit", "mnist", "--data", "drops/mnist/x"
    )
    assert len(shown["next"]) == 5
    assert "no_data" in [reason["code"] for reason in shown["reasons"]]
    desk.type("schedule", "remove", schedule["id"])
    assert desk.ask("schedule", "list") == []


def test_a_schedule_that_can_not_be_is_refused(desk: Desk) -> None:
    """A wrong expression, zone or submission is refused with the correct form."""
    words = ("submit", "mnist", "--data", "drops/mnist/x")
    assert "five fields" in desk.type("schedule", "add", "--cron", "0 6", *words, expect=1).stderr
    assert (
        "Europe/Berlin"
        in desk.type("schedule", "add", "--cron", "0 6 * * 1", "--timezone", "X", *words, expect=1).stderr
    )
    for without in (0, 1):
        wrong_order = ("schedule", "add", *words[without:], "--cron", "0 6 * * 1")
        assert "--cron is before `submit`" in desk.type(*wrong_order, expect=2).stderr
    wrong = ("schedule", "add", "--new-files", "5", "--route", "mnits", *words)
    assert "Did you mean 'mnist'?" in desk.type(*wrong, expect=1).stderr
