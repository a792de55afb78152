"""An API that reports that it is busy."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from cli.api.client import Api
from cli.errors import CliError, Unreachable


@pytest.mark.parametrize("answer", [(503, {"detail": "The workspace did not answer."}), (500, b"")])
def test_a_busy_api_is_asked_again_where_that_does_no_harm(server: Any, answer: tuple[int, Any]) -> None:
    """A read, a dry run, and a request with an Idempotency-Key are retried until the API is free or has a process
    again: if a process ended during a request, the host answers 500 without a body."""
    server.busy_answer = answer
    for path in ("/api/runs/r", "/api/runs", "/api/schedules?dry_run=true"):
        server.says(path, {"run": "r"})
        server.busy[path] = 2
    with Api(server.url) as api:
        assert api.get("runs", "r") == {"run": "r"}
        assert api.post("runs", body={}, headers={"Idempotency-Key": "k"}) == {"run": "r"}
        assert api.post("schedules", body={}, dry_run=True) == {"run": "r"}
    assert len(server.asked) == 9


def test_what_may_have_been_done_is_not_done_twice(server: Any) -> None:
    """A request without a key, which a busy API may have carried out, is sent once, and its error says so."""
    server.says("/api/runs/r/retry", {"run": "r-2"})
    server.busy["/api/runs/r/retry"] = 1
    with (
        Api(server.url) as api,
        pytest.raises(Unreachable, match=r"did not answer\. The request may have been carried out"),
    ):
        api.post("runs", "r", "retry", body={})
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("method", "advice"),
    [("GET", "It is busy, or the network is down"), ("POST", "The request may have been carried out")],
)
def test_a_slow_api_is_not_one_that_is_down(method: str, advice: str) -> None:
    """After a timeout of an API that is up, the error does not advise to start the API."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/api"
        with Api(address) as api, pytest.raises(Unreachable, match=rf"gave no answer in 0.1 s\. {advice}"):
            api.send(method, "runs", timeout=0.1)


def test_a_body_that_the_api_refuses_is_not_sent(server: Any) -> None:
    """Azure's host would answer a much larger body with an empty 500; the error names the size and the limit."""
    server.says("/api/runs", {"run": "r"})
    with Api(server.url) as api, pytest.raises(CliError, match=r"has 600,0\d\d bytes, and the API takes 524,288"):
        api.post("runs", body={"job": "x" * 600_000})
    assert server.asked == []
