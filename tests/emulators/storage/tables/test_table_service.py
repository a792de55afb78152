"""The table protocol as Microsoft's package speaks it, against Azurite and against ours."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import (
    AccountSasPermissions,
    EdmType,
    EntityProperty,
    RequestTooLargeError,
    ResourceTypes,
    TableClient,
    TableServiceClient,
    TableTransactionError,
    UpdateMode,
    generate_account_sas,
)

from tests.azurite import ACCOUNT
from tests.azurite import KEY as ACCOUNT_KEY
from tests.emulators.storage.conftest import Side

KEY = {"PartitionKey": "p", "RowKey": "r"}
VALUES: dict[str, Any] = {
    "text": "ü 數據 🚂 '\"<&\n\t",
    "empty": "",
    "whole": -5,
    "big": EntityProperty(2**62 + 1, EdmType.INT64),
    "real": 1.5,
    "round": 3.0,
    "yes": True,
    "no": False,
    "when": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    "guid": uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833"),
    "bytes": bytes(range(256)),
}


@pytest.fixture
def table(tables: TableServiceClient, unique: Callable[[], str]) -> Iterator[TableClient]:
    client = tables.create_table(unique())
    yield client
    client.delete_table()


def refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[int | None, str]:
    """The status and code with which a call is refused."""
    with pytest.raises(HttpResponseError) as caught:
        call(*arguments, **options)
    answer: Any = caught.value.response
    return caught.value.status_code, answer.headers["x-ms-error-code"]


def matching(etag: str) -> dict[str, Any]:
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}


def rows(table: TableClient, wanted: str = "", **options: Any) -> list[str]:
    return [entity["RowKey"] for entity in table.query_entities(wanted, **options)]


def test_a_table_is_made_once(tables: TableServiceClient, unique: Callable[[], str]) -> None:
    """Its name is taken, whatever case it is in, until it is deleted; then nothing of it is left."""
    name = unique()
    client = tables.create_table(name)
    client.create_entity(KEY)
    assert refusal(tables.create_table, name) == (409, "TableAlreadyExists")
    assert name in [item.name for item in tables.list_tables()]
    client.delete_table()
    for call in (lambda: client.create_entity(KEY), lambda: rows(client), lambda: client.upsert_entity(KEY)):
        assert refusal(call) == (404, "TableNotFound")
    client.create_table()
    assert rows(client) == []
    client.delete_table()


def test_tables_are_listed_by_a_filter(tables: TableServiceClient, unique: Callable[[], str]) -> None:
    """By name, page by page."""
    names = sorted(f"a{unique()}" for _ in range(5))
    for name in names:
        tables.create_table(name)
    condition = f"TableName ge '{names[0]}' and TableName le '{names[-1]}'"
    pages = [[item.name for item in page] for page in tables.query_tables(condition, results_per_page=2).by_page()]
    assert [name for page in pages for name in page] == names
    for name in names:
        tables.delete_table(name)


def test_every_type_comes_back(table: TableClient) -> None:
    """Each of OData's types as it was written, with the entity's time and version."""
    written = table.create_entity({**KEY, **VALUES, "nothing": None})
    found = table.get_entity("p", "r")
    assert {name: found.get(name) for name in VALUES} == VALUES
    assert {name for name in VALUES if type(found[name]) is not type(VALUES[name])} <= {"when"}
    assert "nothing" not in found
    assert found.metadata["etag"] == written["etag"]
    assert found.metadata["timestamp"] is not None
    assert abs((datetime.now(UTC) - found.metadata["timestamp"]).total_seconds()) < 60


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), 1e-300])
def test_doubles_beyond_json(table: TableClient, number: float) -> None:
    """Infinities travel as text with their type."""
    table.create_entity({**KEY, "x": number})
    assert table.get_entity("p", "r")["x"] == number


@pytest.mark.parametrize("key", ["", "it's", "a b", "ä數", "a%2fb", "100%", "&$=+,;:@!()*", "~", "k" * 512])
def test_any_allowed_key(table: TableClient, key: str) -> None:
    """Keys with quotes, spaces and what URLs escape, up to 512 characters; they are read, changed and deleted."""
    entity = {"PartitionKey": key, "RowKey": key, "x": 1}
    table.create_entity(entity)
    table.update_entity({**entity, "x": 2}, UpdateMode.REPLACE)
    assert table.get_entity(key, key)["x"] == 2
    assert [
        e["x"] for e in table.query_entities("PartitionKey eq @key and RowKey eq @key", parameters={"key": key})
    ] == [2]
    table.delete_entity(key, key)
    assert rows(table) == []


def test_insert_is_once(table: TableClient) -> None:
    """The second insert is a conflict, whatever it holds; a missing entity is missing."""
    table.create_entity({**KEY, "x": 1})
    assert refusal(table.create_entity, {**KEY, "x": 2}) == (409, "EntityAlreadyExists")
    assert table.get_entity("p", "r")["x"] == 1
    assert refusal(table.get_entity, "p", "other") == (404, "ResourceNotFound")


def test_replace_and_merge(table: TableClient) -> None:
    """Replacing drops other properties, merging keeps them and changes types; neither makes an entity."""
    table.create_entity({**KEY, "a": 1, "b": EntityProperty(2, EdmType.INT64)})
    table.update_entity({**KEY, "b": "text", "c": 3}, UpdateMode.MERGE)
    assert dict(table.get_entity("p", "r")) == {**KEY, "a": 1, "b": "text", "c": 3}
    table.update_entity({**KEY, "d": 4}, UpdateMode.REPLACE)
    assert dict(table.get_entity("p", "r")) == {**KEY, "d": 4}
    for mode in (UpdateMode.MERGE, UpdateMode.REPLACE):
        assert refusal(table.update_entity, {"PartitionKey": "p", "RowKey": "no"}, mode) == (404, "ResourceNotFound")


def test_upsert(table: TableClient) -> None:
    """Both kinds make an entity that is missing; then they do what their names say."""
    table.upsert_entity({**KEY, "a": 1}, UpdateMode.MERGE)
    table.upsert_entity({**KEY, "b": 2}, UpdateMode.MERGE)
    assert dict(table.get_entity("p", "r")) == {**KEY, "a": 1, "b": 2}
    table.upsert_entity({**KEY, "c": 3}, UpdateMode.REPLACE)
    assert dict(table.get_entity("p", "r")) == {**KEY, "c": 3}


def test_a_version_guards_a_write(table: TableClient) -> None:
    """Every write gives a new version; who names an old one changes nothing."""
    first = table.create_entity({**KEY, "x": 1})["etag"]
    second = table.update_entity({**KEY, "x": 2}, UpdateMode.REPLACE, **matching(first))["etag"]
    assert first != second
    stale = {"x": 3, **KEY}
    assert refusal(table.update_entity, stale, UpdateMode.REPLACE, **matching(first)) == (
        412,
        "UpdateConditionNotSatisfied",
    )
    assert refusal(table.update_entity, stale, UpdateMode.MERGE, **matching(first)) == (
        412,
        "UpdateConditionNotSatisfied",
    )
    assert refusal(table.delete_entity, "p", "r", **matching(first)) == (412, "UpdateConditionNotSatisfied")
    assert table.get_entity("p", "r")["x"] == 2
    table.delete_entity("p", "r", **matching(second))
    assert rows(table) == []


def test_versions_differ_always(table: TableClient) -> None:
    """Writes in quick succession, deletions between them too, never give one version twice."""
    etags = []
    for _ in range(10):
        etags.append(table.create_entity(KEY)["etag"])
        etags += [table.update_entity(KEY, UpdateMode.REPLACE)["etag"] for _ in range(5)]
        table.delete_entity("p", "r")
    assert len(set(etags)) == 60


def many(table: TableClient, partition: str, numbers: range) -> None:
    for start in range(numbers.start, numbers.stop, 100):
        part = range(start, min(start + 100, numbers.stop))
        table.submit_transaction(
            [("create", {"PartitionKey": partition, "RowKey": f"{n:04d}", "n": n, "even": n % 2 == 0}) for n in part]
        )


def test_pages(table: TableClient) -> None:
    """An answer holds at most 1,000 entities or what was asked for; together they are all, in order, each once."""
    many(table, "a", range(1100))
    many(table, "b", range(5))
    pages = [[e["RowKey"] for e in page] for page in table.list_entities().by_page()]
    assert [len(page) for page in pages] == [1000, 105]
    assert [key for page in pages for key in page] == [f"{n:04d}" for n in (*range(1100), *range(5))]
    small = table.query_entities("PartitionKey eq 'a' and RowKey ge '0090'", results_per_page=7).by_page()
    assert [[e["n"] for e in next(small)] for _ in range(2)] == [list(range(90, 97)), list(range(97, 104))]
    token = small.continuation_token  # type: ignore[attr-defined]
    again = table.query_entities("PartitionKey eq 'a' and RowKey ge '0090'", results_per_page=7).by_page(token)
    assert [e["n"] for e in next(again)] == list(range(104, 111))
    few = table.query_entities("even eq true and n ge 1090", results_per_page=3).by_page()
    assert [e["n"] for page in few for e in page] == [1090, 1092, 1094, 1096, 1098]


def test_selected_columns(table: TableClient) -> None:
    """Only what was selected comes, with its type; what an entity lacks does not come."""
    table.create_entity({**KEY, **VALUES})
    (found,) = table.query_entities("", select=["RowKey", "big", "when", "lacking"])
    assert {name for name, value in found.items() if value is not None} == {"RowKey", "big", "when"}
    assert found["big"] == VALUES["big"]
    assert dict(table.get_entity("p", "r", select="text")) == {"text": VALUES["text"]}


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


@pytest.fixture(scope="module")
def filtered(sides: dict[str, Side]) -> Iterator[dict[str, TableClient]]:
    """On each side a table with one entity."""
    values = {**VALUES, "text": "it's", "bytes": b"\x00\xff"}
    services = [TableServiceClient.from_connection_string(side.connection_string) for side in sides.values()]
    made = {name: service.create_table("filtered") for name, service in zip(sides, services, strict=True)}
    for client in made.values():
        client.create_entity({**KEY, **values})
    yield made
    for one in (*made.values(), *services):
        one.close()


@pytest.mark.parametrize(("text", "found"), FILTERS.items())
def test_filters(filtered: dict[str, TableClient], side: Side, text: str, found: bool) -> None:
    """Comparisons of every type, and how they are joined: `and` before `or`, `not` before both."""
    assert rows(filtered[side.name], text) == ["r"] * found


@pytest.mark.parametrize(
    "text", ["whole eq", "eq 5", "whole is 5", "whole eq 'x", "(whole eq 5", "whole eq 5)", "1 eq 1"]
)
def test_what_is_no_filter(ours_table: TableClient, text: str) -> None:
    """It is refused as invalid input, not as a failure of the service. (Azurite lets some of them pass.)"""
    assert refusal(rows, ours_table, text) == (400, "InvalidInput")


def test_a_transaction_is_all_or_nothing(table: TableClient) -> None:
    """Every kind of write together; one that is refused undoes the others, and its number is said."""
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


def test_a_transaction_guards_versions(table: TableClient) -> None:
    """A stale version in it undoes all of it; the versions it gives are those of the entities."""
    etag = table.create_entity(KEY)["etag"]
    (given, _) = table.submit_transaction([
        ("update", {**KEY, "x": 1}, matching(etag)), ("create", {**KEY, "RowKey": "new"}),
    ])  # fmt: skip
    assert table.get_entity("p", "r").metadata["etag"] == given["etag"]
    with pytest.raises(TableTransactionError) as caught:
        table.submit_transaction([("create", {**KEY, "RowKey": "2"}), ("update", {**KEY, "x": 2}, matching(etag))])
    assert (caught.value.index, caught.value.status_code) == (1, 412)
    assert sorted(rows(table)) == ["new", "r"]


def test_a_hundred_writes(table: TableClient) -> None:
    """A transaction takes 100."""
    table.submit_transaction([("create", {"PartitionKey": "p", "RowKey": f"{n}"}) for n in range(100)])
    assert len(rows(table)) == 100


@pytest.mark.parametrize("character", ["/", "\\", "#", "?", "\t", "\n", "\x7f"])
def test_characters_that_keys_must_not_have(ours_table: TableClient, character: str) -> None:
    """Azure refuses them in both keys."""
    for name in KEY:
        with pytest.raises(HttpResponseError) as caught:
            ours_table.create_entity({**KEY, name: f"a{character}b"})
        assert caught.value.status_code == 400


@pytest.fixture
def ours_table(ours: Side, unique: Callable[[], str]) -> Iterator[TableClient]:
    """For Azure's limits that Azurite doesn't check."""
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
    """64 KiB a property, 252 properties, 255 characters a name, 1 MiB an entity, 1 KiB a key."""
    assert refusal(ours_table.create_entity, {**KEY, **values}) == (400, code)
    assert refusal(ours_table.upsert_entity, {**KEY, **values}) == (400, code)
    assert rows(ours_table) == []


def test_up_to_the_limits(ours_table: TableClient) -> None:
    """What is just within them is taken, and comes back."""
    most = {"s": "x" * 32768, "b": b"x" * 65536, "n" * 255: 1, **{f"x{n}": n for n in range(249)}}
    ours_table.create_entity({**KEY, **most})
    assert ours_table.get_entity("p", "r") == {**KEY, **most}
    full = {f"x{n:02d}": b"x" * (65536 if n < 15 else 64000) for n in range(16)}
    ours_table.upsert_entity({**KEY, "RowKey": "full", **full}, UpdateMode.REPLACE)
    assert ours_table.get_entity("p", "full") == {**KEY, "RowKey": "full", **full}
    with pytest.raises(HttpResponseError, match="larger than the maximum"):  # together they are
        ours_table.upsert_entity({**KEY, "RowKey": "full", "more": b"x" * 65536}, UpdateMode.MERGE)


def batched(side: Side, *parts: str) -> requests.Response:
    """A batch whose parts are these requests, none of them in a change set."""
    types, rights = ResourceTypes(object=True), AccountSasPermissions(read=True)
    key, end = AzureNamedKeyCredential(ACCOUNT, ACCOUNT_KEY), datetime.now(UTC) + timedelta(hours=1)
    sas = generate_account_sas(key, types, rights, end)
    head = "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    body = "".join(f"{head}{part}\r\nAccept: application/json;odata=nometadata\r\n\r\n" for part in parts)
    headers = {"Content-Type": "multipart/mixed; boundary=batch_1", "x-ms-version": "2021-12-02"}
    return requests.post(f"{side.table_url}/$batch?{sas}", body + "--batch_1--\r\n", headers=headers, timeout=10)


def test_a_batch_may_be_one_query(side: Side, table: TableClient) -> None:
    """It answers 202 with the entity."""
    table.create_entity({**KEY, "n": 1})
    one = f"GET {side.table_url}/{table.table_name}(PartitionKey='p',RowKey='r') HTTP/1.1"
    answer = batched(side, one)
    assert (answer.status_code, "HTTP/1.1 200 OK" in answer.text) == (202, True)
    (line,) = [line for line in answer.text.splitlines() if line.startswith("{")]
    assert {key: value for key, value in json.loads(line).items() if key in ("RowKey", "n")} == {"RowKey": "r", "n": 1}


def test_a_query_that_a_batch_may_not_be(ours: Side, ours_table: TableClient) -> None:
    """An entity that is not there is a 404 in a 202; two queries, a change outside of a change set and a query of many
    entities are refused."""
    table = f"{ours.table_url}/{ours_table.table_name}"
    answer = batched(ours, f"GET {table}(PartitionKey='p',RowKey='r') HTTP/1.1")
    assert (answer.status_code, "HTTP/1.1 404 Not Found" in answer.text) == (202, True)
    assert '"0:The specified resource does not exist' in answer.text
    one = f"GET {table}(PartitionKey='p',RowKey='r') HTTP/1.1"
    for parts in ((one, one), (f"DELETE {table}(PartitionKey='p',RowKey='r') HTTP/1.1",), (f"GET {table}() HTTP/1.1",)):
        refused = batched(ours, *parts)
        assert (refused.status_code, refused.headers["x-ms-error-code"]) == (400, "InvalidInput")


def test_limits_of_a_transaction(ours_table: TableClient) -> None:
    """One partition, no entity twice, 4 MiB."""
    entity = {"PartitionKey": "p", "RowKey": "0"}
    big = {f"x{n}": b"x" * 65536 for n in range(12)}
    for writes, expected in (
        ([("upsert", {**entity, "RowKey": str(n), **big}) for n in range(5)], RequestTooLargeError),
        ([("upsert", entity), ("delete", entity)], TableTransactionError),
    ):
        with pytest.raises(expected):
            ours_table.submit_transaction(writes)
    assert rows(ours_table) == []
