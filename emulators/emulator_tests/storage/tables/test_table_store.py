"""The state and the queries of tables: filters, ranges, pages, restarts, and invalid transactions."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import AzureError
from azure.data.tables import TableClient
from hypothesis import given, settings
from hypothesis import strategies as st

from emulators.storage import services
from emulators.storage.common.account import Account
from emulators.storage.common.calls import Call
from emulators.storage.common.errors import StorageError
from emulators.storage.keys import ACCOUNT, KEY
from emulators.storage.tables.batch import operations
from emulators.storage.tables.entity import checked_key, checked_properties, moment_of, ticks_of
from emulators.storage.tables.filter import Plan, plan
from emulators.storage.tables.service import TableService, _top
from emulators.storage.tables.store import PURGED_AT_ONCE, Entity, Tables, Write
from emulators.storage.tables.writes import document

KEYS = st.sampled_from(["", "a", "a!", "b", "bc", "ü", "z"])
COMPARISONS = st.one_of(
    st.tuples(st.sampled_from(["PartitionKey", "RowKey"]), st.sampled_from(["eq", "ne", "gt", "ge", "lt", "le"]), KEYS),
    st.tuples(st.just("n"), st.sampled_from(["eq", "ne", "gt", "ge", "lt", "le"]), st.integers(0, 3)),
)
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}
TREES = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)),
    ),
    max_leaves=6,
)


def text_of(tree: Any) -> str:
    match tree:
        case ("not", inner):
            return f"not ({text_of(inner)})"
        case ("and" | "or" as word, list(parts)):
            return "(" + f" {word} ".join(map(text_of, parts)) + ")"
        case (name, sign, value):
            return f"{name} {sign} {value if isinstance(value, int) else chr(39) + value + chr(39)}"
    raise AssertionError(tree)


def holds(tree: Any, row: dict[str, Any]) -> bool:
    match tree:
        case ("not", inner):
            return not holds(inner, row)
        case ("and", list(parts)):
            return all(holds(part, row) for part in parts)
        case ("or", list(parts)):
            return any(holds(part, row) for part in parts)
        case (name, sign, value):
            return name in row and OPERATORS[sign](row[name], value)
    raise AssertionError(tree)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[TableService, list[dict[str, Any]]]:
    """A service with one entity for each pair of keys, in key order."""
    tables = Tables(tmp_path_factory.mktemp("tables") / "tables.sqlite")
    tables.create("t")
    keys = ["", "a", "a!", "b", "bc", "z", "ü"]
    rows: list[dict[str, Any]] = []
    for i, partition in enumerate(keys):
        for j, row in enumerate(keys):
            values = {"n": (i + j) % 4} if i else {}
            tables.write([Write("insert", "t", partition, row, values)])
            rows.append({"PartitionKey": partition, "RowKey": row, **values})
    return TableService(tables, Account(ACCOUNT, KEY, "table")), rows


@settings(max_examples=150)
@given(tree=TREES, top=st.integers(1, 20), at_once=st.integers(2, 60))
def test_a_search_finds_what_the_filter_says(
    filled: tuple[TableService, list[dict[str, Any]]], tree: Any, top: int, at_once: int
) -> None:
    """For any filter on keys and properties and any page size, all pages together have exactly the matching
    entities, in key order."""
    service, rows = filled
    asked, found, start = plan(text_of(tree)), list[tuple[str, str]](), None
    service.read_at_once = at_once
    with asyncio.Runner() as runner:
        while True:
            page, rest = runner.run(service._search("t", asked, start, top))
            assert len(page) <= top
            found += [(entity.partition, entity.row) for entity in page]
            if rest is None:
                break
            start = (rest.partition, rest.row)
    assert found == [(row["PartitionKey"], row["RowKey"]) for row in rows if holds(tree, row)]


def tried(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a call, or its refusal. Any other error fails the test."""
    try:
        return call(*arguments)
    except (StorageError, AzureError) as error:
        return error


@given(st.text(max_size=60))
def test_any_text_is_a_filter_or_is_refused(text: str) -> None:
    """Reading a filter raises nothing but a StorageError."""
    found = tried(plan, text)
    assert isinstance(found, Plan) or (found.status, found.code) == (400, "InvalidInput")


def test_deep_filters_are_refused() -> None:
    """A filter with too many nested parentheses is a client error."""
    with pytest.raises(StorageError, match="at most 100 brackets"):
        plan("(" * 5000 + "a eq 1" + ")" * 5000)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.none(), max_size=1)
KINDS = ["Int32", "Int64", "Double", "DateTime", "Guid", "Binary", "Boolean", "String", "X"]


@given(
    st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.sampled_from([*(f"Edm.{kind}" for kind in KINDS), 5])
)
def test_any_body_is_an_entity_or_is_refused(document: dict[str, Any], kind: Any) -> None:
    """An accepted body can be stored and read back. A refused body is a client error."""
    typed = {**document, **{f"{name}@odata.type": kind for name in list(document)[:1]}}
    found = tried(checked_properties, typed, 0)
    assert json.dumps(found, allow_nan=False) if isinstance(found, dict) else found.status == 400


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a": NaN}', b"\xff", b"1" * 5000, b"[]"], ids=range(5))
def test_a_body_that_is_no_entity_is_refused(body: bytes) -> None:
    """A body that is not a JSON object, is nested too deep, or has a number that is too long is a client error."""
    found = tried(document, Call("POST", "/a/t", {}, {}, body))
    assert (found.status, found.code) == (400, "InvalidInput")


@pytest.mark.parametrize("key", ["a/b", "a\x00", "\ud800", "x" * 513, 5], ids=range(5))
def test_a_key_that_can_not_be_stored_is_refused(key: Any) -> None:
    """A key is refused if it has a character that Azure forbids, half a surrogate pair or more than 1 KiB, or if it
    is not a string."""
    assert tried(checked_key, "RowKey", key).status == 400


@pytest.mark.parametrize("top", ["\u00b2", "9" * 5000, "0", "1001", "-1", ""], ids=range(6))
def test_a_page_has_1_to_1000_entities(top: str) -> None:
    """$top is a number from 1 to 1,000. Anything else is a client error."""
    found = tried(_top, Call("GET", "/a/t", {"$top": top}, {}, b""))
    assert (found.status, found.code) == (400, "InvalidInput")


@given(st.integers(-116444736000000000, 2534023007999999999 // 10))
def test_times_keep_their_ticks(ticks: int) -> None:
    """Times since 1601 are written and read with a precision of a tenth of a microsecond."""
    assert ticks_of(moment_of(ticks)) == ticks
    assert ticks_of(moment_of(ticks, digits=0)) == ticks


@given(st.binary(max_size=200), st.sampled_from(["multipart/mixed; boundary=x", "multipart/mixed", "text/plain", ""]))
def test_any_body_is_a_transaction_or_is_refused(body: bytes, content_type: str) -> None:
    """Reading a transaction returns operations or raises a StorageError."""
    inner = b"--y\r\n\r\n" + body + b"\r\n--y--"
    nested = b"--x\r\nContent-Type: multipart/mixed; boundary=y\r\n\r\n" + inner + b"\r\n--x--"
    for content in (body, nested):
        found = tried(operations, Call("POST", "/a/$batch", {}, {"Content-Type": content_type}, content))
        assert isinstance(found, list | Call) or found.status == 400


def three_rows(number: int) -> list[tuple[str, dict[str, str]]]:
    return [("create", {"PartitionKey": "p", "RowKey": f"{number:05d}{letter}"}) for letter in "abc"]


def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """After SIGKILL during transactions, a restart at the old address has each transaction completely or not at
    all."""
    running = services.start(tmp_path)
    client = TableClient.from_connection_string(running.connection_string, "work", retry_total=0)
    client.create_table()
    done = 0
    killer = threading.Timer(0.3, running.part.process.send_signal, (signal.SIGKILL,))
    killer.start()
    while not isinstance(tried(client.submit_transaction, three_rows(done)), Exception):
        done += 1
    killer.join()
    assert done > 0
    running.part.stop()
    with services.start(tmp_path) as again:
        assert again.table_url == running.table_url
        names = [entity["RowKey"] for entity in client.list_entities()]
    assert names[: done * 3] == [f"{number:05d}{letter}" for number in range(done) for letter in "abc"]
    assert len(names) % 3 == 0


def test_what_is_deleted_leaves_the_file(tmp_path: Path) -> None:
    """A deleted table's entities are purged in bounded steps. Meanwhile a new table of the same name begins empty."""
    tables = Tables(tmp_path / "tables.sqlite")
    for name in ("gone", "kept"):
        tables.create(name)
        for start in range(0, PURGED_AT_ONCE + 1, 100):
            tables.write([Write("insert", name, "p", f"{start + n:04d}", {}) for n in range(100)])
    tables.delete("gone")
    tables.create("Gone")
    assert tables.scan("gone", Plan(), None, 10) == []
    steps = 0
    while tables.purge():
        steps += 1
    assert steps == 3  # two with entities, and one that finds nothing
    assert len(tables.scan("KEPT", Plan(), None, 10_000)) == 600
    tables.close()
    assert Tables(tmp_path / "tables.sqlite").names() == ["Gone", "kept"]


def test_a_range_is_read_from_the_index(tmp_path: Path) -> None:
    """A page in the middle of a partition starts at its first entity: SQLite searches an index and does not sort."""
    tables = Tables(tmp_path / "tables.sqlite")
    tables.create("t")
    statements: list[str] = []
    tables._db.set_trace_callback(statements.append)
    tables.scan("t", plan("PartitionKey eq 'p' and RowKey ge 't!' and RowKey lt 't~'"), ("p", "t!5"), 100)
    with pytest.raises(StorageError):
        tables.get("t", "p", "r")
    tables._db.set_trace_callback(None)
    plans = [row[3] for text in statements for row in tables._db.execute(f"EXPLAIN QUERY PLAN {text}")]
    assert len(plans) == 2
    assert "(tbl=? AND partition=? AND row>? AND row<?)" in plans[0]
    assert "t!5" in statements[0]
    assert "(tbl=? AND partition=? AND row=?)" in plans[1]


def test_the_clock_may_go_back(tmp_path: Path) -> None:
    """An entity's version increases with each write, even if the clock goes back."""
    now = [1_800_000_000.0]
    tables = Tables(tmp_path / "tables.sqlite", lambda: now[0])
    tables.create("t")
    etags = [_put(tables, number).etag for number in range(3)]
    now[0] -= 3600
    tables.close()
    tables = Tables(tmp_path / "tables.sqlite", lambda: now[0])
    etags += [_put(tables, number).etag for number in range(3)]
    assert sorted(set(etags)) == etags


def _put(tables: Tables, number: int) -> Entity:
    return tables.write([Write("replace", "t", "p", "r", {"n": number})])[0]
