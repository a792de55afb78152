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
import re
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import AzureError, HttpResponseError
from azure.data.tables import TableClient, UpdateMode

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
from .values import KEY_CHARS, MAX_VALUE, SHOWN_KEY_BYTES, WRITERS_BYTES, key_of, key_text, pack, unpack

# The errors too, so that whoever uses a table needs this module only.
__all__ = [
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

AZURE_HOST = re.compile(
    r"[a-z0-9]{3,24}(\.z\d+)?\.table\.(core\.windows\.net|core\.usgovcloudapi\.net|core\.chinacloudapi\.cn|storage\.azure\.net)"
)
LOCAL = ("127.0.0.1", "localhost", "::1")
AUTHORITIES = {"usgovcloudapi.net": "login.microsoftonline.us", "chinacloudapi.cn": "login.chinacloudapi.cn"}
EXPECTED = (
    "expected https://ACCOUNT.table.core.windows.net, http://127.0.0.1:PORT/devstoreaccount1 (Azurite), "
    "or connection-string with AZURE_STORAGE_CONNECTION_STRING set"
)
# Microsoft publishes this key for every Azurite; it protects nothing.
AZURITE = "devstoreaccount1"
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
# The etag of no row: replacing this version is always a Conflict.
STALE = "W/\"datetime'1601-01-01T00%3A00%3A00.0000000Z'\""

# Of this process; a child of a fork gives each connections of its own.
_TABLES: weakref.WeakSet[Table] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _after_fork())

T = TypeVar("T")
K = TypeVar("K", str, bytes)
Key = str | bytes


class Version(NamedTuple):
    """One state of a row: what `replace` wants to find. `writers` tells a write what became of its lost answer."""

    etag: str
    writers: bytes


class Row(NamedTuple):
    value: bytes
    version: Version


def connect(endpoint: str, environ: Mapping[str, str], table: str = "rendezvous") -> Table:
    """Give the table of this name; it is created with the first request that needs it. Sends nothing itself.

    `endpoint`: https://ACCOUNT.table.core.windows.net (other clouds' hosts too) with the identity that
    DefaultAzureCredential finds, and so for https://127.0.0.1:PORT/devstoreaccount1;
    http://127.0.0.1:PORT/devstoreaccount1 for Azurite on this machine, with the signature
    in AZURE_STORAGE_SAS_TOKEN or, without one, the key that Microsoft publishes; or empty or
    `connection-string` for AZURE_STORAGE_CONNECTION_STRING in `environ`. Raises ValueError for anything else.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]{2,62}", table):
        raise ValueError(f"table {table!r}: expected 3 to 63 letters and digits, a letter first")
    if table.lower() == "tables":
        raise ValueError("table 'tables' is the service's own name for the list of all tables; choose another")
    options: dict[str, Any] = {"table_name": table, "retry_total": 0}  # the tries are ours: they end at the deadline
    if endpoint in ("", "connection-string"):
        text = environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
        return Table(lambda: _from_connection_string(text, options))
    url = urlsplit(endpoint)
    host, path = url.hostname or "", url.path.rstrip("/")
    if url.scheme == "https" and AZURE_HOST.fullmatch(url.netloc) and not path and not url.query:
        return Table(lambda: TableClient(f"https://{host}", credential=_identity(host, environ), **options))
    if url.scheme == "https" and host in LOCAL and path == f"/{AZURITE}" and not url.query:
        address = f"https://{url.netloc.rpartition('@')[2]}{path}"
        return Table(lambda: TableClient(address, credential=_identity(host, environ), **options))
    if url.scheme == "http" and host in LOCAL and path == f"/{AZURITE}" and not url.query:
        address = f"http://{url.netloc.rpartition('@')[2]}{path}"
        signature = environ.get("AZURE_STORAGE_SAS_TOKEN")  # the Azure CLI's name for it
        credential: Any = AzureSasCredential(signature) if signature else AzureNamedKeyCredential(AZURITE, AZURITE_KEY)
        return Table(lambda: TableClient(address, credential=credential, **options))
    # Without the query and user part, which may hold a secret.
    raise ValueError(f"endpoint {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}: {EXPECTED}")


def _from_connection_string(text: str, options: dict[str, Any]) -> TableClient:
    if not text:
        raise ValueError(f"AZURE_STORAGE_CONNECTION_STRING is not set, and no endpoint is given: {EXPECTED}")
    try:
        return TableClient.from_connection_string(text, **options)
    except ValueError:
        raise ValueError(
            "AZURE_STORAGE_CONNECTION_STRING cannot be read: expected NAME=VALUE;... with AccountName and AccountKey, "
            "or TableEndpoint and SharedAccessSignature, as the Azure portal shows it"
        ) from None


def _identity(host: str, environ: Mapping[str, str]) -> Any:
    from azure.identity import DefaultAzureCredential

    options = {}
    cloud = ".".join(host.split(".")[-2:])
    if cloud in AUTHORITIES and not environ.get("AZURE_AUTHORITY_HOST"):
        options["authority"] = AUTHORITIES[cloud]
    # A node of Azure ML has its identity's client id in the second; the credential by itself reads the first only
    # (https://github.com/Azure/azure-sdk-for-python/issues/30427).
    if client_id := environ.get("AZURE_CLIENT_ID") or environ.get("DEFAULT_IDENTITY_CLIENT_ID"):
        options["managed_identity_client_id"] = client_id
    return DefaultAzureCredential(**options)


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


class Rows:
    """The rows of one kind of one run; `Table.rows` makes it. Threads may share it."""

    def __init__(self, table: Table, partition: str, kind: str) -> None:
        self.table = table
        self._partition = partition
        self._prefix = f"{kind}."
        self._end = f"{kind}/"  # the first name after all that begin with the prefix

    @property
    def _client(self) -> TableClient:
        return self.table.client

    def get(self, key: Key, deadline: float) -> Row | None:
        """Read a row, or None if it is not there."""
        try:
            found = self.table.call(
                lambda **options: self._client.get_entity(self._partition, self._name(key), **options), deadline
            )
        except Missing:
            return None
        return Row(unpack(found), Version(found.metadata["etag"] or "", found.get("writers", b"")))

    def many(self, keys: Collection[K], deadline: float, values: bool = True) -> dict[K, bytes]:
        """Read those of the keys that are there, in one request for each 1,000 rows from the first to the last of them.

        Names that are asked for together mostly differ in a number at the end, so little else lies between them.
        Without `values` the bytes are left out, and empty.
        """
        names = {self._name(key): key for key in keys}
        if not names:
            return {}
        wanted = f"PartitionKey eq '{self._partition}' and RowKey ge '{min(names)}' and RowKey le '{max(names)}'"
        rows = self.table.query(wanted, None if values else ["RowKey"], deadline)
        return {names[row["RowKey"]]: unpack(row) for row in rows if row["RowKey"] in names}

    def count(self, deadline: float) -> int:
        """Count the rows, in one request for each 1,000."""
        wanted = f"PartitionKey eq '{self._partition}' and RowKey ge '{self._prefix}' and RowKey lt '{self._end}'"
        return sum(1 for _ in self.table.query(wanted, ["RowKey"], deadline))

    def keys(self, deadline: float) -> list[bytes]:
        """Give all keys, in one request for each 1,000; one too long for a row's name is cut to SHOWN_KEY_BYTES."""
        wanted = f"PartitionKey eq '{self._partition}' and RowKey ge '{self._prefix}' and RowKey lt '{self._end}'"
        rows = self.table.query(wanted, ["RowKey", "key"], deadline)
        return [row.get("key") or key_of(row["RowKey"].removeprefix(self._prefix)) for row in rows]

    def insert(self, key: Key, value: bytes, deadline: float) -> Version:
        """Make a row. Raises Conflict if it is there already, TooBig."""
        row = self._row(key, value, self.table.operation())
        with _sized(key, value):
            return self._write(key, row, lambda **options: self._client.create_entity(row, **options), deadline)

    def replace(self, key: Key, value: bytes, version: Version, deadline: float) -> Version:
        """Replace exactly this version of a row. Raises Conflict if it is another, Missing if it is gone, TooBig."""
        row = self._row(key, value, _noted(version.writers, self.table.operation()))
        condition: dict[str, Any] = {"etag": version.etag, "match_condition": MatchConditions.IfNotModified}

        def request(**options: Any) -> Any:
            return self._client.update_entity(row, UpdateMode.REPLACE, **condition, **options)

        with _sized(key, value):
            return self._write(key, row, request, deadline)

    def put(self, key: Key, value: bytes, deadline: float) -> None:
        """Make or replace a row, whatever it is. Raises TooBig.

        A row of over 512 KiB is inserted if it is new: Azurite counts the characters of an update, base64 and all,
        and so takes no more than 768 KiB, but does not count those of an insert. Azure counts neither so.
        """
        row = self._row(key, value, b"")
        with _sized(key, value):
            if len(value) > 2**19:
                with suppress(Conflict):
                    self.table.call(lambda **options: self._client.create_entity(row, **options), deadline)
                    return
            self.table.call(lambda **options: self._client.upsert_entity(row, UpdateMode.REPLACE, **options), deadline)

    def delete(self, key: Key, deadline: float) -> bool:
        """Delete a row; say whether it was there. If an answer got lost on the way, a row that is gone was there."""
        answers: list[int] = []
        tries = []

        def request(raw_response_hook: Callable[[Any], None], **options: Any) -> None:
            def hook(answer: Any) -> None:
                raw_response_hook(answer)
                answers.append(answer.http_response.status_code)

            tries.append(1)
            self._client.delete_entity(self._partition, self._name(key), raw_response_hook=hook, **options)

        self.table.call(request, deadline)
        return answers[-1] != 404 or len(answers) < len(tries)  # the SDK swallows 404

    def _write(self, key: Key, row: Mapping[str, Any], request: Callable[..., Any], deadline: float) -> Version:
        operation: bytes = row["writers"][-16:]
        try:
            return Version(str(self.table.call(request, deadline)["etag"]), row["writers"])
        except (Conflict, Missing) as error:
            if not error.retried:
                raise
            # An earlier try may have worked, and the row is not as we expect it because of ourselves.
            found = self.get(key, deadline)
            if found is None or operation not in _entries(found.version.writers):
                raise
            mine = found.version.writers.endswith(operation)
            return found.version if mine else Version(STALE, found.version.writers)

    def _row(self, key: Key, value: bytes, writers: bytes) -> dict[str, Any]:
        if len(value) > MAX_VALUE:
            raise TooBig(f"the value of {key!r} has {len(value):,} bytes; a row takes {MAX_VALUE:,}")
        name, raw = self._name(key), key.encode() if isinstance(key, str) else key
        shown = {"key": raw[:SHOWN_KEY_BYTES]} if "~~" in name else {}  # for people who read the table
        return {
            "PartitionKey": self._partition,
            "RowKey": name,
            "expires": self.table.now() + self.table.lifetime,
            "writers": writers,
            **shown,
            **pack(value),
        }

    def _name(self, key: Key) -> str:
        return self._prefix + key_text(key, KEY_CHARS - len(self._prefix))


@contextmanager
def _sized(key: Key, value: bytes) -> Iterator[None]:
    try:
        yield
    except TooBig as error:
        raise TooBig(f"the value of {key!r} has {len(value):,} bytes, and the service takes less: {error}") from error


def _entries(writers: bytes) -> list[bytes]:
    return [writers[at : at + 16] for at in range(0, len(writers), 16)]


def _noted(writers: bytes, operation: bytes) -> bytes:
    """The list with this operation at the end, instead of the same writer's last one; the oldest make room for it."""
    others = [entry for entry in _entries(writers) if entry[:8] != operation[:8]]
    return b"".join([*others, operation])[-WRITERS_BYTES:]
