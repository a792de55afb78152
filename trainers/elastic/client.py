"""One table of Azure Table Storage: rows of runs, requests that are tried again until a deadline, and honest answers.

    table = connect("https://ACCOUNT.table.core.windows.net", os.environ)
    rows = table.rows("run-1", "store")
    version = rows.insert("key", b"value", time.monotonic() + 30)
    rows.replace("key", b"other", version, time.monotonic() + 30)
    table.clear("run-1", time.monotonic() + 30)

Every call takes a deadline on time.monotonic(). Until then it rides out throttling, server errors and lost
connections; what it then raises is a TableError (errors.py has the tree).

A write whose answer got lost is sent again with the same condition, so it happens at most once. Whether it was the
first or the second that happened shows in the row: it lists the last operation of each of its writers.
"""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any, TypeVar

from azure.core import MatchConditions
from azure.core.exceptions import AzureError, HttpResponseError
from azure.data.tables import TableClient

from .connection import client_of
from .errors import (
    Conflict,
    Denied,
    Missing,
    Passing,
    TableError,
    TooBig,
    Unreachable,
    code_of,
    translated,
    without_secrets,
)
from .rows import STALE, Row, Rows, Version
from .values import key_text

# The errors too, so that whoever uses a table needs this module only.
__all__ = [
    "STALE",
    "Conflict",
    "Denied",
    "Missing",
    "Row",
    "Rows",
    "Table",
    "TableError",
    "TooBig",
    "Unreachable",
    "Version",
    "connect",
]

# A request's share of the time that is left. The first try gets a second even if less is left, so that a call with
# a deadline of a millisecond still asks once.
CONNECT_SECONDS, READ_SECONDS, LEAST_SECONDS = 5.0, 10.0, 1.0
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
LIFETIME = timedelta(days=7)
# What was written within that time by the service's clock belongs to a live run, whatever its writer's clock said.
ALIVE = timedelta(hours=1)
# A transaction takes 100 rows, an answer brings 1,000.
BATCH = 100

# Of this process; a child of a fork gives each connections of its own.
_TABLES: weakref.WeakSet[Table] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _after_fork())

T = TypeVar("T")


def connect(endpoint: str, environ: Mapping[str, str], table: str = "rendezvous") -> Table:
    """Give the table of this name; it is created with the first request that needs it. Sends nothing itself.

    `endpoint`: https://ACCOUNT.table.core.windows.net (other clouds' hosts too) with the identity that
    DefaultAzureCredential finds, and so for https://127.0.0.1:PORT/devstoreaccount1;
    http://127.0.0.1:PORT/devstoreaccount1 for Azurite on this machine, with the signature
    in AZURE_STORAGE_SAS_TOKEN or, without one, the key that Microsoft publishes; or empty or
    `connection-string` for AZURE_STORAGE_CONNECTION_STRING in `environ`. Raises ValueError for anything else.
    """
    return Table(client_of(endpoint, environ, table))


def _after_fork() -> None:
    for table in list(_TABLES):
        table._after_fork()


class Table:
    """A table; `connect` makes it. Threads may share it, and processes that fork. `requests` counts what was sent."""

    def __init__(self, make: Callable[[], TableClient], lifetime: timedelta = LIFETIME) -> None:
        self._make = make
        self._clients = [make()]
        self.lifetime = lifetime
        self.requests = 0
        self._ahead = timedelta()  # of the service's clock before ours, as of its last answer
        self._lock = threading.Lock()
        self._local = threading.local()
        _TABLES.add(self)

    @property
    def client(self) -> TableClient:
        return self._clients[-1]

    def _after_fork(self) -> None:
        """In a child: connections of its own. The parent's stay open there, so they are kept and not used."""
        self._lock = threading.Lock()
        self._clients.append(self._make())

    def now(self) -> datetime:
        """The time by the service's clock: a node's own may be days wrong. Ours, before the first answer."""
        return datetime.now(UTC) + self._ahead

    @property
    def url(self) -> str:
        """The account's table endpoint, without any secret."""
        return self.client.url.partition("?")[0]

    def __repr__(self) -> str:
        return f"Table({self.client.table_name} at {self.url})"

    def close(self) -> None:
        """Close the connections. Twice is once."""
        self.client.close()

    def rows(self, run: str, kind: str) -> Rows:
        """The rows of one kind (a short word) of one run. All rows of a run are in one partition."""
        return Rows(self, key_text(run), kind)

    def clear(self, run: str, deadline: float) -> int:
        """Delete all rows of a run, and say how many: fewer than went, if an answer got lost. None is fine."""
        done = 0
        while True:
            try:
                for count in self._delete(key_text(run), deadline):
                    done += count
                return done
            except (Conflict, Missing) as error:  # somebody writes or deletes the same rows
                if time.monotonic() > deadline:
                    raise Unreachable(f"run {run!r} was still being written at the deadline: {error}") from error
                time.sleep(random.uniform(0, FIRST_PAUSE))  # noqa: S311 (spreads load; no secret)

    def remove_expired(self, deadline: float, now: datetime | None = None) -> int:
        """Delete the runs whose every row has expired, and say how many rows. Reads the whole table.

        A row expires `lifetime` after it was written last, by the service's clock. A run that comes back to life
        meanwhile is left alone.
        """
        next(self.query("PartitionKey eq ''", ["PartitionKey"], deadline), None)  # says what time it is there
        today = now or self.now()
        asked, written = (f"datetime'{t.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}'" for t in (today, today - ALIVE))
        expired = f"expires lt {asked} and Timestamp lt {written}"
        partitions = {row["PartitionKey"] for row in self.query(expired, ["PartitionKey"], deadline)}
        done = 0
        for partition in sorted(partitions):
            kept = f"PartitionKey eq '{partition}' and (expires ge {asked} or Timestamp ge {written})"
            alive = self.query(kept, ["PartitionKey"], deadline)
            if next(alive, None) is None:
                with suppress(Conflict, Missing):
                    for count in self._delete(partition, deadline):
                        done += count
        return done

    def _delete(self, partition: str, deadline: float) -> Iterator[int]:
        rows = self.query(f"PartitionKey eq '{partition}'", ["PartitionKey", "RowKey"], deadline)
        while batch := list(islice(rows, BATCH)):
            operations = [
                ("delete", row, {"etag": row.metadata["etag"], "match_condition": MatchConditions.IfNotModified})
                for row in batch
            ]
            self.call(lambda _ops=operations, **options: self.client.submit_transaction(_ops, **options), deadline)
            yield len(batch)

    def query(self, wanted: str, columns: list[str] | None, deadline: float) -> Iterator[Any]:
        """The rows that an OData filter matches, page by page."""
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
        """A name for one write, 16 bytes: 8 for this thread of this process, 8 that it has not used before."""
        if getattr(self._local, "pid", None) != os.getpid():
            self._local.pid, self._local.writer, self._local.count = os.getpid(), os.urandom(8), 0
        self._local.count += 1
        return bytes(self._local.writer) + int(self._local.count).to_bytes(8)

    def call(self, request: Callable[..., T], deadline: float) -> T:
        """Send a request until it is answered, with the time-outs that `request` is called with. Raises TableError.

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
            # A message may hold the URL, and that the signature of a SAS: so the chain ends here.
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
            return  # another node was quicker
