"""The HTTP trigger of a running host, over HTTP."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest

from emulator_tests.host.conftest import SampleHost, ours_alone
from emulators import process


def test_a_request_reaches_the_function_whole(sample_host: SampleHost) -> None:
    """A function gets method, query, headers, route parameter and body. Empty query values are dropped and repeated
    values joined."""
    answer = sample_host.call(
        "/api/echo/bob?a=1&a=2&empty=&b=%20x", "POST", data=b"abc", headers={"X-One": "1", "x-two": "2"}
    )
    assert answer.status_code == 201
    assert answer.headers["X-Seen"] == "yes"
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json() == {
        "method": "POST",
        "path": "/echo/bob?a=1&a=2&empty=&b=%20x",
        "headers": {"x-one": "1", "x-two": "2"},
        "params": {"a": "1,2", "b": " x"},
        "route_params": {"name": "bob"},
        "body": "abc",
        "function": "echo",
        "retry": [0, 0],
    }


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("things/12", "number 12"),
        ("things/latest", "path latest"),
        ("things/twelve", "path twelve"),
        ("things/a/b%20c", "path a/b c"),
        ("things", "path (none)"),
        ("THINGS/12/", "number 12"),
    ],
)
def test_the_first_route_by_name_wins(sample_host: SampleHost, path: str, text: str) -> None:
    """Of thing_by_number, thing_by_path and thing_latest, the catch-all hides the literal route that sorts later,
    and also matches an empty rest."""
    assert sample_host.call("/api/" + path).text == text


@pytest.mark.parametrize("target", ["/api/missing", "/echo", "DELETE /api/echo/x", "/api/echo/x/y"])
def test_no_route_and_a_wrong_method_are_404(sample_host: SampleHost, target: str) -> None:
    """The method is part of the route, so a wrong method is a 404 and never a 405."""
    method, _, path = target.rpartition(" ")
    assert sample_host.call(path, method or "GET").status_code == 404


@pytest.mark.parametrize("route", ["boom", "nothing", "quits"])
def test_a_failed_function_is_an_empty_500(sample_host: SampleHost, route: str) -> None:
    """After an error, None in place of a response or sys.exit(), the caller gets an empty body and the host keeps
    running."""
    answer = sample_host.call("/api/" + route)
    assert (answer.status_code, answer.content) == (500, b"")
    assert sample_host.call("/api/text").text == "plain text"


def test_text_is_a_response_and_an_object_with_a_body_describes_one(sample_host: SampleHost) -> None:
    """A returned string is text/plain, unless it is a JSON object with a member `body`."""
    plain, described = sample_host.call("/api/text"), sample_host.call("/api/described")
    assert (plain.text, plain.headers["Content-Type"]) == ("plain text", "text/plain; charset=utf-8")
    assert (described.status_code, described.headers["X-Pot"], described.json()) == (418, "tea", {"short": "stout"})


def test_cookies_are_the_one_header_that_repeats(sample_host: SampleHost) -> None:
    """The response has each Set-Cookie header, with its attributes."""
    answer = sample_host.call("/api/cookies")
    assert answer.content == b"\x00\x01"
    assert answer.raw.headers.getlist("Set-Cookie") == [
        "a=1; max-age=60; domain=; path=/; samesite=lax; httponly",
        "b=2; expires=Sat, 21 Nov 2026 01:02:03 GMT; domain=example.org; path=; secure",
    ]


def test_a_chunked_body_without_a_length_arrives_empty(sample_host: SampleHost) -> None:
    """As in Azure, a body is read only if Content-Length announces it."""
    answer = sample_host.call("/api/echo", "POST", data=iter([b"abc"]))
    assert answer.json()["body"] == ""


def test_keys_guard_by_level(keyed_host: SampleHost) -> None:
    """An unknown key is a 401, and a key of too low a level a 403. The function key opens only `function` routes,
    and the master key opens all."""

    def status(path: str, key: str = "") -> int:
        return keyed_host.call(path, headers={"x-functions-key": key} if key else {}).status_code

    assert [status("/api/text"), status("/api/secret"), status("/api/master")] == [200, 401, 401]
    assert [status("/api/secret", key) for key in ("f-key", "m-key", "e-key", "no")] == [200, 200, 403, 401]
    assert [status("/api/master", key) for key in ("f-key", "m-key", "no")] == [403, 200, 401]
    assert [status("/admin/host/status", key) for key in ("f-key", "m-key")] == [403, 200]
    assert status("/api/secret?code=f-key") == 200
    assert status("/api/secret?code=f-key", "wrong") == 401  # the header wins


def test_without_required_keys_every_level_is_open(sample_host: SampleHost) -> None:
    """A developer's host requires no key, as with the Core Tools."""
    assert sample_host.call("/api/secret").text == "opened"
    assert sample_host.call("/api/master").text == "mastered"


def test_a_blocking_async_function_stops_nobody_else(sample_host: SampleHost) -> None:
    """The host keeps answering while a coroutine blocks the app's event loop."""
    url = urlsplit(sample_host.part.info["url"])
    with socket.create_connection((url.hostname, url.port)) as blocked:
        blocked.sendall(b"GET /api/block/2 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        sample_host.wait_for_records("block", 1)
        assert sample_host.call("/admin/host/status").json()["state"] == "Running"
        blocked.setblocking(False)
        with pytest.raises(BlockingIOError):  # the function had not ended when the host answered
            blocked.recv(1)


def test_a_function_past_its_time_fails(sample_host: SampleHost) -> None:
    """functionTimeout ends an invocation with 500, and its worker. Another worker answers the next call."""
    worker = sample_host.call("/api/process").text
    assert sample_host.call("/api/sleep/60").status_code == 500
    assert sample_host.call("/api/process").text != worker


@ours_alone
@pytest.mark.parametrize("kind", ["sleep", "tick"])
def test_the_apps_records_carry_their_invocation(sample_host: SampleHost, kind: str) -> None:
    """Each log record has the id of the invocation that wrote it, in coroutines and in threads."""
    before = len(sample_host.records(kind))
    sample_host.call("/api/sleep/0")
    sample_host.call("/admin/functions/tick", "POST", json={})
    invocation = sample_host.wait_for_records(kind, before + 1)[-1]["invocation"]
    process.wait_for(lambda: f"sample [{invocation}]" in sample_host.log(), 60, "the record in the log")


def test_the_home_page_can_be_switched_off(sample_host: SampleHost, keyed_host: SampleHost) -> None:
    """`/` shows that the app runs. With AzureWebJobsDisableHomepage the answer is empty."""
    assert (sample_host.call("/").status_code, keyed_host.call("/").status_code) == (200, 204)


def test_answers_come_in_chunks(sample_host: SampleHost) -> None:
    """Answers of functions are chunked and have no Content-Length."""
    headers = sample_host.call("/api/text").headers
    assert (headers.get("Transfer-Encoding"), headers.get("Content-Length")) == ("chunked", None)


def test_a_body_above_the_limit_is_an_empty_500(keyed_host: SampleHost) -> None:
    """A body above FUNCTIONS_REQUEST_BODY_SIZE_LIMIT is refused before a function gets the request."""
    answers = [keyed_host.call("/api/echo", "POST", data=b"x" * size) for size in (1000, 1001)]
    assert [(answer.status_code, answer.content == b"") for answer in answers] == [(201, False), (500, True)]


@ours_alone  # Azure's host serves them
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Host": "evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_web_pages_are_kept_out(sample_host: SampleHost, headers: dict[str, str]) -> None:
    """Without keys, a page of another origin, or a foreign host name that points to this machine, gets a 403 and
    runs nothing."""
    assert sample_host.call("/api/text", headers=headers).status_code == 403
    assert sample_host.call("/admin/functions/tick", "POST", json={}, headers=headers).status_code == 403
    assert sample_host.call("/api/text", headers={"Sec-Fetch-Site": "none"}).status_code == 200
