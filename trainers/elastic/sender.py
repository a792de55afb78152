"""Sends requests to one table with retries until a deadline; the connections survive a fork.

Every call takes a deadline on time.monotonic(). Until the deadline, the call retries after throttling, server errors
and lost connections; then it raises a TableError (errors.py has the tree).
"""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from azure.core.exceptions import AzureError, HttpResponseError
from azure.data.tables import TableClient

from .errors import Conflict, Passing, TableError, Unreachable, code_of, translated, without_secrets

# Limits of a request's time. The first try gets a second even if less time is left, so that a call with a deadline of
# a millisecond still sends one request.
CONNECT_SECONDS, READ_SECONDS, LEAST_SECONDS = 5.0, 10.0, 1.0
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
LIFETIME = timedelta(days=7)

# The senders of this process; a forked child gives each sender new connections.
_SENDERS: weakref.WeakSet[Sender] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _after_fork())

T = TypeVar("T")


def _after_fork() -> None:
    for sender in list(_SENDERS):
        sender._after_fork()


class Sender:
    """Sends requests to one table. Threads and forked processes may share the sender. `requests` counts the sent
    requests.
    """

    def __init__(self, make: Callable[[], TableClient], lifetime: timedelta = LIFETIME) -> None:
        self._make = make
        self._clients = [make()]
        self.lifetime = lifetime
        self.requests = 0
        self._ahead = timedelta()  # how far the service's clock is ahead of ours, by its last answer
        self._lock = threading.Lock()
        self._local = threading.local()
        _SENDERS.add(self)

    @property
    def client(self) -> TableClient:
        return self._clients[-1]

    def _after_fork(self) -> None:
        """Open new connections in a child process. The parent's connections stay open in the child, kept but unused."""
        self._lock = threading.Lock()
        self._clients.append(self._make())

    def now(self) -> datetime:
        """Return the time by the service's clock, because a node's own clock may be days off. Before the first
        response, return this node's time."""
        return datetime.now(UTC) + self._ahead

    @property
    def url(self) -> str:
        """Return the account's table endpoint, without any secret."""
        return self.client.url.partition("?")[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.client.table_name} at {self.url})"

    def close(self) -> None:
        """Close the connections. A second call does nothing."""
        self.client.close()

    def query(self, wanted: str, columns: list[str] | None, deadline: float) -> Iterator[Any]:
        """Yield the rows within an OData filter, page by page."""
        token = None
        while True:

            def page(_token: Any = token, **options: Any) -> tuple[list[Any], Any]:
                pages = self.client.query_entities(wanted, select=columns, **options).by_page(_token)
                return list(next(pages)), pages.continuation_token  # type: ignore[attr-defined]

            rows, token = self.call(page, deadline)
            yield from rows
            if not token:
                return

    def operation(self) -> bytes:
        """Return a new name for one write, 16 bytes: 8 for this thread of this process, and 8 never used by the thread
        before.
        """
        if getattr(self._local, "pid", None) != os.getpid():
            self._local.pid, self._local.writer, self._local.count = os.getpid(), os.urandom(8), 0
        self._local.count += 1
        return bytes(self._local.writer) + int(self._local.count).to_bytes(8)

    def call(self, request: Callable[..., T], deadline: float) -> T:
        """Send a request until it is answered; `request` is called with the timeouts. Raises TableError.

        Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
        """
        pause, began, tries = FIRST_PAUSE, time.monotonic(), 0
        while True:
            tries += 1
            try:
                return self._once(request, deadline)
            except Passing as error:
                delay = max(error.after, random.uniform(0, pause))  # noqa: S311 (spreads load; no secret)
                if time.monotonic() + delay > deadline:
                    spent = time.monotonic() - began
                    raise Unreachable(f"{self}: {tries} tries in {spent:.1f} s, the last: {error}") from error
            except TableError as error:
                error.retried = tries > 1
                raise
            time.sleep(delay)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _once(self, request: Callable[..., T], deadline: float) -> T:
        left = max(deadline - time.monotonic(), LEAST_SECONDS)
        with self._lock:
            self.requests += 1
        try:
            return request(
                connection_timeout=min(left, CONNECT_SECONDS),
                read_timeout=min(left, READ_SECONDS),
                raw_response_hook=self._note_time,
            )
        except HttpResponseError as error:
            if code_of(error) != "TableNotFound":
                raise translated(error) from error
        except AzureError as error:
            # A message may contain the URL with a SAS signature, so the exception chain ends here.
            raise Passing(f"{type(error).__name__}: {without_secrets(str(error))}") from None
        self._create(deadline)
        raise Passing("the table was not there")

    def _note_time(self, answer: Any) -> None:
        with suppress(KeyError, ValueError, TypeError):
            self._ahead = parsedate_to_datetime(answer.http_response.headers["Date"]) - datetime.now(UTC)

    def _create(self, deadline: float) -> None:
        try:
            self._once(lambda **options: self.client.create_table(**options), deadline)
        except Conflict:
            return  # another node was faster
