"""Allowed endpoints, the content of rows, errors, and cleaning up."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, tzinfo
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pytest
from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError
from hypothesis import given, settings
from hypothesis import strategies as st

from emulators.testing import azurite
from tests.elastic.proxy import Proxy
from trainers.elastic import client, connection
from trainers.elastic.client import LIFETIME, Table, connect
from trainers.elastic.errors import Conflict, Denied, Missing, TableError, TooBig, Unreachable, translated
from trainers.elastic.values import ENTITY_BYTES, KEY_CHARS, MAX_VALUE, WRITERS_BYTES, key_text, pack, size, unpack

SECRET = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="


def soon() -> float:
    return time.monotonic() + 30


@pytest.fixture
def own(account: azurite.Azurite, run: str) -> Iterator[Table]:
    """A table that no other test uses, and that does not exist yet."""
    with closing(connect(account.table_url, {}, f"own{run.replace('-', '')}")) as made:
        yield made


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://account.table.core.windows.net",
        "https://account.table.core.windows.net/",
        "https://account.z12.table.storage.azure.net",
        "https://account.table.core.usgovcloudapi.net",
        "https://account.table.core.chinacloudapi.cn",
        "http://127.0.0.1:10002/devstoreaccount1",
        "http://localhost:10002/devstoreaccount1/",
        "http://[::1]:10002/devstoreaccount1",
    ],
)
def test_endpoints(endpoint: str) -> None:
    """Accounts of all of Azure's clouds and emulators on this machine are accepted. Connecting sends nothing."""
    with closing(connect(endpoint, {})) as table:
        assert table.url == endpoint.rstrip("/")
        assert table.requests == 0


@pytest.mark.parametrize(
    "endpoint",
    [
        "account",
        "ftp://account.table.core.windows.net",
        "http://account.table.core.windows.net",
        "https://account.table.core.windows.net.evil.example",
        "https://evil.example/account.table.core.windows.net",
        "https://user:secret@account.table.core.windows.net",
        "https://account.table.core.windows.net/?sig=secret",
        "http://10.0.0.1:10002/devstoreaccount1",
        "http://127.0.0.1:10002",
        "127.0.0.1:29400",
    ],
)
def test_other_endpoints(endpoint: str) -> None:
    """Other endpoints are refused. The error names the expected form and no secret, and an identity's token never
    goes to a stranger."""
    with pytest.raises(ValueError, match=r"expected https://ACCOUNT\.table") as caught:
        connect(endpoint, {})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("endpoint", ["", "connection-string"])
def test_connection_string(endpoint: str, account: azurite.Azurite) -> None:
    """Without an endpoint, the connection string in the environment counts."""
    with closing(connect(endpoint, {"AZURE_STORAGE_CONNECTION_STRING": account.connection_string})) as table:
        assert table.rows("r", "x").get("k", soon()) is None
        assert table.url == account.table_url


@pytest.mark.parametrize("text", ["", "nonsense", f"AccountKey={SECRET}", f"AccountName=a;AccountKey{SECRET};x=y"])
def test_bad_connection_strings(text: str) -> None:
    """A missing or broken connection string is named, but its value is not shown."""
    with pytest.raises(ValueError, match="AZURE_STORAGE_CONNECTION_STRING") as caught:
        connect("", {"AZURE_STORAGE_CONNECTION_STRING": text})
    assert SECRET not in repr(caught.value)
    assert caught.value.__suppress_context__ or not text


@pytest.mark.parametrize("name", ["", "ab", "1abc", "a-b", "a" * 64, "täble"])
def test_table_names(name: str) -> None:
    """A name that Azure would refuse is refused at once."""
    with pytest.raises(ValueError, match="3 to 63 letters and digits"):
        connect("https://account.table.core.windows.net", {}, name)


def test_no_secret_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    """No repr, log, error or cause of an error shows a key or the signature of a SAS."""
    caplog.set_level(logging.DEBUG)
    sas = "TableEndpoint=http://127.0.0.1:9/devstoreaccount1;SharedAccessSignature=sv=2019&sig=" + SECRET
    with closing(connect("", {"AZURE_STORAGE_CONNECTION_STRING": sas})) as table:
        with pytest.raises(Unreachable) as caught:
            table.rows("r", "x").get("k", time.monotonic() + 0.1)
        shown: list[str] = [repr(table), table.url]
        error: BaseException | None = caught.value
        while error:
            shown.append(f"{error!r} {error}")
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        ours = [record.getMessage() for record in caplog.records if not record.name.startswith("urllib3")]
    assert SECRET.rstrip("=") not in unquote(" ".join([*shown, *ours]))


def test_denied_is_not_tried_again(account: azurite.Azurite) -> None:
    """A wrong key raises an error at once. The error names the role that an identity needs, or when a signature
    expires."""
    wrong = account.connection_string.replace(azurite.KEY, "d3Jvbmc=")
    with closing(connect("", {"AZURE_STORAGE_CONNECTION_STRING": wrong})) as table:
        with pytest.raises(Denied, match=r"403 .*Storage Table Data Contributor"):
            table.rows("r", "x").get("k", soon())
        assert table.requests == 1
    expired = {"AZURE_STORAGE_SAS_TOKEN": "sv=2019-02-02&ss=t&srt=sco&sp=rl&se=2026-01-02T03%3A04%3A05Z&sig=d3Jvbmc%3D"}
    needed = r"403 .*the signature holds until 2026-01-02T03:04:05Z; start again with a new one"
    with closing(connect(account.table_url, expired)) as table, pytest.raises(Denied, match=needed):
        table.rows("r", "x").get("k", soon())


def test_a_stranger_answers(run: str) -> None:
    """A 404 from a server that is no table service is an error, not a missing row."""
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        with closing(connect(f"http://127.0.0.1:{server.server_port}/devstoreaccount1", {})) as table:
            with pytest.raises(TableError, match="404 File not found") as caught:
                table.rows(run, "x").get("k", soon())
            assert not isinstance(caught.value, Missing)
        server.shutdown()


def test_the_errors_are_one_tree() -> None:
    """TableError is the base class of all errors."""
    assert all(issubclass(kind, TableError) for kind in (Conflict, Missing, TooBig, Denied, Unreachable))
    assert not issubclass(TableError, ServiceRequestError)


@settings(max_examples=40)
@given(st.lists(st.one_of(st.binary(max_size=40), st.binary(min_size=500, max_size=600)), unique=True, max_size=20))
def test_key_names(keys: list[bytes]) -> None:
    """Different keys have different names of bounded length, with characters that Azure accepts."""
    names = [key_text(key) for key in keys]
    assert len(set(names)) == len(keys)
    assert all(len(name) <= KEY_CHARS and not set(name) & set("/\\#?'%") and name.isascii() for name in names)
    assert all(name.isprintable() and " " not in name for name in names)


@pytest.mark.parametrize(("one", "other"), [("a-b_1", "AB1"), ("ab", "a~b"), ("~2f", "/"), ("k" * 513, "k" * 514)])
def test_run_ids_part(one: str, other: str, table: Table) -> None:
    """Two run ids never share a row."""
    table.rows(one, "x").put("k", b"one", soon())
    assert table.rows(other, "x").get("k", soon()) is None
    assert table.clear(one, soon()) == 1


@settings(max_examples=40)
@given(st.integers(0, MAX_VALUE))
def test_pieces(length: int) -> None:
    """A value is cut into pieces of a size that Azure accepts, and comes back whole."""
    value = bytes(length)
    pieces = pack(value)
    assert all(len(piece) <= 2**16 for piece in pieces.values())
    assert unpack(pieces) == value


def test_the_largest_row_fits() -> None:
    """The largest value with the longest keys and the longest list of writers fits into 1 MiB, by Azure's formula."""
    row: dict[str, object] = {"PartitionKey": "p" * 512, "RowKey": "r" * 512, "expires": datetime.now(UTC)}
    row |= {"key": bytes(1024), "writers": bytes(WRITERS_BYTES), **pack(bytes(MAX_VALUE))}
    assert ENTITY_BYTES - 1024 < size(row) <= ENTITY_BYTES
    assert len(row) <= 252


def test_the_border(table: Table, run: str) -> None:
    """A value of MAX_VALUE bytes is accepted, under the longest key too, by insert and replace. One more byte is
    refused."""
    rows = table.rows(run, "x")
    version = rows.insert("k" * 2000, bytes(MAX_VALUE), soon())
    with pytest.raises(TooBig, match=r"1,036,289 bytes; a row takes 1,036,288"):
        rows.insert("other", bytes(MAX_VALUE + 1), soon())
    row = rows.get("k" * 2000, soon())
    assert row is not None
    assert row.value == bytes(MAX_VALUE)
    if os.environ.get("ELASTIC_TABLES") != "azurite":  # which takes less when it replaces
        version = rows.replace("k" * 2000, b"x" * MAX_VALUE, version, soon())
    else:
        with pytest.raises(TooBig, match=r"has 1,036,288 bytes, and the service takes less: 400 EntityTooLarge"):
            rows.replace("k" * 2000, bytes(MAX_VALUE), version, soon())
    rows.replace("k" * 2000, bytes(750 * 1024), version, soon())


def test_insert_and_replace(table: Table, run: str) -> None:
    """insert creates only missing rows, and replace changes only the given version."""
    rows = table.rows(run, "x")
    first = rows.insert("k", b"1", soon())
    with pytest.raises(Conflict):
        rows.insert("k", b"2", soon())
    second = rows.replace("k", b"2", first, soon())
    with pytest.raises(Conflict):
        rows.replace("k", b"3", first, soon())
    row = rows.get("k", soon())
    assert row == (b"2", second)
    assert rows.delete("k", soon())
    assert not rows.delete("k", soon())
    with pytest.raises(Missing):
        rows.replace("k", b"3", second, soon())


def test_a_table_is_made_when_needed(own: Table, run: str) -> None:
    """The first call creates a missing table, also after somebody deleted it."""
    assert own.rows(run, "x").get("k", soon()) is None
    own.client.delete_table()
    assert own.rows(run, "x").count(soon()) == 0
    own.client.delete_table()
    own.rows(run, "x").insert("k", b"1", soon())
    assert own.clear(run, soon()) == 1


def test_clear(own: Table) -> None:
    """clear deletes all rows of a run, of every kind, 100 in a request, and no row of another run."""
    for number in range(102):
        own.rows("one", "x" if number % 2 else "y").put(f"k{number}", b"1", soon())
    own.rows("two", "x").put("k1", b"1", soon())
    before = own.requests
    assert own.clear("one", soon()) == 102
    assert own.requests - before <= 4
    assert own.clear("one", soon()) == 0
    assert own.rows("two", "x").count(soon()) == 1


def test_more_rows_than_an_answer_brings(own: Table) -> None:
    """Rows that fill more than one page are counted, found and deleted completely."""
    rows, many = own.rows("run", "x"), 1010
    for at in range(0, many, 100):
        batch = [("create", rows._row(f"k{number:04}", b"1", b"")) for number in range(at, min(at + 100, many))]
        own.call(lambda _batch=batch, **options: own.client.submit_transaction(_batch, **options), soon())
    assert rows.count(soon()) == many
    assert len(rows.many([f"k{number:04}" for number in range(many)], soon(), values=False)) == many
    assert own.clear("run", soon()) == many


def test_remove_expired(own: Table) -> None:
    """A run is removed when all its rows have expired. One fresh row keeps the others."""
    later = datetime.now(UTC) + LIFETIME / 2
    for run in ("old", "half", "new"):
        own.rows(run, "x").put("a", b"1", soon())
    own.lifetime = 2 * LIFETIME
    own.rows("half", "y").put("b", b"1", soon())
    own.rows("new", "x").put("a", b"1", soon())
    assert own.remove_expired(soon(), now=later) == 0
    assert own.remove_expired(soon(), now=later + LIFETIME) == 1
    assert [own.rows(run, "x").count(soon()) for run in ("old", "half", "new")] == [0, 1, 1]
    assert own.remove_expired(soon()) == 0


def test_no_clock_of_a_node_deletes_what_lives(own: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node whose clock is 8 days ahead or behind deletes no live run, and its own run is not deleted."""
    for days in (8, -8):
        own.rows("lives", "x").put("a", b"1", soon())
        with monkeypatch.context() as patch:

            class Wrong(datetime):
                @classmethod
                def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
                    return datetime.now(tz) + timedelta(days=days)  # noqa: B023 - used in this turn only

            patch.setattr(client, "datetime", Wrong)
            with closing(connect(own.url, {}, own.client.table_name)) as wrong:
                wrong.rows("mine", "x").put("a", b"1", soon())
                assert wrong.remove_expired(soon()) == 0
        assert own.remove_expired(soon()) == 0
        assert own.rows("mine", "x").get("a", soon())


def test_a_fork_has_connections_of_its_own(own: Table) -> None:
    """Parent and child of a fork read at the same time, and each gets its own answers."""
    rows = own.rows("run", "x")
    for name in ("parent", "child"):
        rows.put(name, name.encode() * 1000, soon())
    if not (child := os.fork()):
        good = all((row := rows.get("child", soon())) and row.value == b"child" * 1000 for _ in range(200))
        os._exit(0 if good else 1)
    for _ in range(200):
        row = rows.get("parent", soon())
        assert row
        assert row.value == b"parent" * 1000
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("name", ["AZURE_CLIENT_ID", "DEFAULT_IDENTITY_CLIENT_ID"])
def test_the_identity_of_a_node(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node of Azure ML uses the client id that the platform sets, or the one that its owner set."""
    asked: list[str] = []

    class Endpoint(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(403)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for key, value in (("MSI_ENDPOINT", f"http://127.0.0.1:{server.server_port}/token"), ("MSI_SECRET", "x")):
            monkeypatch.setenv(key, value)  # as on a node of Azure ML
        credential = connection._identity("account.table.core.windows.net", {name: "an-id"})
        with pytest.raises(ClientAuthenticationError):
            credential.get_token("https://storage.azure.com/.default")
        server.shutdown()
    assert asked
    assert all("clientid=an-id" in path for path in asked)


def test_a_missing_identity_is_said() -> None:
    """Where no identity is found, the error says so and how to fix it, without `None`."""
    error = translated(ClientAuthenticationError("DefaultAzureCredential failed to retrieve a token\nEnvironment: ..."))
    assert isinstance(error, Denied)
    assert str(error).startswith("no identity for the table: DefaultAzureCredential failed")
    assert "None" not in str(error)


def test_clear_survives_a_bad_network(shaky: Table, proxy: Proxy, run: str) -> None:
    """clear and remove_expired continue after lost answers and refusals."""
    for number in range(3):
        shaky.rows(run, "x").put(f"k{number}", b"1", soon())
    proxy.faults.extend(["busy", "cut after", "cut before", "cut after", "throttled"])
    shaky.clear(run, soon())
    assert shaky.rows(run, "x").count(soon()) == 0
    proxy.faults.extend(["cut after", "busy", "cut before"])
    shaky.remove_expired(soon(), datetime.now(UTC) - timedelta(days=1))


def test_a_deadline_that_has_passed_still_asks_once(table: Table, run: str) -> None:
    """A call whose deadline has passed makes one attempt, so that an existing row is found."""
    table.rows(run, "x").put("k", b"1", soon())
    row = table.rows(run, "x").get("k", time.monotonic() - 1)
    assert row is not None
    assert row.value == b"1"
