"""The table service's REST interface: which request is which operation.

https://learn.microsoft.com/rest/api/storageservices/table-service-rest-api
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import re
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from emulators.serving import parse_json
from emulators.storage.common import service_xml
from emulators.storage.common.account import Account, Right
from emulators.storage.common.calls import Answer, Call
from emulators.storage.common.errors import StorageError, invalid_input, missing_header, not_served
from emulators.storage.common.service import Service
from emulators.storage.tables import batch
from emulators.storage.tables.answers import Format
from emulators.storage.tables.entity import TYPE, Json, checked_key, checked_properties, moment_of, utf16
from emulators.storage.tables.filter import Plan, plan
from emulators.storage.tables.store import Entity, Failed, Tables, Write

PAGE = 1000  # the most entities of one answer
READ_AT_ONCE = 1000  # entities that a search looks at before others get their turn
SEARCH_SECONDS = 5.0  # after which a search answers with what it has found, as in Azure
MOST_OPERATIONS = 100
TABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{2,62}")
ENTITY = re.compile(r"(\w+)\(PartitionKey='((?:[^']|'')*)',\s*RowKey='((?:[^']|'')*)'\)")
ONE_TABLE = re.compile(r"Tables\('(\w+)'\)")
RIGHTS = {"insert": "a", "delete": "d"}


class TableService(Service):
    """Answers requests to the tables of one account. Whatever is not allowed raises StorageError."""

    largest_body: ClassVar[int] = 4 * 2**20

    def __init__(self, tables: Tables, account: Account, endpoint: str = "") -> None:
        self._tables = tables
        self._account = account
        self.endpoint = endpoint
        self.read_at_once = READ_AT_ONCE

    async def answer(self, call: Call) -> Answer:
        resource = call.resource
        if resource in ("", "/"):
            return self._service(call)
        if resource == "$batch" and call.method == "POST":
            return self._batch(call)
        if resource.rstrip("()") == "Tables" or ONE_TABLE.fullmatch(resource):
            return self._table(call)
        if call.method == "GET":
            match = ENTITY.fullmatch(resource)
            return self._get(call, match) if match else await self._query(call, resource.removesuffix("()"))
        write = _write(call)
        self._account.admit(call, Right("o", (_rights(write),), write.table))
        return _written(Format.of(call, self.endpoint), call, write, self._tables.write([write])[0])

    def failure(self, error: StorageError, note: str) -> Answer:
        message = error.message.partition(":")[2] if isinstance(error, Failed) else error.message
        return _failure(error, f"{message}\n{note}")

    def purge(self) -> bool:
        return self._tables.purge()

    # /

    def _service(self, call: Call) -> Answer:
        match call.method, call.text("restype"), call.text("comp"):
            case "GET", "service", "properties":
                self._account.admit(call, Right("s", ("r",)))
                text = self._tables.settings("properties") or service_xml.HEAD + service_xml.DEFAULT_PROPERTIES
                return Answer(200, text.encode(), {"Content-Type": "application/xml"})
            case "PUT", "service", "properties":
                self._account.admit(call, Right("s", ("w",)))
                text = service_xml.merged(self._tables.settings("properties"), call.body)
                self._tables.set_settings("properties", text)
                return Answer(202)
        raise not_served(call.method, call.path)

    # /Tables

    def _table(self, call: Call) -> Answer:
        form, match = Format.of(call, self.endpoint), ONE_TABLE.fullmatch(call.resource)
        if call.method == "DELETE" and match:
            self._account.admit(call, Right("c", ("d",)))
            self._tables.delete(match[1])
            return Answer(204)
        if call.method == "POST" and not match:
            self._account.admit(call, Right("c", ("c", "w")))
            name = _table_name(_document(call).get("TableName"))
            self._tables.create(name)
            return form.created(call, form.table(name), {})
        if call.method == "GET" and not match:
            self._account.admit(call, Right("c", ("l", "r")))
            return self._list(call, form)
        raise not_served(call.method, call.path)

    def _list(self, call: Call, form: Format) -> Answer:
        top, wanted = _top(call), plan(call.text("$filter")).test
        start = _decoded(call.text("NextTableName"))
        names = [name for name in self._tables.names(start) if wanted is None or wanted({"TableName": name})]
        more = {"x-ms-continuation-NextTableName": _encoded(names[top])} if len(names) > top else {}
        return form.tables(names[:top], more)

    # /TABLE(...)

    def _get(self, call: Call, match: re.Match[str]) -> Answer:
        self._account.admit(call, Right("o", ("r",), match[1]))
        return self._found(call, match)

    def _found(self, call: Call, match: re.Match[str]) -> Answer:
        entity = self._tables.get(match[1], _unquoted(match[2]), _unquoted(match[3]))
        return Format.of(call, self.endpoint).entity(match[1], entity, _selected(call))

    async def _query(self, call: Call, table: str) -> Answer:
        self._account.admit(call, Right("o", ("r",), table))
        asked, top = plan(call.text("$filter")), _top(call)
        found, rest = await self._search(table, asked, _start(call), top)
        headers = {}
        if rest:
            headers["x-ms-continuation-NextPartitionKey"] = _encoded(rest.partition)
            headers["x-ms-continuation-NextRowKey"] = _encoded(rest.row)
        return Format.of(call, self.endpoint).entities(table, found, _selected(call), headers)

    async def _search(
        self, table: str, asked: Plan, start: tuple[str, str] | None, top: int
    ) -> tuple[list[Entity], Entity | None]:
        """At most `top` entities, and the first that was not looked at, None at the end."""
        found, until = list[Entity](), time.monotonic() + SEARCH_SECONDS
        size = top + 1 if asked.test is None else self.read_at_once
        while True:
            piece = self._tables.scan(table, asked, start, size)
            for entity in piece[: size - 1]:
                if len(found) == top:
                    return found, entity
                if asked.test is None or asked.test(_row(entity, asked)):
                    found.append(entity)
            if len(piece) < size:
                return found, None
            rest = piece[-1]
            if len(found) == top or time.monotonic() > until:
                return found, rest
            start = (rest.partition, rest.row)
            await asyncio.sleep(0)

    # /$batch

    def _batch(self, call: Call) -> Answer:
        operations = batch.operations(call)
        if isinstance(operations, Call):
            return self._batched_query(call, operations)
        try:
            writes = [_numbered(index, operation) for index, operation in enumerate(operations)]
            rights = "".join({letter for write in writes for letter in _rights(write)})
            self._account.admit(call, Right("o", (rights,), writes[0].table if writes else ""))
            _check_group(writes)
            done = self._tables.write(writes)
        except Failed as error:
            return batch.answer([(None, _failure(error, error.message))])
        form = Format.of(call, self.endpoint)
        answers = [_written(form, *one) for one in zip(operations, writes, done, strict=True)]
        return batch.answer(zip(operations, answers, strict=True))

    def _batched_query(self, call: Call, query: Call) -> Answer:
        """A batch may be one query of one entity, whose keys may be too long for an address."""
        match = ENTITY.fullmatch(query.resource)
        if match is None:
            raise invalid_input("The query of a batch is of one entity: TABLE(PartitionKey='...',RowKey='...').")
        self._account.admit(call, Right("o", ("r",), match[1]))
        try:
            found = self._found(query, match)
        except StorageError as error:
            failed = Failed(0, error)
            found = _failure(failed, failed.message)
        return batch.answer_to_query(query, found)


def _failure(error: StorageError, message: str) -> Answer:
    body = {"odata.error": {"code": error.code, "message": {"lang": "en-US", "value": message}}}
    content_type = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
    return Answer(error.status, json.dumps(body).encode(), {"Content-Type": content_type})


def _numbered(index: int, operation: Call) -> Write:
    if index >= MOST_OPERATIONS:
        message = f"The batch request operation exceeds the maximum {MOST_OPERATIONS} changes per change set."
        raise Failed(index, invalid_input(message))
    try:
        return _write(operation)
    except StorageError as error:
        raise Failed(index, error) from error


def _check_group(writes: list[Write]) -> None:
    """All of one table and partition, and no entity twice."""
    seen = set()
    for index, write in enumerate(writes):
        if (write.table.lower(), write.partition) != (writes[0].table.lower(), writes[0].partition):
            message = "All commands in a batch must operate on same entity group."
            raise Failed(index, StorageError(400, "CommandsInBatchActOnDifferentPartitions", message))
        if write.row in seen:
            message = (
                "The batch request contains multiple changes with same row key. An entity can appear only once in a "
                "batch request."
            )
            raise Failed(index, StorageError(400, "InvalidDuplicateRow", message))
        seen.add(write.row)


def _write(call: Call) -> Write:
    """The change that a request asks for."""
    method = call.headers.get("X-HTTP-Method", call.method) if call.method == "POST" else call.method
    resource, etag = call.resource, call.headers.get("If-Match")
    if method == "POST":
        document = _document(call)
        partition, row = (checked_key(name, document.get(name)) for name in ("PartitionKey", "RowKey"))
        table = _table_name(resource.removesuffix("()"))
        return Write("insert", table, partition, row, checked_properties(document, utf16(partition, row)))
    match = ENTITY.fullmatch(resource)
    kind = {"PUT": "replace", "MERGE": "merge", "PATCH": "merge", "DELETE": "delete"}.get(method)
    if match is None or kind is None:
        raise not_served(call.method, call.path)
    partition = checked_key("PartitionKey", _unquoted(match[2]))
    row = checked_key("RowKey", _unquoted(match[3]))
    if kind == "delete":
        if etag is None:
            raise missing_header("If-Match")
        return Write(kind, match[1], partition, row, {}, etag)
    return Write(kind, match[1], partition, row, checked_properties(_document(call), utf16(partition, row)), etag)


def _rights(write: Write) -> str:
    return RIGHTS.get(write.kind) or ("u" if write.etag else "au")


def _written(form: Format, call: Call, write: Write, entity: Entity) -> Answer:
    if write.kind == "insert":
        return form.created(call, form.one(write.table, entity), {"ETag": entity.etag})
    return Answer(204, headers={} if write.kind == "delete" else {"ETag": entity.etag})


def _document(call: Call) -> Json:
    try:
        document = parse_json(call.body)
    except ValueError:
        raise invalid_input("The body is not JSON.") from None
    if not isinstance(document, dict):
        raise invalid_input("The body must be a JSON object.")
    return document


def _table_name(name: Any) -> str:
    if not isinstance(name, str) or not TABLE_NAME.fullmatch(name) or name.lower() == "tables":
        sentence = "The specified resource name contains invalid characters."
        raise StorageError(400, "InvalidResourceName", sentence)
    return name


def _top(call: Call) -> int:
    text = call.query.get("$top", str(PAGE))
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= PAGE:
        raise invalid_input(f"$top is {text!r:.80}; it must be a number from 1 to {PAGE}.")
    return int(text)


def _selected(call: Call) -> frozenset[str] | None:
    names = call.text("$select").strip()
    return frozenset(name.strip() for name in names.split(",")) if names and names != "*" else None


def _row(entity: Entity, asked: Plan) -> Mapping[str, Any]:
    """What the plan's test looks at. The time is written out only for who asks for it: it costs as much as the rest."""
    row = entity.properties() | {"PartitionKey": entity.partition, "RowKey": entity.row}
    if "Timestamp" in asked.names:
        row |= {"Timestamp": moment_of(entity.ticks), f"Timestamp{TYPE}": "Edm.DateTime"}
    return row


def _start(call: Call) -> tuple[str, str] | None:
    if "NextPartitionKey" not in call.query:
        return None
    return _decoded(call.text("NextPartitionKey")), _decoded(call.text("NextRowKey"))


def _encoded(key: str) -> str:
    return "1!" + base64.urlsafe_b64encode(key.encode()).decode()


def _decoded(token: str) -> str:
    try:
        return base64.urlsafe_b64decode(token.removeprefix("1!")).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise invalid_input(f"{token!r:.80} is no continuation token of this service.") from None


def _unquoted(key: str) -> str:
    return key.replace("''", "'")
