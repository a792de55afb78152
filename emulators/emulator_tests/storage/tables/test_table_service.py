"""The table protocol, as Microsoft's package uses it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import (
    AccountSasPermissions,
    EdmType,
    EntityProperty,
    ResourceTypes,
    TableClient,
    TableServiceClient,
    TableTransactionError,
    UpdateMode,
    generate_account_sas,
)

from emulator_tests.storage.conftest import Side
from emulators.storage.keys import ACCOUNT
from emulators.storage.keys import KEY as ACCOUNT_KEY

KEY = {"PartitionKey": "p", "RowKey": "r"}
VALUES: dict[str, Any] = {
    "text": "it's",
    "whole": -5,
    "big": EntityProperty(2**62 + 1, EdmType.INT64),
    "real": 1.5,
    "yes": True,
    "when": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    "guid": uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833"),
    "bytes": b"\x00\xff",
}


@pytest.fixture
def table(tables: TableServiceClient, unique: Callable[[], str]) -> Iterator[TableClient]:
    client = tables.create_table(unique())
    yield client
    client.delete_table()


def refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[int | None, str]:
    """Return the status and code with which a call is refused."""
    with pytest.raises(HttpResponseError) as caught:
        call(*arguments, **options)
    answer: Any = caught.value.response
    return caught.value.status_code, answer.headers["x-ms-error-code"]


def rows(table: TableClient, wanted: str = "", **options: Any) -> list[str]:
    return [entity["RowKey"] for entity in table.query_entities(wanted, **options)]


@pytest.mark.parametrize("key", ["", "it's", "a b", "ä數", "a%2fb", "100%", "&$=+,;:@!()*", "~", "k" * 512])
def test_any_allowed_key(table: TableClient, key: str) -> None:
    """Entities with quotes, spaces and URL escapes in keys of up to 512 characters can be read, changed and
    deleted."""
    entity = {"PartitionKey": key, "RowKey": key, "x": 1}
    table.create_entity(entity)
    table.update_entity({**entity, "x": 2}, UpdateMode.REPLACE)
    assert table.get_entity(key, key)["x"] == 2
    assert [
        e["x"] for e in table.query_entities("PartitionKey eq @key and RowKey eq @key", parameters={"key": key})
    ] == [2]
    table.delete_entity(key, key)
    assert rows(table) == []


FILTERS = {
    "PartitionKey eq 'p' and RowKey eq 'r'": True,
    "PartitionKey gt 'p'": False,
    "RowKey lt 's' and RowKey gt 'q'": True,
    "'r' le RowKey": True,
    "text eq 'it''s'": True,
    "text gt 'it' and text lt 'iu'": True,
    "text ne 'other'": True,
    "whole eq -5": True,
    "whole gt -5": False,
    "whole ge -5 and whole le -5": True,
    "big eq 4611686018427387905L": True,
    "big lt 4611686018427387905L": False,
    "real gt 1.25": True,
    "real lt 1": False,
    "yes eq true": True,
    "yes eq false": False,
    "not (yes eq true)": False,
    "not (whole eq 1)": True,
    "when ge datetime'2026-01-02T03:04:05.678901Z'": True,
    "when gt datetime'2026-01-02T03:04:05.678901Z'": False,
    "when lt datetime'2026-01-02T03:04:06Z'": True,
    "guid eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'": True,
    "guid ne guid'c9da6455-213d-42c9-9a79-3e9149a57833'": False,
    "bytes eq X'00ff'": True,
    "bytes eq binary'00fe'": False,
    "Timestamp gt datetime'2020-01-01T00:00:00Z'": True,
    "Timestamp lt datetime'2020-01-01T00:00:00Z' or whole eq 1": False,
    "lacking eq 'x'": False,
    "lacking eq 5": False,
    "whole eq 1 or whole eq -5": True,
    "whole eq 1 or whole eq -5 and yes eq false": False,
    "(whole eq 1 or whole eq -5) and yes eq true": True,
    "PartitionKey eq 'q' or (PartitionKey eq 'p' and real eq 1.5)": True,
}


def test_filters(table: TableClient) -> None:
    """Filters compare values of every type. `not` binds before `and`, and `and` before `or`."""
    table.create_entity({**KEY, **VALUES})
    assert {text: rows(table, text) == ["r"] for text in FILTERS} == FILTERS


def test_merging_changes_types(table: TableClient) -> None:
    """Merging a value of another type replaces the property's old type."""
    table.create_entity({**KEY, "a": 1, "b": EntityProperty(2, EdmType.INT64)})
    table.update_entity({**KEY, "b": "text"}, UpdateMode.MERGE)
    assert dict(table.get_entity("p", "r")) == {**KEY, "a": 1, "b": "text"}


@pytest.mark.parametrize(
    "text", ["whole eq", "eq 5", "whole is 5", "whole eq 'x", "(whole eq 5", "whole eq 5)", "1 eq 1"]
)
def test_what_is_no_filter(ours_table: TableClient, text: str) -> None:
    """An invalid filter is a client error, not a server error. (Azurite accepts some of them.)"""
    assert refusal(rows, ours_table, text) == (400, "InvalidInput")


def test_a_transaction_is_all_or_nothing(table: TableClient) -> None:
    """A transaction may contain every kind of write. One refused write undoes all others, and the answer has its
    index."""
    for name in ("replaced", "merged", "deleted"):
        table.create_entity({"PartitionKey": "p", "RowKey": name, "x": 1})
    key = {"PartitionKey": "p"}
    done = table.submit_transaction([
        ("create", {**key, "RowKey": "made", "x": 1}),
        ("update", {**key, "RowKey": "replaced", "y": 2}, {"mode": UpdateMode.REPLACE}),
        ("update", {**key, "RowKey": "merged", "y": 2}, {"mode": UpdateMode.MERGE}),
        ("upsert", {**key, "RowKey": "put", "x": "ü 🚂"}),
        ("delete", {**key, "RowKey": "deleted"}),
    ])  # fmt: skip
    assert [("etag" in one) for one in done] == [True, True, True, True, False]
    found = {e["RowKey"]: {k: v for k, v in e.items() if len(k) == 1} for e in table.list_entities()}
    assert found == {"made": {"x": 1}, "replaced": {"y": 2}, "merged": {"x": 1, "y": 2}, "put": {"x": "ü 🚂"}}
    with pytest.raises(TableTransactionError) as caught:
        table.submit_transaction([("delete", {**key, "RowKey": "made"}), ("create", {**key, "RowKey": "put"})])
    assert (caught.value.index, caught.value.status_code) == (1, 409)
    assert "made" in rows(table)
    with pytest.raises(TableTransactionError) as caught:
        table.submit_transaction([("update", {**key, "RowKey": "no"}), ("upsert", {**key, "RowKey": "never"})])
    assert (caught.value.index, caught.value.status_code) == (0, 404)
    assert "never" not in rows(table)


@pytest.mark.parametrize("character", ["/", "\\", "#", "?", "\t", "\n", "\x7f"])
def test_characters_that_keys_must_not_have(ours_table: TableClient, character: str) -> None:
    """These characters are refused in both keys, as in Azure."""
    for name in KEY:
        with pytest.raises(HttpResponseError) as caught:
            ours_table.create_entity({**KEY, name: f"a{character}b"})
        assert caught.value.status_code == 400


@pytest.fixture
def ours_table(ours: Side, unique: Callable[[], str]) -> Iterator[TableClient]:
    """A table of our service alone, for Azure's limits that Azurite does not check."""
    with TableServiceClient.from_connection_string(ours.connection_string, retry_total=0) as service:
        yield service.create_table(unique())


@pytest.mark.parametrize(("values", "code"), [
    ({"x": "x" * 32769}, "PropertyValueTooLarge"),
    ({"x": b"x" * 65537}, "PropertyValueTooLarge"),
    ({f"x{n}": 1 for n in range(253)}, "TooManyProperties"),
    ({"x" * 256: 1}, "PropertyNameTooLong"),
    ({"a-b": 1}, "PropertyNameInvalid"),
    ({f"x{n}": b"x" * 65536 for n in range(16)}, "EntityTooLarge"),
    ({"PartitionKey": "k" * 513}, "KeyValueTooLarge"),
])  # fmt: skip
def test_limits_of_an_entity(ours_table: TableClient, values: dict[str, Any], code: str) -> None:
    """A property has at most 64 KiB, an entity 252 properties and 1 MiB, a property's name 255 characters, and a
    key 1 KiB."""
    assert refusal(ours_table.create_entity, {**KEY, **values}) == (400, code)
    assert refusal(ours_table.upsert_entity, {**KEY, **values}) == (400, code)
    assert rows(ours_table) == []


def test_up_to_the_limits(ours_table: TableClient) -> None:
    """A value at the limits is accepted and read back."""
    most = {"s": "x" * 32768, "b": b"x" * 65536, "n" * 255: 1, **{f"x{n}": n for n in range(249)}}
    ours_table.create_entity({**KEY, **most})
    assert ours_table.get_entity("p", "r") == {**KEY, **most}
    full = {f"x{n:02d}": b"x" * (65536 if n < 15 else 64000) for n in range(16)}
    ours_table.upsert_entity({**KEY, "RowKey": "full", **full}, UpdateMode.REPLACE)
    assert ours_table.get_entity("p", "full") == {**KEY, "RowKey": "full", **full}
    with pytest.raises(HttpResponseError, match="larger than the maximum"):  # together they are
        ours_table.upsert_entity({**KEY, "RowKey": "full", "more": b"x" * 65536}, UpdateMode.MERGE)


def signed(**rights: bool) -> str:
    """Return a SAS of the account with these permissions for entities."""
    key, end = AzureNamedKeyCredential(ACCOUNT, ACCOUNT_KEY), datetime.now(UTC) + timedelta(hours=1)
    return generate_account_sas(key, ResourceTypes(object=True), AccountSasPermissions(**rights), end)


def batched(side: Side, *parts: str) -> requests.Response:
    """Send a batch with these requests as parts, without a change set. Some clients end the path with a slash."""
    head = "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    body = "".join(f"{head}{part}\r\nAccept: application/json;odata=nometadata\r\n\r\n" for part in parts)
    headers = {"Content-Type": "multipart/mixed; boundary=batch_1", "x-ms-version": "2021-12-02"}
    return requests.post(
        f"{side.table_url}/$batch/?{signed(read=True)}", body + "--batch_1--\r\n", headers=headers, timeout=10
    )


def test_a_batch_may_be_one_query(side: Side, table: TableClient) -> None:
    """A batch of one query is a 202 with the entity."""
    table.create_entity({**KEY, "n": 1})
    one = f"GET {side.table_url}/{table.table_name}(PartitionKey='p',RowKey='r') HTTP/1.1"
    answer = batched(side, one)
    assert (answer.status_code, "HTTP/1.1 200 OK" in answer.text) == (202, True)
    (line,) = [line for line in answer.text.splitlines() if line.startswith("{")]
    assert {key: value for key, value in json.loads(line).items() if key in ("RowKey", "n")} == {"RowKey": "r", "n": 1}


def test_a_query_that_a_batch_may_not_be(ours: Side, ours_table: TableClient) -> None:
    """A query for a missing entity is a 404 inside a 202. Two queries, a change outside of a change set, and a
    query for several entities are refused."""
    table = f"{ours.table_url}/{ours_table.table_name}"
    answer = batched(ours, f"GET {table}(PartitionKey='p',RowKey='r') HTTP/1.1")
    assert (answer.status_code, "HTTP/1.1 404 Not Found" in answer.text) == (202, True)
    assert '"0:The specified resource does not exist' in answer.text
    one = f"GET {table}(PartitionKey='p',RowKey='r') HTTP/1.1"
    for parts in ((one, one), (f"DELETE {table}(PartitionKey='p',RowKey='r') HTTP/1.1",), (f"GET {table}() HTTP/1.1",)):
        refused = batched(ours, *parts)
        assert (refused.status_code, refused.headers["x-ms-error-code"]) == (400, "InvalidInput")


@pytest.mark.parametrize(("etag", "expected"), [
    ('W/"x"', (412, "UpdateConditionNotSatisfied")),
    ('w/"x"', (412, "UpdateConditionNotSatisfied")),
    ('"x"', (400, "InvalidInput")),
    ("x", (400, "InvalidInput")),
])  # fmt: skip
def test_etags_of_entities_are_weak(ours: Side, ours_table: TableClient, etag: str, expected: tuple[int, str]) -> None:
    """A weak etag, also with a lower-case w, is compared. Table Storage has no strong etags."""
    ours_table.create_entity({**KEY, "a": 1})
    url = f"{ours.table_url}/{ours_table.table_name}(PartitionKey='p',RowKey='r')?{signed(delete=True)}"
    answer = requests.delete(url, headers={"If-Match": etag, "x-ms-version": "2021-12-02"}, timeout=10)
    assert (answer.status_code, answer.headers["x-ms-error-code"]) == expected


@pytest.mark.parametrize("text", ["1.797693134862316e308", "-1e999", ""])
def test_a_double_has_a_range(ours: Side, ours_table: TableClient, text: str) -> None:
    """A number beyond the doubles is refused in Azure's words, also as text; only the word Infinity is infinite."""
    url = f"{ours.table_url}/{ours_table.table_name}?{signed(add=True)}"
    row = {**KEY, "real": text, "real@odata.type": "Edm.Double"}
    refused = requests.post(url, json=row, headers={"x-ms-version": "2021-12-02"}, timeout=10)
    assert (refused.status_code, refused.headers["x-ms-error-code"]) == (400, "InvalidInput")
    message = refused.json()["odata.error"]["message"]["value"]
    assert message.startswith("An error occurred while processing this request.")
    row["real"] = "-Infinity"
    assert requests.post(url, json=row, headers={"x-ms-version": "2021-12-02"}, timeout=10).status_code in (201, 204)


def test_an_error_tells_its_reason(ours: Side) -> None:
    """The reason that blobs and queues give as an XML element follows the message of a table's error."""
    url = f"{ours.table_url}/Tables?{signed(read=True)}"
    refused = requests.get(url.replace("sig=", "sig=A"), headers={"x-ms-version": "2021-12-02"}, timeout=10)
    assert refused.status_code == 403
    assert "\nAuthenticationErrorDetail:Signature did not match." in refused.json()["odata.error"]["message"]["value"]
