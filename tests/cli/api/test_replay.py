"""admin replay calls the API until every message that was there is back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cli.api.replay import Moved, replay

Answer = dict[str, Any]


class Aside:
    """An API that returns two messages per call; each returned message fails again at once."""

    def __init__(self, poison: dict[str, int]) -> None:
        self.poison, self.given = poison, dict.fromkeys(poison, 0)

    def get(self, *path: str) -> Answer:
        assert path == ("status",)
        return {"queues": {queue: {} for queue in self.poison}}

    def post(self, *path: str, dry_run: bool) -> Answer:
        _, queue, _ = path
        now = self.poison[queue] if dry_run else min(2, self.poison[queue])
        self.given[queue] += 0 if dry_run else now
        return {"queue": queue, "messages": now, "dead_letters": 0, "left": ["x.json"]}


@pytest.fixture
def aside() -> Any:
    return Aside({"drop-events": 5, "job-events": 0})


def test_it_goes_on_until_as_many_are_back_as_there_were(aside: Any) -> None:
    """Even if messages fail again meanwhile, the replay ends. Each remaining dead letter is named once."""
    done = replay(aside)
    assert done.queues == {"drop-events": Moved(6), "job-events": Moved()}
    assert (aside.given, done.unreadable) == ({"drop-events": 6, "job-events": 0}, ["x.json"])


def test_one_queue_alone_and_a_dry_run(aside: Any) -> None:
    """With a chosen queue no other queue is replayed; a dry run counts."""
    assert replay(aside, "job-events").queues == {"job-events": Moved()}
    assert (replay(aside, dry_run=True).queues["drop-events"], aside.given["drop-events"]) == (Moved(5), 0)


def test_the_command(server: Any, run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints what went back, in words and as JSON, and what is left; if there was nothing, it prints
    one sentence."""
    some = {"queue": "drop-events", "messages": 1, "dead_letters": 0, "left": ["x.json"]}
    server.says("/api/queues/drop-events/replay?dry_run=true", some)
    server.says("/api/queues/drop-events/replay", some)
    asked = ("admin", "replay", "--queue", "drop-events", "--url", server.url)
    assert run(*asked) == 0
    said = capsys.readouterr()
    assert "drop-events: 1 poison message and 0 dead letters went back" in said.out
    assert "Left: deadletter/x.json" in said.err
    assert run(*asked, "--json") == 0
    assert json.loads(capsys.readouterr().out)["queues"] == {"drop-events": {"poison": 1, "dead_letters": 0}}
    server.says("/api/queues/drop-events/replay?dry_run=true", some | {"messages": 0})
    assert run(*asked) == 0
    assert "There is nothing to replay." in capsys.readouterr().out


def test_a_queue_that_is_none(server: Any, run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong queue name is refused with the known queues, in the API's words."""
    why = "There is no queue 'drop-event'. Queues: drop-events."
    server.says("/api/queues/drop-event/replay?dry_run=true", {"detail": why}, status=404)
    assert run("admin", "replay", "--queue", "drop-event", "--url", server.url) == 3
    assert why in capsys.readouterr().err
