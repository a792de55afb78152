"""Client of Trainyard's HTTP API. Only this module translates the errors of other libraries."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

import httpx

from ..errors import CliError, NotFound, Unreachable
from ..setup.user_name import local_name
from .api_outage import OutageListener

T = TypeVar("T")
Authenticate = Callable[[httpx.Request], httpx.Request]

TIMEOUT_SECONDS = 30.0  # beyond the time that a long poll may take
WORK_SECONDS = 120.0  # for requests that do more than read: an earlier time-out would leave their result unknown
CONNECTIONS = 32
BUSY = (429, 502, 503, 504)
LARGEST_BODY = 512 * 1024  # bytes, as the API's limit
BUSY_SECONDS = 10.0  # retries of a busy API, for requests that can be repeated safely
TOLD = (409, 422)  # the API's message gives the reason and the remedy
START_ONE = "Start the local cloud with `python3 trainyard.py up`, or name a deployment: --url, or `login URL` once."
OPTIONS = {  # options of the command line, by the field of a request that they set
    "data": "--data", "done_by": "--done-by", "keep_warm_seconds": "--keep-warm", "nodes": "--nodes",
    "seconds": "--for", "takes_seconds": "--takes", "timeout_seconds": "--timeout", "within_seconds": "--within",
    "why": "--why",
}  # fmt: skip
_FIELD = re.compile(rf"^({'|'.join(OPTIONS)})\b(?= is )")
_SECONDS = re.compile(r"^(\w*seconds) is ([\d.]+); use a number of (at (?:least|most)) (\d(?:[\d.e+]*\d)?)")
KEY_WANTED = "It needs a key or a token: `login {}` stores one."
KEY_REFUSED = "It rejected the key or token of this login, which may have expired: `login {}` stores a new one."
MAYBE_DONE = "The request may have been carried out. Check before you repeat it."


@dataclass(frozen=True)
class LogChunk:
    """A part of one rank's log. `complete`: the log ends with this chunk. `ranks`: the ranks known to have logs."""

    data: bytes
    next_offset: int
    complete: bool
    ranks: tuple[int, ...]


class Api:
    """Client of one deployment. Every call raises NotFound, Unreachable, or CliError with the API's own message."""

    def __init__(self, url: str, authenticate: Authenticate | None = None) -> None:
        if not url.startswith(("http://", "https://")):
            raise CliError(f"{url!r} is not the address of an API: an address begins with http:// or https://.")
        self.url = url.rstrip("/")
        limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
        headers = {"x-trainyard-caller": quote(name)} if (name := local_name()) else {}
        self._http = httpx.Client(auth=authenticate, timeout=TIMEOUT_SECONDS, limits=limits, headers=headers)
        self._storage = httpx.Client(timeout=TIMEOUT_SECONDS, limits=limits)  # the storage must never see the API's key

    def __enter__(self) -> Api:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()
        self._storage.close()

    def get(self, *path: str, **query: object) -> Any:
        """Return the JSON at this path. Parts of the path may hold any text; empty query parameters are left out."""
        return _json(self.send("GET", *path, query=query))

    def post(
        self,
        *path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        repeats: bool = False,
        **query: object,
    ) -> dict[str, Any]:
        """Send a POST request. `repeats`: sending the request twice has the same effect as once, as with an
        Idempotency-Key.
        """
        sent = self.send("POST", *path, query=query, body=body, headers=headers, repeats=repeats)
        answer: dict[str, Any] = _json(sent)
        return answer

    def delete(self, *path: str, **query: object) -> dict[str, Any]:
        answer: dict[str, Any] = _json(self.send("DELETE", *path, query=query))
        return answer

    def health(self) -> dict[str, Any]:
        """Return the health report. Status 503 is also a report here, with the failing checks."""
        answer: dict[str, Any] = _json(self.send("GET", "health", accept=(503,)))
        return answer

    def log(self, run: str, rank: int, offset: int, wait: float = 0.0) -> LogChunk:
        """Return the log from this byte offset on. Waits up to `wait` seconds for new bytes."""
        query = {"rank": rank, "offset": offset, "wait": round(wait) or None}
        answer = self.send("GET", "runs", run, "logs", query=query, timeout=TIMEOUT_SECONDS + wait)
        headers = answer.headers
        return LogChunk(
            answer.content,
            int(headers.get("x-next-offset", offset + len(answer.content))),
            headers.get("x-log-complete", "").lower() == "true",
            tuple(int(rank) for rank in headers.get("x-ranks", "").split(",") if rank.strip().isdigit()),
        )

    @contextmanager
    def artifact(self, run: str, name: str, offset: int = 0) -> Iterator[httpx.Response]:
        """Yield the open download of one file of a run's archive from this byte offset on: status 206, or 200 with
        the whole file. Raises CliError for a redirect to any other file.
        """
        with self.redirected(("runs", run, "artifacts"), run, name, offset) as stream:
            yield stream

    @contextmanager
    def redirected(self, where: tuple[str, ...], run: str, name: str, offset: int) -> Iterator[httpx.Response]:
        """Yield the open download of a file that the path `where` of the API redirects to: a file of the archive,
        or of the proof beside the archive. Offsets, statuses and errors are those of `artifact`.
        """
        answer = self.send("GET", *where, *name.split("/"), accept=(302,))
        target = answer.headers.get("location", "")
        path = unquote(urlsplit(target).path)
        if not re.search(rf"/{re.escape(run)}/(proof/\w+/)?{re.escape(name)}$", path):
            raise CliError(f"{name} of {run}: the API linked to another file ({urlsplit(target).path}).")
        try:
            rest = {"range": f"bytes={offset}-"} if offset else {}
            with self._storage.stream("GET", target, headers=rest) as stream:
                if stream.status_code == 404:
                    raise NotFound(f"{name} of {run} no longer exists: it was deleted after the archive was listed.")
                if stream.status_code not in (200, 206):
                    raise CliError(f"{name} of {run}: the storage answered {stream.status_code}.")
                yield stream
        except httpx.HTTPError as exc:
            raise Unreachable(f"{name} of {run}: the storage does not answer ({exc}).") from exc

    def send(
        self,
        method: str,
        *path: str,
        query: Mapping[str, object] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        accept: tuple[int, ...] = (),
        timeout: float = 0.0,
        repeats: bool = False,
    ) -> httpx.Response:
        """Send one request. A status of 300 or more raises unless `accept` has the status. Repeatable requests, such
        as dry runs, are retried for ten seconds while the API is busy.
        """
        address = "/".join([self.url, *(quote(part, safe="") for part in path)])
        filled_query = {name: _text(value) for name, value in (query or {}).items() if not _is_empty(value)}
        headers = dict(headers or {})
        read = timeout or (TIMEOUT_SECONDS if method == "GET" else WORK_SECONDS)
        request = self._http.build_request(
            method,
            address,
            params=filled_query,
            json=body,
            headers=headers,
            timeout=httpx.Timeout(TIMEOUT_SECONDS, read=read),
        )
        _check_size(request)
        repeats = repeats or method == "GET" or "Idempotency-Key" in headers or "dry_run" in filled_query
        deadline = 0.0
        while True:
            answer = self._answer(request)
            if answer.is_success or answer.status_code in accept:
                return answer
            deadline, pause = deadline or time.monotonic() + BUSY_SECONDS, _pause(answer)
            if not repeats or not _may_pass(answer) or time.monotonic() + pause > deadline:
                raise _refusal(answer, MAYBE_DONE if method != "GET" and answer.status_code >= 500 else "")
            time.sleep(pause)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        try:
            return self._http.send(request)
        except httpx.ReadTimeout as exc:  # the API is running, but busy
            seconds = request.extensions["timeout"]["read"]
            advice = "It is busy, or the network is down." if request.method == "GET" else MAYBE_DONE
            raise Unreachable(f"{self.url} gave no answer in {seconds:g} s. {advice}") from exc
        except httpx.HTTPError as exc:
            raise Unreachable(f"{self.url} does not answer ({exc or type(exc).__name__}). {START_ONE}") from exc


def retry_unreachable(call: Callable[[], T], patience: float, outage: OutageListener) -> T:
    """Call `call` until it reaches the API, for up to `patience` seconds, and report failures and recovery to
    `outage`. Raises the last Unreachable.
    """
    deadline, pause = time.monotonic() + patience, 0.25
    while True:
        try:
            answer = call()
        except Unreachable as exc:
            if time.monotonic() + pause > deadline:
                raise
            outage.failed(exc)
        else:
            outage.recovered()
            return answer
        time.sleep(pause)
        pause = min(2 * pause, 5.0)


def _check_size(request: httpx.Request) -> None:
    """Raise CliError for a body that is larger than the API accepts, before the body is sent."""
    if (size := int(request.headers.get("content-length", 0))) > LARGEST_BODY:
        raise CliError(
            f"The request has {size:,} bytes, and the API takes {LARGEST_BODY:,}. Shorten the job file, or upload its "
            "contents and name the uploaded path.",
            "too_large",
        )


def _may_pass(answer: httpx.Response) -> bool:
    """Return whether a retry may succeed: the API is busy, or the app's process ended during the request, for which
    the Functions host answers 500 with an empty body.
    """
    return answer.status_code in BUSY or (answer.status_code == 500 and not answer.content)


def _pause(answer: httpx.Response) -> float:
    """Return the seconds to wait before the retry: Retry-After, or 1."""
    after = answer.headers.get("retry-after", "")
    return float(after) if after.isdigit() else 1.0


def _is_empty(value: object) -> bool:
    """Return whether a query parameter with this value can be left out. 0 can't be left out."""
    return value is None or value is False or value == ""


def _text(value: object) -> str:
    return "true" if value is True else str(value)


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError as exc:
        raise CliError(
            f"{answer.request.url} did not answer with JSON. Is it Trainyard's API? The address of the API ends in "
            "/api."
        ) from exc


def _refusal(answer: httpx.Response, warning: str = "") -> CliError:
    """Return the error for this status, with the API's own message (RFC 9457) if the answer has one, and with
    `warning`.
    """
    status, (words, code) = answer.status_code, _words(answer)
    said = words
    words = _FIELD.sub(lambda found: OPTIONS[found[0]], _SECONDS.sub(_durations, said))
    ours = words != said  # the message names our options, so the status adds nothing
    if status == 401 or (status == 403 and not words):
        sent = {"authorization", "x-functions-key"} & set(answer.request.headers)
        advice = (KEY_REFUSED if sent else KEY_WANTED).format(_base(answer.request.url))
        words = f"{words.rstrip('.')}. {advice}" if words else advice
    message = (
        words if words and (status in TOLD or ours) else f"The API answered {status}: {words or answer.reason_phrase}"
    )
    if status == 404:
        url = answer.request.url
        hint = (
            ""
            if "/api" in url.path
            else f" The address of an API ends in /api, such as {url.scheme}://{_host(url)}/api."
        )
        return NotFound((words or f"There is nothing at {answer.request.url.path}.") + hint, code)
    message = f"{message.rstrip('.')}. {warning}" if warning else message
    return Unreachable(message, code) if status in BUSY else CliError(message, code)


def _durations(found: re.Match[str]) -> str:
    """Return the API's rule about a field of seconds, with the option and with durations as options take them."""
    option = OPTIONS.get(found[1], found[1])
    return f"{option} is {duration(float(found[2]))}; use {found[3]} {duration(float(found[4]))}"


def duration(seconds: float) -> str:
    """Return the seconds as --timeout and --for take them: `90s`, `15m`, `2h`, `31d`."""
    unit, length = next(
        ((u, n) for u, n in (("d", 86400), ("h", 3600), ("m", 60)) if seconds and seconds % n == 0), ("s", 1)
    )
    return f"{seconds / length:g}{unit}"


def _base(url: httpx.URL) -> str:
    """Return the base address of the API behind a request."""
    return f"{url.scheme}://{_host(url)}{url.path.partition('/api')[0]}/api"


def _host(url: httpx.URL) -> str:
    return url.netloc.decode("ascii")


def _words(answer: httpx.Response) -> tuple[str, str]:
    try:
        problem = answer.json()
    except ValueError:
        return answer.text[:500], ""
    if not isinstance(problem, dict):
        return answer.text[:500], ""
    return str(problem.get("detail") or problem.get("title") or ""), str(problem.get("code") or "")
