"""The table service's REST interface: how requests map to operations.

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

from emulators.storage.common.account import Account
from emulators.storage.common.calls import Answer, Call
from emulators.storage.common.errors import StorageError, bad_parameter, invalid_input, not_served
from emulators.storage.common.rights import Right, Terms
from emulators.storage.common.service import Service
from emulators.storage.tables import batch, writes
from emulators.storage.tables.answers import Format
from emulators.storage.tables.entity import TYPE, moment_of
from emulators.storage.tables.filter import Plan, plan
from emulators.storage.tables.store import Entity, Failed, Tables, Write

PAGE = 1000  # the most entities of one answer
READ_AT_ONCE = 1000  # entities that a search reads before other requests run
SEARCH_SECONDS = 5.0  # after which a search returns its results so far, as in Azure
ONE_TABLE = re.compile(r"Tables\('(\w+)'\)")


class TableService(Service[Account]):
    """Answers requests to the tables of one account. A request that is not allowed raises StorageError."""

    largest_body: ClassVar[int] = 4 * 2**20

    def __init__(self, tables: Tables, account: Account, endpoint: str = "") -> None:
        super().__init__(account, tables.settings, endpoint)
        self._tables = tables
        self.read_at_once = READ_AT_ONCE

    async def _answered(self, call: Call) -> Answer:
        resource = call.resource
        if resource in ("", "/"):
            return self._of_service(call)
        if resource.removesuffix("/") == "$batch" and call.method == "POST":
            return self._batch(call)
        if "restype" in call.query:
            raise bad_parameter("restype", call.query["restype"], "It is asked of the service itself, at its root.")
        if resource.removesuffix("/").rstrip("()") == "Tables" or ONE_TABLE.fullmatch(resource):
            return self._table(call)
        if call.text("comp") == "acl":
            table = writes.checked_table(writes.table_of(resource))
            return self._of_policies(call, table, self._tables.set_policies)
        if call.method == "GET":
            match = writes.ENTITY.fullmatch(resource)
            return (
                self._get(call, match)
                if match
                else await self._query(call, resource.removesuffix("/").removesuffix("()"))
            )
        aimed = writes.aim(call)
        terms = self.account.admit(call, aimed.right)
        self._tables.check(aimed.table)
        if resource.endswith("/$batch"):
            sentence = "None of the provided media types are supported"
            raise StorageError(415, "MediaTypeNotSupported", sentence)
        write = writes.write(aimed, call)
        _check_range(terms, write.partition, write.row)
        return _written(Format.of(call, self.endpoint), write, self._tables.write([write])[0])

    def failure(self, error: StorageError, note: str) -> Answer:
        message = error.message.partition(":")[2] if isinstance(error, Failed) else error.message
        reasons = "".join(f"\n{name}:{value}" for name, value in error.details.items())  # elements, if it were XML
        return _failure(error, f"{message}\n{note}{reasons}")

    def _policies_text(self, name: str) -> str:
        return self._tables.policies(name)

    def purge(self) -> bool:
        return self._tables.purge()

    # /Tables

    def _table(self, call: Call) -> Answer:
        form, match = Format.of(call, self.endpoint), ONE_TABLE.fullmatch(call.resource)
        if call.method == "DELETE" and match:
            self.account.admit(call, Right("c", ("d",)))
            self._tables.delete(match[1])
            return Answer(204)
        if call.method == "POST" and not match:
            self.account.admit(call, Right("c", ("c", "w")))
            name = writes.checked_table(writes.document(call).get("TableName"))
            self._tables.create(name)
            return form.created(form.table(name), form.place(f"Tables('{name}')"))
        if call.method == "GET":
            self.account.admit(call, Right("c", ("l", "r")))
            return form.one_table(self._tables.named(match[1])) if match else self._list(call, form)
        raise not_served(call.method, call.path)

    def _list(self, call: Call, form: Format) -> Answer:
        top, wanted = _top(call), plan(call.text("$filter")).test
        start = _decoded(call.text("NextTableName"))
        names = [name for name in self._tables.names(start) if wanted is None or wanted({"TableName": name})]
        more = {"x-ms-continuation-NextTableName": _encoded(names[top])} if len(names) > top else {}
        return form.tables(names[:top], more)

    # /TABLE(...)

    def _get(self, call: Call, match: re.Match[str]) -> Answer:
        return self._found(call, match, self.account.admit(call, Right("o", ("r",), match[1])))

    def _found(self, call: Call, match: re.Match[str], terms: Terms) -> Answer:
        keys = writes.unquoted(match[2]), writes.unquoted(match[3])
        _check_range(terms, *keys)
        entity = self._tables.get(match[1], *keys)
        return Format.of(call, self.endpoint).entity(match[1], entity, _selected(call))

    async def _query(self, call: Call, table: str) -> Answer:
        terms = self.account.admit(call, Right("o", ("r",), table))
        asked, top = plan(call.text("$filter")).within(terms), _top(call)
        if "/" in table:
            self._tables.check(writes.table_of(table))
        found, rest = await self._search(table, asked, _start(call), top)
        headers = {}
        if rest:
            headers["x-ms-continuation-NextPartitionKey"] = _encoded(rest.partition)
            headers["x-ms-continuation-NextRowKey"] = _encoded(rest.row)
        return Format.of(call, self.endpoint).entities(table, found, _selected(call), headers)

    async def _search(
        self, table: str, asked: Plan, start: tuple[str, str] | None, top: int
    ) -> tuple[list[Entity], Entity | None]:
        """Return at most `top` entities, and the first entity that was not examined, or None at the end. The search
        stops early after SEARCH_SECONDS."""
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
        self.account.admit_any(call)  # before the body is parsed
        operations = batch.operations(call)
        if isinstance(operations, Call):
            return self._batched_query(call, operations)
        try:
            changes = [writes.numbered(index, operation) for index, operation in enumerate(operations)]
            letters = "".join({letter for change in changes for letter in writes.letters(change)})
            terms = self.account.admit(call, Right("o", (letters,), changes[0].table if changes else ""))
            for change in changes:
                _check_range(terms, change.partition, change.row)
            writes.check_group(changes)
            done = self._tables.write(changes)
        except Failed as error:
            return batch.answer([(None, _failure(error, error.message))])
        answers = [
            _written(Format.of(operation, self.endpoint), change, entity)
            for operation, change, entity in zip(operations, changes, done, strict=True)
        ]
        return batch.answer(zip(operations, answers, strict=True))

    def _batched_query(self, call: Call, query: Call) -> Answer:
        """Answer a batch with one query for one entity, whose keys may be too long for a URL."""
        match = writes.ENTITY.fullmatch(query.resource)
        if match is None:
            raise invalid_input("The query of a batch is of one entity: TABLE(PartitionKey='...',RowKey='...').")
        terms = self.account.admit(call, Right("o", ("r",), match[1]))
        try:
            found = self._found(query, match, terms)
        except StorageError as error:
            failed = Failed(0, error)
            found = _failure(failed, failed.message)
        return batch.answer_to_query(query, found)


def _failure(error: StorageError, message: str) -> Answer:
    body = {"odata.error": {"code": error.code, "message": {"lang": "en-US", "value": message}}}
    content_type = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
    return Answer(error.status, json.dumps(body).encode(), {"Content-Type": content_type})


def _written(form: Format, write: Write, entity: Entity) -> Answer:
    if write.kind == "insert":
        return form.created(
            form.one(write.table, entity), {"ETag": entity.etag, **form.place(form.name(write.table, entity))}
        )
    return Answer(204, headers={} if write.kind == "delete" else {"ETag": entity.etag})


def _check_range(terms: Terms, partition: str, row: str) -> None:
    """Raise StorageError, 403, for an entity outside the signature's range of keys."""
    if not terms.reaches(partition, row):
        sentence = "This request is not authorized to perform this operation."
        raise StorageError(403, "AuthorizationFailure", sentence)


def _top(call: Call) -> int:
    text = call.query.get("$top", str(PAGE))
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= PAGE:
        raise invalid_input(f"$top is {text!r:.80}; it must be a number from 1 to {PAGE}.")
    return int(text)


def _selected(call: Call) -> frozenset[str] | None:
    names = call.text("$select").strip()
    return frozenset(name.strip() for name in names.split(",")) if names and names != "*" else None


def _row(entity: Entity, asked: Plan) -> Mapping[str, Any]:
    """Return the row for the plan's test. Timestamp is formatted only if the test uses it, because formatting costs
    as much as the rest."""
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
        raise invalid_input(f"{token!r:.80} is not a continuation token of this service.") from None
